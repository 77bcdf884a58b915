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
    places = np.asarray(tsne.fit(roots), np.float64)
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
