"""Maximum mean discrepancy of the features of two domains, and of features and predictions."""

import functools
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from equida.alignment.precision import full_precision, same_width
from equida.distributed import warn_of_share

Estimator = Literal["linear", "quadratic"]

PREDICTION_VARIANCE = 0.92**2
"""sigma^2 of JMMD's kernel on predictions, whose squared distances lie in [0, 2]."""


class Layer(NamedTuple):
    """One layer's activations in both domains, and the Gaussians on it."""

    source: Tensor
    target: Tensor
    variance: Tensor
    """sigma^2 of the widest Gaussian; each further one has half of that of the one before."""
    gaussians: int = 1


@full_precision
def mmd(source: Tensor, target: Tensor, estimator: Estimator = "quadratic") -> Tensor:
    """Squared MMD with a sum k of five Gaussians (Long et al. 2015, DAN), without bias.

    quadratic: mean over i != j of k(s_i, s_j) + k(t_i, t_j), minus 2 mean over all i, j of
    k(s_i, t_j); linear: mean over i of k(s_i, s_i+1) + k(t_i, t_i+1) - k(s_i, t_i+1)
    - k(t_i, s_i+1), indices cyclic, in time O(batch). sigma^2 is 1/8 to 2 times the mean squared
    distance of all pairs, without gradient. 0 in expectation for equal distributions, so a batch's
    value may be negative; at most 10; lower is better. tllib adds 2 / (batch - 1), which changes no
    gradient.

    Args:
        source: features of source samples, (batch, features).
        target: features of target samples; as many rows as the source's for "linear".
        estimator: all pairs, or neighbours only, which has the larger variance.

    >>> points = torch.tensor([[0.0], [1.0], [2.0]])
    >>> bool(mmd(points, points + 5.0) > mmd(points, points + 1.0))
    True
    """
    warn_of_share(source, stacklevel=3)
    return _discrepancy([_features(source, target)], estimator)


@full_precision
def joint_mmd(
    source: Tensor,
    target: Tensor,
    source_logits: Tensor,
    target_logits: Tensor,
    estimator: Estimator = "quadratic",
) -> Tensor:
    """Squared MMD of the joint distribution of features and predictions (Long et al. 2017, JAN).

    As `mmd`, where the kernel of two samples is that of their features times a Gaussian with
    sigma = 0.92 of their softmax outputs. At most 10; lower is better.

    Args:
        source: features of source samples, (batch, features).
        target: features of target samples; as many rows as the source's for "linear".
        source_logits: predictions for the same source samples, (batch, classes).
        target_logits: predictions for the same target samples.
        estimator: all pairs, or neighbours only, which has the larger variance.

    >>> points, logits = torch.tensor([[0.0], [1.0], [2.0]]), torch.eye(3)
    >>> same = joint_mmd(points, points, logits, logits)
    >>> bool(joint_mmd(points, points, logits, logits.flip(0)) > same)
    True
    """
    warn_of_share(source, stacklevel=3)
    same_width(source_logits, target_logits)
    variance = source_logits.new_full((), PREDICTION_VARIANCE)
    predictions = Layer(source_logits.softmax(1), target_logits.softmax(1), variance)
    return _discrepancy([_features(source, target), predictions], estimator)


def _features(source: Tensor, target: Tensor) -> Layer:
    """The features around their common mean, with the bandwidths that the batch gives."""
    same_width(source, target)
    both = torch.cat([source, target]).detach()
    centre = both.mean(0)
    # The mean of |x - y|^2 over all pairs, each with itself too, is twice the variance.
    mean_distance = 2.0 * (both - centre).square().sum(1).mean()
    variance = 2.0 * mean_distance.clamp_min(1e-30)
    # Distances do not change, and |x|^2 + |y|^2 - 2 xy loses no digits to a far-away origin.
    return Layer(source - centre, target - centre, variance, gaussians=5)


def _discrepancy(layers: list[Layer], estimator: Estimator) -> Tensor:
    rows = layers[0].source.shape[0], layers[0].target.shape[0]
    if any((len(layer.source), len(layer.target)) != rows for layer in layers):
        raise ValueError("features and logits of a domain must have the same number of rows")
    if min(rows) < 2:
        raise ValueError(f"batches have {rows[0]} and {rows[1]} rows; each domain needs 2 or more")
    if estimator == "quadratic":
        return _quadratic(layers)
    if estimator != "linear":
        raise ValueError(f"estimator is {estimator!r}; it must be 'linear' or 'quadratic'")
    if rows[0] != rows[1]:
        raise ValueError(
            f"batches have {rows[0]} and {rows[1]} rows; the linear estimator needs equal numbers"
        )
    return _linear(layers)


def _quadratic(layers: list[Layer]) -> Tensor:
    rows = layers[0].source.shape[0]
    both = [torch.cat([layer.source, layer.target]) for layer in layers]
    kernel = _kernel(layers, [_all_pairs(x) for x in both])
    within = _off_diagonal_mean(kernel[:rows, :rows]) + _off_diagonal_mean(kernel[rows:, rows:])
    return within - 2.0 * kernel[:rows, rows:].mean()


def _linear(layers: list[Layer]) -> Tensor:
    squared = [_neighbours(layer.source, layer.target) for layer in layers]
    kernel = _kernel(layers, squared)
    return (kernel[:2].sum(0) - kernel[2:].sum(0)).mean()


def _kernel(layers: list[Layer], squared_distances: list[Tensor]) -> Tensor:
    """The product over layers of the sum of their Gaussians."""
    kernels = []
    for layer, squared in zip(layers, squared_distances, strict=True):
        gaussian = torch.exp(squared / (-2.0 * layer.variance))
        total = gaussian
        for _ in range(layer.gaussians - 1):
            # Half of the variance is the square: one exponential, and no tensor of all Gaussians.
            gaussian = gaussian.square()
            total = total + gaussian
        kernels.append(total)
    product: Tensor = functools.reduce(torch.mul, kernels)
    return product


def _all_pairs(x: Tensor) -> Tensor:
    squares = x.square().sum(1)
    return torch.addmm(squares[:, None] + squares, x, x.mT, alpha=-2.0).clamp_min(0.0)


def _neighbours(source: Tensor, target: Tensor) -> Tensor:
    """(4, batch): within the source, within the target, and both ways across."""
    firsts = torch.stack([source, target, source, target])
    seconds = torch.stack([source, target, target, source]).roll(-1, 1)
    return (firsts - seconds).square().sum(2)


def _off_diagonal_mean(kernel: Tensor) -> Tensor:
    rows = kernel.shape[0]
    return (kernel.sum() - kernel.diagonal().sum()) / (rows * (rows - 1))
