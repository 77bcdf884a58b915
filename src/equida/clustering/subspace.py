"""Rows of two domains in one space, and the subspace in which the rows of a class lie together."""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import normalize


def joint_rows(
    source: Tensor, target: Tensor, width: int, *, root: bool = False, centre: bool = False
) -> tuple[Tensor, Tensor]:
    """Both domains as unit rows on their joint principal components.

    Rows are made unit, lose their joint mean, are projected on the `width` components of largest
    variance, and are made unit again.

    Args:
        source: (samples, features).
        target: (samples, features).
        width: components to keep; at most as many as there are features.
        root: take the square root of each value first, where none is negative: features that end in
            a ReLU have few large values, and their roots are nearer to clusters of round shape.
        centre: take away the mean of each domain before the components are found, so that none of
            them is spent on the shift between the domains.
    """
    domains = [rows.float() for rows in (source, target)]
    if root and all(bool((rows >= 0).all()) for rows in domains):
        domains = [rows.sqrt() for rows in domains]
    domains = [normalize(rows, dim=1) for rows in domains]
    if centre:
        domains = [rows - rows.mean(0) for rows in domains]
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
