"""The settings that `method="auto"` chooses from; a label-free validator decides between them."""

from collections.abc import Mapping
from typing import Any

from equida.errors import InputError
from equida.methods.aiming import PRIOR_FIELDS
from equida.methods.base import METHODS
from equida.methods.compose import check_overrides, configure, split_name

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


def auto_candidates(
    prior: Mapping[str, Any] | None = None, *, source_free: bool = False, imbalanced: bool = False
) -> list[tuple[str, Mapping[str, Any]]]:
    """The candidates, of which source-free adaptation leaves those that need no source data.

    On a target that looks imbalanced they aim at estimated class shares, and cluster labels are
    left out: k-means wants a cluster for every class, and a class that is rare gets a part of
    another's.

    Args:
        prior: what `checked_prior` returned, which every candidate gets.
        source_free: whether there are no source data.
        imbalanced: whether no prior was asked for and the target looks imbalanced.

    >>> [method for method, _ in auto_candidates(source_free=True)]
    ['nsm', 'nsm', 'bnm']
    >>> auto_candidates(imbalanced=True)[-1]
    ('bnm', {'prior': 'estimate'})
    """
    given = {"prior": "estimate"} if imbalanced else (prior or {})
    return [
        (method, {**overrides, **given})
        for method, overrides in CANDIDATES
        for parts in [split_name(method)]
        if not source_free or all(METHODS[part].method.source_free for part in parts)
        if not (imbalanced and "clusters" in parts)
    ]


def checked_prior(overrides: Mapping[str, Any], called: str) -> dict[str, Any]:
    """What the user asks for, checked: class shares, as everything else is chosen.

    Args:
        overrides: hyper-parameters by name.
        called: how a message calls the method.

    >>> checked_prior({"prior": "0.7,0.3"}, "auto")
    {'prior': '[0.7, 0.3]'}
    """
    for name in overrides:
        if name not in PRIOR_FIELDS:
            raise InputError(f"{name} is given, but {called} chooses it; leave it out")
    first, _ = CANDIDATES[0]
    configure(first, overrides)
    return check_overrides(first, overrides)
