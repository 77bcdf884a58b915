"""BNM: the nuclear norm of target predictions."""

from dataclasses import dataclass

from torch import Tensor

from equida.losses.nuclear import Normalize, bnm
from equida.methods.aiming import AimingMethod, prior_field, strength_field
from equida.methods.base import Output, register, search


@dataclass(frozen=True)
class BNMConfig:
    trade_off: float = search(1.0, 0.1, 2.5)
    """Weight of the target term against source cross-entropy."""
    normalize: Normalize = "transfer"
    """What the norm is divided by: "transfer" (the batch size at 36, and at others what lets
    trade_off carry over), "batch" (Zhang et al. 2022), "min" (BNM's authors), "sqrt", "sum"
    (nothing), or "optimum" (its largest value)."""
    prior: str = prior_field()
    prior_strength: float = strength_field(0.75)


@register("bnm", BNMConfig, reference="Cui et al. 2020, arXiv 2003.12237")
class BNM(AimingMethod):
    """Batch nuclear-norm maximization: target predictions both confident and of full rank."""

    config: BNMConfig
    source_free = True

    def forward(
        self, source: Output, labels: Tensor, target: Output, progress: float
    ) -> dict[str, Tensor]:
        value = bnm(target.logits, normalize=self.config.normalize, prior=self.shares)
        return {"bnm": self.config.trade_off * value}
