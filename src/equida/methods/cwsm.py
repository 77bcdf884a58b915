"""CWSM: squares of target predictions, each class weighted by the inverse of its size."""

from dataclasses import dataclass

from torch import Tensor

from equida.losses import cwsm
from equida.losses.closed_form import Scale
from equida.methods.aiming import AimingMethod, prior_field, strength_field
from equida.methods.base import Output, register, search


@dataclass(frozen=True)
class CWSMConfig:
    trade_off: float = search(1.0, 0.5, 2.5)
    """Weight of the target term against source cross-entropy (the paper's lambda)."""
    r: float = search(0.5, 0.0, 1.0, maximum=1.0)
    """Pressure towards equal class sizes; strongest near 0.5, and none at 0."""
    normalize: Scale = "transfer"
    """The scale of the loss: "transfer" (the paper's at batches of 36, and at others one in which
    trade_off carries over), "paper", or "optimum", in which the minimum is about -1 and trade_off
    carries over to other numbers of classes, too."""
    prior: str = prior_field()
    prior_strength: float = strength_field(0.75)


@register("cwsm", CWSMConfig, reference="Zhang et al. 2022, arXiv 2204.05596, Eq. 11")
class CWSM(AimingMethod):
    """Class weighted squares maximization: as MaxSquare, with small classes weighted up."""

    config: CWSMConfig
    source_free = True

    def forward(
        self, source: Output, labels: Tensor, target: Output, progress: float
    ) -> dict[str, Tensor]:
        config = self.config
        value = cwsm(target.logits, config.r, self.shares, config.normalize)
        return {"cwsm": config.trade_off * value}
