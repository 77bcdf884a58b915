"""Selective pseudo-labelling by structured prediction, as published."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize, one_hot

from equida.clustering.subspace import (
    class_means,
    class_scatter,
    joint_rows,
    supervised_projection,
    surest,
)

KMEANS_ROUNDS = 100


@dataclass(frozen=True)
class SelectiveRule:
    """The constants of the published rule."""

    components: int = 512
    """Joint principal components of the features that are used."""
    dimensions: int = 128
    """Dimensions of the subspace."""
    rounds: int = 10
    """How often the subspace is learned anew; in round t, the surest t/rounds of the target's
    samples join the source."""


def selective_labels(
    source: Tensor,
    labels: Tensor,
    target: Tensor,
    classes: int,
    rule: SelectiveRule | None = None,
) -> Tensor:
    """The probability of each class for each target row, (samples, classes).

    In each round: the subspace of supervised locality preserving projection, learned on the source
    and on the target rows that were chosen in the round before; rows without their joint mean, made
    unit; k-means of the target, started at the class means of the source; the larger of the softmax
    of minus the distances to the class means and of that to the cluster means, which keep the class
    they were started from (Wang & Breckon 2020, arXiv 1911.07982). Rows of the result are divided
    by their sum, which changes neither the predictions nor, in a row, their order.

    Args:
        source: (samples, features).
        labels: of the source.
        target: (samples, features).
        classes: how many classes there are.
        rule: the constants.
    """
    rule = rule or SelectiveRule()
    source, target = joint_rows(source, target, rule.components)
    known = one_hot(labels, classes).to(source.dtype)
    chosen = torch.zeros(len(target), dtype=torch.bool)
    predicted = torch.zeros(len(target), dtype=torch.long)
    scores = target.new_zeros(len(target), classes)
    for number in range(rule.rounds):
        rows = torch.cat([source, target[chosen]])
        learned = torch.cat([labels, predicted[chosen]])
        scatter = class_scatter(rows, learned, classes)
        projection = supervised_projection(scatter, rule.dimensions).to(source.dtype)
        both = torch.cat([source, target]) @ projection
        both = normalize(both - both.mean(0), dim=1)
        seen, unseen = both[: len(source)], both[len(source) :]
        means = class_means(seen, known)
        clusters = normalize(_k_means(unseen, means), dim=1)
        scores = torch.maximum(
            (-torch.cdist(unseen, means)).softmax(1), (-torch.cdist(unseen, clusters)).softmax(1)
        )
        predicted = scores.argmax(1)
        chosen = surest(scores, (number + 1) / rule.rounds)
    return scores / scores.sum(1, keepdim=True)


def _k_means(rows: Tensor, centres: Tensor) -> Tensor:
    """Lloyd's algorithm until nothing changes; a centre without rows stays where it is."""
    previous = None
    for _ in range(KMEANS_ROUNDS):
        nearest = torch.cdist(rows, centres).argmin(1)
        if previous is not None and torch.equal(nearest, previous):
            break
        previous = nearest
        members = one_hot(nearest, len(centres)).to(rows.dtype)
        sizes = members.sum(0)[:, None]
        centres = torch.where(sizes > 0, members.mT @ rows / sizes.clamp_min(1.0), centres)
    return centres
