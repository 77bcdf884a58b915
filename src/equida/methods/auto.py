"""The settings that `method="auto"` chooses from; a label-free validator decides between them."""

from collections.abc import Mapping
from typing import Any

from equida.methods.base import METHODS
from equida.methods.compose import split_name

AUTO = "auto"
CANDIDATES: tuple[tuple[str, Mapping[str, Any]], ...] = (
    ("nsm", {}),
    ("nsm", {"r": 1.0}),
    ("bnm", {}),
    ("clusters+nsm", {}),
)
"""Methods with the hyper-parameters that differ from their defaults; of equal scores the first is
chosen. They are few, so that the search costs at most five times one run of NSM, and unlike each
other: NSM with two pressures towards equal classes (at r = 0.5 it can collapse on a target far
away), BNM, and clusters, whose labels do not depend on a gradient, with NSM to correct them. CWSM
is too close to NSM to add much."""


def auto_candidates(*, source_free: bool = False) -> list[tuple[str, Mapping[str, Any]]]:
    """The candidates, of which source-free adaptation leaves those that need no source data.

    >>> [method for method, _ in auto_candidates(source_free=True)]
    ['nsm', 'nsm', 'bnm']
    """
    return [
        (method, overrides)
        for method, overrides in CANDIDATES
        if not source_free or all(METHODS[part].method.source_free for part in split_name(method))
    ]
