"""MaxSquare: the squares of target predictions."""

from dataclasses import dataclass

from torch import Tensor

from equida.losses import max_square
from equida.methods.base import Method, Output, register, search


@dataclass(frozen=True)
class MaxSquareConfig:
    trade_off: float | None = search(None, 0.01, 1.0, log=True)
    """Weight of the target term against source cross-entropy; None is 1 / classes, as in
    Zhang et al. 2022."""


@register("max_square", MaxSquareConfig, reference="Chen et al. 2019, arXiv 1909.13589")
class MaxSquare(Method):
    """Maximum squares: confident target predictions, easy samples counting less than by entropy."""

    config: MaxSquareConfig
    source_free = True

    def forward(
        self, source: Output, labels: Tensor, target: Output, progress: float
    ) -> dict[str, Tensor]:
        weight = self.config.trade_off
        weight = 1.0 / self.classes if weight is None else weight
        return {"max_square": weight * max_square(target.logits)}
