"""Maps of target predictions: which runs get one, and where t-SNE puts their samples."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from equida.errors import InputError
from equida.report.page.grid import Entry

POINTS = 400
"""Samples of a map: enough to see the clusters, few enough for a phone."""
GAP = 0.018
"""Least distance of two samples on a map: about a marker, so that each can be pointed at."""
HEART = ("source_only", "max_square", "bnm", "cwsm", "nsm")
"""The systems whose maps the paper compares come first, source only beside them."""


def chosen(entries: Sequence[Entry], limit: int) -> list[Entry]:
    """The runs that get a map: of each task and system the first seed, then other seeds."""
    seen: dict[Any, int] = {}
    ranked = []
    for entry in entries:
        repeat = seen.get((entry.task, entry.system), 0)
        seen[entry.task, entry.system] = repeat + 1
        ranked.append(((repeat, entry.task, entry.system.method not in HEART), entry))
    ranked.sort(key=lambda pair: (pair[0], pair[1].number))
    return [entry for _, entry in ranked[:limit]]


def shown_samples(count: int, limit: int = POINTS) -> NDArray[np.int64]:
    """An even choice of at most `limit` of `count` samples, the same for every run on a target.

    >>> shown_samples(5, 2).tolist()
    [0, 2]
    """
    return np.unique(np.arange(min(count, limit)) * count // min(count, limit))


def embed(probs: Tensor) -> NDArray[np.float64]:
    """Places in the plane, (samples, 2), in [0, 1]; the same for the same predictions.

    The distance is that of the square roots of the probabilities (Hellinger's).
    """
    if len(probs) < 4:
        return np.linspace(0.0, 1.0, 2 * len(probs)).reshape(-1, 2)
    tsne = import_tsne()(
        perplexity=min(30.0, (len(probs) - 1) / 3),
        n_iter=350,
        initialization="random",
        # The exact and the Barnes-Hut way are the quick ones for a few hundred points.
        neighbors="exact",
        negative_gradient_method="bh",
        n_jobs=1,
        random_state=0,
    )
    roots = torch.nan_to_num(probs.double()).clamp_min(0.0).sqrt().numpy()
    return _inside(np.asarray(tsne.fit(roots), np.float64))


def spread(places: NDArray[np.float64], gap: float = GAP, rounds: int = 200) -> NDArray[np.float64]:
    """The places with those nearer than `gap` pushed apart, in [0, 1]; always the same way.

    Samples that are predicted alike lie on one another, and one marker would hide dozens.
    """
    angles = np.arange(len(places)) * 2.399963
    # The least shift gives equal places a direction to leave in.
    moved = places + 0.01 * gap * np.stack([np.cos(angles), np.sin(angles)], 1)
    for _ in range(rounds):
        apart = moved[:, None] - moved[None]
        distance = np.linalg.norm(apart, axis=2)
        np.fill_diagonal(distance, np.inf)
        lack = np.clip(gap - distance, 0.0, None)
        if lack.max(initial=0.0) < 0.1 * gap:
            break
        push = (apart * (lack / (2 * distance))[..., None]).sum(1)
        length = np.linalg.norm(push, axis=1, keepdims=True)
        moved = moved + push * np.minimum(1.0, gap / np.maximum(2 * length, 1e-12))
    return _inside(moved)


def _inside(places: NDArray[np.float64]) -> NDArray[np.float64]:
    low, high = places.min(0), places.max(0)
    inside: NDArray[np.float64] = (places - low) / np.where(high > low, high - low, 1.0)
    return inside


def import_tsne() -> Any:
    """The class `openTSNE.TSNE`, or an error that names the extra."""
    try:
        from openTSNE import TSNE
    except ImportError:
        raise InputError("maps need openTSNE: pip install 'equida[report]'") from None
    return TSNE
