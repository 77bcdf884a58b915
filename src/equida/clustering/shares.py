"""The class shares of an unlabelled target, from its cluster labels."""

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import ArrayLike

from equida.clustering.clusters import cluster_labels
from equida.evaluation.shares import ENOUGH_AGREEMENT, Array, ShareEstimate, estimate_shares


def estimate_aim(
    source: ArrayLike,
    labels: ArrayLike,
    target: ArrayLike,
    classes: int | None = None,
    estimate: ShareEstimate | None = None,
) -> ShareEstimate:
    """The class shares of a target that `prior="estimate"` aims at, as `shares` of the result.

    The first four arguments are those of `estimate_shares`. Where its two estimates agree on half
    or less, the shift has misled them. Then cluster labels, which start from another classifier in
    another space, say how large the classes are. They are trusted as far as the clusters of
    `estimate_shares` agree with them. To be independent of those, they find the shift between the
    domains by the source's class shares.

    Args:
        estimate: that of `estimate_shares` for the same rows, where it has been made.

    >>> rng = np.random.default_rng(0)
    >>> source, target = (np.repeat([[0.0, 9], [9, 0]], n, 0) for n in ([50, 50], [90, 10]))
    >>> source, target = (x + rng.normal(size=x.shape) for x in (source, target))
    >>> estimate_aim(source, [0] * 50 + [1] * 50, target).shares.round(2)
    array([0.9, 0.1])
    """
    if estimate is None:
        estimate = estimate_shares(source, labels, target, classes)
    if estimate.agreement > ENOUGH_AGREEMENT or not np.ptp(np.asarray(target), axis=0).any():
        return estimate  # rows that are all the same say nothing of sizes
    found = _label_shares(source, labels, target, len(estimate.cluster_shares))
    return replace(estimate, label_shares=found)


def _label_shares(source: ArrayLike, labels: ArrayLike, target: ArrayLike, classes: int) -> Array:
    """The share of each class in the cluster labels of the target."""
    # A class without a source row would be a cluster around nothing.
    present, indices = np.unique(np.asarray(labels, np.int64), return_inverse=True)
    found = np.zeros(classes)
    if len(present) == 1:
        found[present] = 1.0
        return found
    rows, others = (torch.as_tensor(np.asarray(x, np.float32)) for x in (source, target))
    sizes = torch.from_numpy(np.bincount(indices) / len(indices))
    probs = cluster_labels(rows, torch.from_numpy(indices), others, len(present), expected=sizes)
    found[present] = np.bincount(probs.argmax(1).numpy(), minlength=len(present)) / len(others)
    return found
