"""Losses on the norms of features: adaptive feature norm, stepwise and hard (Xu et al. 2019)."""

import torch
from torch import Tensor

from equida.alignment.precision import full_precision


@full_precision
def stepwise_norm(features: Tensor, delta: float = 1.0) -> Tensor:
    """Mean over rows of (|f_i| - (|f_i| without gradient + delta))^2: SAFN of one domain.

    Asks of each feature vector to grow by `delta`, whatever its length. The value is the constant
    delta^2: only the gradient, -2 delta times that of the mean norm, says anything.

    Args:
        features: of one domain, (batch, features).
        delta: the step; its size is also the size of the gradient.

    >>> features = torch.tensor([[3.0, 4.0]], requires_grad=True)
    >>> stepwise_norm(features).backward()
    >>> features.grad
    tensor([[-1.2000, -1.6000]])
    """
    norms: Tensor = torch.linalg.vector_norm(features, dim=1)
    return (norms - (norms.detach() + delta)).square().mean()


@full_precision
def hard_norm(features: Tensor, radius: float = 25.0) -> Tensor:
    """(mean norm of the rows - radius)^2: HAFN of one domain. Value >= 0; lower is better.

    >>> hard_norm(torch.tensor([[3.0, 4.0]]), radius=6.0)
    tensor(1.)
    """
    norms: Tensor = torch.linalg.vector_norm(features, dim=1)
    return (norms.mean() - radius).square()
