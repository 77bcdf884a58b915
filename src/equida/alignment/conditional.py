"""What CDAN shows its discriminator: features together with predictions."""

import torch
from torch import Tensor, nn

from equida.alignment.adversarial import reverse_gradient
from equida.alignment.precision import full_precision


def multilinear_map(features: Tensor, probs: Tensor) -> Tensor:
    """The outer product of each row of `probs` and of `features`, (batch, classes * features).

    >>> multilinear_map(torch.tensor([[1.0, 2.0]]), torch.tensor([[0.0, 1.0]]))
    tensor([[0., 0., 1., 2.]])
    """
    return (probs[:, :, None] * features[:, None, :]).flatten(1)


class RandomizedMap(nn.Module):
    """(features R_f) * (probs R_p) / sqrt(width): a narrow stand-in for the outer product.

    Its inner products are those of `multilinear_map` in expectation. R_f and R_p are drawn once
    from a standard normal and stay fixed (Long et al. 2018, Eq. 6).

    >>> RandomizedMap(features=8, classes=3, width=16)(torch.zeros(2, 8), torch.ones(2, 3)).shape
    torch.Size([2, 16])
    """

    by_feature: Tensor
    by_class: Tensor

    def __init__(self, features: int, classes: int, width: int = 1024) -> None:
        super().__init__()
        self.register_buffer("by_feature", torch.randn(features, width))
        self.register_buffer("by_class", torch.randn(classes, width))

    def forward(self, features: Tensor, probs: Tensor) -> Tensor:
        scale: float = self.by_feature.shape[1] ** -0.5
        mapped: Tensor = (features @ self.by_feature) * (probs @ self.by_class) * scale
        return mapped


@full_precision
def certainty_weights(logits: Tensor, coefficient: float = 1.0) -> Tensor:
    """1 + exp(-H_i) of the rows' entropies H, scaled to sum 1: how much each counts in CDAN+E.

    The entropy hands a gradient back to the logits, reversed and times `coefficient`; the scale
    hands back none (as in the CDAN authors' code).

    >>> certainty_weights(torch.tensor([[50.0, 0.0], [0.0, 0.0]]))
    tensor([0.5714, 0.4286])
    """
    probs = logits.softmax(1)
    entropy = -(probs * (probs + 1e-5).log()).sum(1)
    weights = 1.0 + torch.exp(-reverse_gradient(entropy, coefficient))
    return weights / weights.sum().detach()
