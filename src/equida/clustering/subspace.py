"""Rows of two domains in one space, and the subspace in which the rows of a class lie together."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import normalize

FindMiddles = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""Takes the rows of source and target, and returns a point for each."""


def joint_rows(
    source: Tensor,
    target: Tensor,
    width: int,
    *,
    root: bool = False,
    find_middles: FindMiddles | None = None,
) -> tuple[Tensor, Tensor]:
    """Both domains as unit rows on their joint principal components.

    Rows are made unit, lose their joint mean (or the point that `find_middles` has for their
    domain), are projected on the `width` components in which they are then longest, and are made
    unit again.

    Args:
        source: (samples, features).
        target: (samples, features).
        width: components to keep; at most as many as there are features.
        root: take the square root of each value first, where none is negative: features that end in
            a ReLU have few large values, and their roots are nearer to clusters of round shape.
        find_middles: finds the point that the unit rows of each domain lose, so that no component
            is spent on the shift between the domains; None: all lose their joint mean.
    """
    domains = [rows.float() for rows in (source, target)]
    if root and all(bool((rows >= 0).all()) for rows in domains):
        domains = [rows.sqrt() for rows in domains]
    domains = [normalize(rows, dim=1) for rows in domains]
    if find_middles is not None:
        middles = find_middles(*domains)
        rows = torch.cat([each - middle for each, middle in zip(domains, middles, strict=True)])
    else:
        rows = torch.cat(domains)
        rows = rows - rows.mean(0)
    if len(rows) < rows.shape[1]:  # the smaller problem: features of several backbones are wide
        values, vectors = torch.linalg.eigh((rows @ rows.mT).double())
        rows = (vectors * values.clamp_min(0.0).sqrt())[:, -width:].to(rows.dtype)
    else:
        _, directions = torch.linalg.eigh((rows.mT @ rows).double())
        rows = rows @ directions[:, -width:].to(rows.dtype)
    rows = normalize(rows, dim=1)
    return rows[: len(source)], rows[len(source) :]


def class_middles(
    source: Tensor, target: Tensor, labels: Tensor, shares: Tensor
) -> tuple[Tensor, Tensor]:
    """The middle of the classes of each domain: all of them count alike, however large they are.

    For the source that is the mean of its class means. A domain's own mean would lie in its largest
    class, and a target that lacks classes would be moved onto the wrong ones. With the shares q of
    the target's classes, mean(target) = sum_c q_c mean_c(source) + shift, and the middle of the
    target is that of the source, moved by this shift. At equal shares it is the target's mean.

    Args:
        source: (samples, features).
        target: (samples, features).
        labels: of the source.
        shares: of the classes in the target, (classes,).

    >>> source = torch.tensor([[0.0, 4.0], [4.0, 0.0]])
    >>> target = torch.tensor([[1.0, 4.0], [1.0, 4.0], [1.0, 4.0], [5.0, 0.0]])
    >>> class_middles(source, target, torch.tensor([0, 1]), torch.tensor([0.75, 0.25]))
    (tensor([2., 2.]), tensor([3., 2.]))
    """
    present, indices, sizes = labels.unique(return_inverse=True, return_counts=True)
    sums = source.new_zeros(len(present), source.shape[1]).index_add_(0, indices, source)
    means = sums / sizes[:, None]
    # A class without a source row has no mean, and its share says nothing of the shift.
    weights = shares.to(source)[present]
    if not weights.any():
        weights = torch.ones_like(weights)
    shift = target.mean(0) - weights @ means / weights.sum()
    middle = means.mean(0)
    return middle, middle + shift


class ClassScatter(NamedTuple):
    """What the subspace is computed from: sums over labelled rows."""

    within: Tensor
    """sum_i n_i (x_i - m_i)(x_i - m_i)^T, where n_i is the size and m_i the mean of i's class,
    (features, features)."""
    sums: Tensor
    """The sum of the rows of each class, (classes, features)."""

    def of(self, columns: Tensor) -> "ClassScatter":
        """The same of some of the features."""
        return ClassScatter(self.within[columns][:, columns], self.sums[:, columns])


def class_scatter(rows: Tensor, labels: Tensor, classes: int) -> ClassScatter:
    """The scatter of rows within their classes, and the sums of the classes, in float64.

    Args:
        rows: (samples, features).
        labels: (samples,).
        classes: how many classes there are.
    """
    sizes = torch.bincount(labels, minlength=classes).to(rows.dtype)
    sums = rows.new_zeros(classes, rows.shape[1]).index_add_(0, labels, rows)
    apart = rows - (sums / sizes.clamp_min(1.0)[:, None])[labels]
    apart *= sizes.sqrt()[labels][:, None]
    return ClassScatter((apart.mT @ apart).double(), sums.double())


def supervised_projection(
    scatter: ClassScatter, dimensions: int, *, weighted: bool = False
) -> Tensor:
    """The map of supervised locality preserving projection, (features, dimensions), in float64.

    The columns are the generalised eigenvectors v of (A, B) of largest eigenvalue, v^T B v = 1,
    where A = X^T D X, B = A - sum_c g_c g_c^T + I, D_ii is the size of i's class, and g_c is the
    sum of the rows of class c: rows of one class are joined by weights 1, others by 0 (Wang &
    Breckon 2020, arXiv 1911.07982).

    Args:
        scatter: of the labelled rows X; A - sum_c g_c g_c^T is the scatter within classes.
        dimensions: columns to keep; at most as many as there are features.
        weighted: multiply each column by sqrt(1 - 1/eigenvalue), the root of the share of its
            variance that lies between classes, so that directions which tell no classes apart do
            not count.
    """
    # A less the sums, as B is written above, would be the difference of two large matrices: where
    # classes are large and tight, it is not even definite.
    total = scatter.within + scatter.sums.mT @ scatter.sums
    identity = torch.eye(len(total), dtype=total.dtype)
    within = torch.linalg.cholesky(scatter.within + identity)
    solve = torch.linalg.solve_triangular
    whitened = solve(within, solve(within, total, upper=False).mT, upper=False)
    values, vectors = torch.linalg.eigh((whitened + whitened.mT) / 2)
    projection: Tensor = solve(within.mT, vectors[:, -dimensions:], upper=True)
    if weighted:
        projection = projection * (1.0 - 1.0 / values[-dimensions:]).clamp_min(1e-6).sqrt()
    return projection


def class_means(rows: Tensor, weights: Tensor) -> Tensor:
    """The mean of the rows of each class as a unit vector, (classes, features).

    Args:
        rows: (samples, features).
        weights: how much each row belongs to each class, (samples, classes).
    """
    return normalize(weights.mT @ rows, dim=1)


def surest(probs: Tensor, share: float) -> Tensor:
    """Which rows are among the surest `share` of those with the same most likely class.

    At least one row of every predicted class is chosen.

    >>> surest(torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6]]), 0.5).tolist()
    [True, False, True]
    """
    certainty, predicted = probs.max(1)
    order = certainty.argsort(descending=True, stable=True)
    members = torch.nn.functional.one_hot(predicted[order], probs.shape[1])
    rank = (members.cumsum(0) * members).sum(1)
    sizes = members.sum(0)[predicted[order]]
    chosen = torch.zeros(len(probs), dtype=torch.bool)
    chosen[order] = rank <= (sizes * share).ceil()
    return chosen
