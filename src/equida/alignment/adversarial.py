"""Domain discriminators, and the gradient reversal that lets one backward train both sides."""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from equida.alignment.precision import full_precision
from equida.dropout import Dropout


class _Reverse(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, coefficient: float) -> Tensor:
        return x.view_as(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, float], output: Tensor) -> None:
        ctx.coefficient = inputs[1]

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return gradient * -ctx.coefficient, None


def reverse_gradient(x: Tensor, coefficient: float = 1.0) -> Tensor:
    """x itself, through which the gradient comes back times minus `coefficient`.

    What follows minimises a loss, what comes before maximises it (Ganin & Lempitsky 2015).

    >>> x = torch.tensor([3.0], requires_grad=True)
    >>> reverse_gradient(x, 0.5).square().sum().backward()
    >>> x.grad
    tensor([-3.])
    """
    reversed_: Tensor = _Reverse.apply(x, coefficient)  # type: ignore[no-untyped-call]
    return reversed_


def ramp(progress: float, high: float = 1.0) -> float:
    """The weight of an adversary: 0 at the start of training, nearly `high` from its middle on.

    high (2 / (1 + exp(-10 progress)) - 1)   (Ganin et al. 2016)

    >>> [round(ramp(progress), 3) for progress in (0.0, 0.1, 0.5, 1.0)]
    [0.0, 0.462, 0.987, 1.0]
    """
    return high * math.tanh(5.0 * progress)


class Discriminator(nn.Sequential):
    """The logit of "from the source", (batch,): two hidden layers with ReLU and dropout.

    Without batch normalisation, whose statistics would mix the domains.

    >>> Discriminator(features=8, width=4)(torch.zeros(3, 8)).tolist()
    [0.0, 0.0, 0.0]
    """

    def __init__(self, features: int, width: int = 1024, dropout: float = 0.5) -> None:
        super().__init__(
            nn.Linear(features, width), nn.ReLU(), Dropout(dropout),
            nn.Linear(width, width), nn.ReLU(), Dropout(dropout),
            nn.Linear(width, 1), nn.Flatten(0),
        )  # fmt: skip
        for layer in self:
            if isinstance(layer, nn.Linear):
                nn.init.xavier_normal_(layer.weight)
                nn.init.zeros_(layer.bias)


@full_precision
def domain_loss(
    source: Tensor,
    target: Tensor,
    source_weights: Tensor | None = None,
    target_weights: Tensor | None = None,
) -> Tensor:
    """Binary cross-entropy of a discriminator, source 1 and target 0; each domain counts half.

    log 2 where it cannot tell the domains; lower means that it can.

    Args:
        source: the discriminator's logits for source samples, (batch,).
        target: the discriminator's logits for target samples, (batch,).
        source_weights: one for each source sample, with sum 1; equal if None.
        target_weights: one for each target sample, with sum 1; equal if None.

    >>> domain_loss(torch.zeros(3), torch.zeros(2))
    tensor(0.6931)
    """
    of_source, of_target = F.softplus(-source), F.softplus(target)
    one = of_source.mean() if source_weights is None else (of_source * source_weights).sum()
    other = of_target.mean() if target_weights is None else (of_target * target_weights).sum()
    return 0.5 * (one + other)
