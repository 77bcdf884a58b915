"""Soft cluster labels: selective pseudo-labelling with soft k-means and random views."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize, one_hot

from equida.clustering.subspace import class_means, joint_rows, supervised_projection, surest


@dataclass(frozen=True)
class ClusterRule:
    """The constants of soft cluster labels."""

    components: int = 512
    """Joint principal components of the features that are used."""
    dimensions: int = 128
    """Dimensions of the subspace in which target samples are labelled."""
    views: int = 3
    """How many random choices of the components are looked at; their labels are averaged."""
    share: float = 0.8
    """Share of the components in a view; with one view, or fewer components than classes, all."""
    rounds: int = 10
    """After round t, the surest (t+1)/rounds of the target's samples join the source."""
    means_rounds: int = 10
    """Rounds of soft k-means."""
    assignment_sharpness: float = 20.0
    """Factor of the distances in soft k-means."""
    label_sharpness: float = 10.0
    """Factor of the distances in the labels."""


def cluster_labels(
    source: Tensor,
    labels: Tensor,
    target: Tensor,
    classes: int,
    seed: int = 0,
    rule: ClusterRule | None = None,
) -> Tensor:
    """The probability of each class for each target row, (samples, classes).

    In each round and view: the subspace of supervised locality preserving projection, learned on
    the source and on the target rows that were chosen in the round before; rows without the mean of
    their domain, made unit; soft k-means of the target on the sphere, started at the class means of
    the source; the mean of the softmax of minus the distances to the class means and of that to the
    cluster means. The views' labels are averaged in every round, so that a class that one view
    mistakes for another does not stay mistaken.

    Args:
        source: (samples, features).
        labels: of the source.
        target: (samples, features).
        classes: how many classes there are.
        seed: the views are drawn from it.
        rule: the constants.
    """
    rule = rule or ClusterRule()
    source, target = joint_rows(source, target, rule.components)
    known = one_hot(labels, classes).to(source.dtype)
    chosen = torch.zeros(len(target), dtype=torch.bool)
    probs = target.new_zeros(len(target), classes)
    views = _views(source.shape[1], classes, rule, seed)
    for number in range(rule.rounds + 1):
        learned = torch.cat([labels, probs.argmax(1)[chosen]])
        found = []
        for columns in views:
            seen, unseen = source[:, columns], target[:, columns]
            rows = torch.cat([seen, unseen[chosen]])
            projection = supervised_projection(rows, learned, classes, rule.dimensions)
            seen, unseen = _on_sphere(seen @ projection), _on_sphere(unseen @ projection)
            means = class_means(seen, known)
            clusters = _soft_k_means(unseen, means, rule)
            found += [
                (-rule.label_sharpness * torch.cdist(unseen, centres)).softmax(1)
                for centres in (means, clusters)
            ]
        probs = torch.stack(found).mean(0)
        chosen = surest(probs, min(1.0, (number + 1) / rule.rounds))
    return probs


def _views(width: int, classes: int, rule: ClusterRule, seed: int) -> list[Tensor]:
    """The components that each view has."""
    # Fewer components than classes could not tell the classes apart.
    count = max(round(rule.share * width), min(width, classes))
    if rule.views == 1 or count == width:
        return [torch.arange(width)]
    generator = torch.Generator().manual_seed(seed)
    return [
        torch.randperm(width, generator=generator)[:count].sort().values for _ in range(rule.views)
    ]


def _on_sphere(rows: Tensor) -> Tensor:
    return normalize(rows - rows.mean(0), dim=1)


def _soft_k_means(rows: Tensor, centres: Tensor, rule: ClusterRule) -> Tensor:
    """Unit cluster means, started at `centres`."""
    for _ in range(rule.means_rounds):
        weights = (-rule.assignment_sharpness * torch.cdist(rows, centres)).softmax(1)
        centres = class_means(rows, weights)
    return centres
