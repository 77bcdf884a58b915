"""Maps of target predictions: which runs get one, of which samples, and how these keep apart."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from equida.report.page.content import ShownRun
from equida.report.tsne import fit_square

POINTS = 400
"""Samples of a map: enough to see the clusters, few enough for a phone."""
GAP = 0.018
"""Least distance of two samples on a map: about a marker, so that the mouse finds each."""
ROUNDS = 200
"""The most rounds of pushing samples apart."""
HEART = ("source_only", "max_square", "bnm", "cwsm", "nsm")
"""The systems whose maps the paper compares come first, source only beside them."""


def choose_mapped(runs: Sequence[ShownRun], limit: int) -> list[ShownRun]:
    """The runs that get a map: of each task and system the first seed, then other seeds."""
    seen: Counter[tuple[int, int]] = Counter()
    ranked = []
    for run in runs:
        repeat = seen[run.task, run.system]
        seen[run.task, run.system] += 1
        ranked.append(((repeat, run.task, run.method not in HEART, run.number), run))
    ranked.sort(key=lambda pair: pair[0])
    return [run for _, run in ranked[:limit]]


def shown_samples(count: int, limit: int = POINTS) -> NDArray[np.int64]:
    """An even choice of at most `limit` of `count` samples, the same for every run on a target.

    >>> shown_samples(5, 2).tolist()
    [0, 2]
    """
    return np.unique(np.arange(min(count, limit)) * count // min(count, limit))


def spread(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """The places with those nearer than `GAP` pushed apart, in [0, 1]; always the same way.

    Samples that are predicted alike lie on one another, and one marker would hide dozens.
    """
    angles = np.arange(len(places)) * 2.399963
    # The least shift gives equal places a direction to leave in.
    moved = places + 0.01 * GAP * np.stack([np.cos(angles), np.sin(angles)], 1)
    for _ in range(ROUNDS):
        apart = moved[:, None] - moved[None]
        distance = np.linalg.norm(apart, axis=2)
        np.fill_diagonal(distance, np.inf)
        lack = np.clip(GAP - distance, 0.0, None)
        if lack.max(initial=0.0) < 0.1 * GAP:
            break
        push = (apart * (lack / (2 * distance))[..., None]).sum(1)
        length = np.linalg.norm(push, axis=1, keepdims=True)
        moved = moved + push * np.minimum(1.0, GAP / np.maximum(2 * length, 1e-12))
    return fit_square(moved)
