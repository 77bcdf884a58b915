"""FBNM: the column norms of target predictions in place of their nuclear norm."""

from dataclasses import dataclass

from torch import Tensor

from equida.losses import fbnm
from equida.methods.aiming import AimingMethod, prior_field, strength_field
from equida.methods.base import Output, register, search


@dataclass(frozen=True)
class FBNMConfig:
    trade_off: float = search(1.0, 0.1, 2.5)
    """Weight of the target term against source cross-entropy."""
    prior: str = prior_field()
    prior_strength: float = strength_field(0.75)


@register("fbnm", FBNMConfig, reference="Cui et al. 2021, arXiv 2107.06154")
class FBNM(AimingMethod):
    """Fast batch nuclear-norm maximization: BNM by column norms, without singular values."""

    config: FBNMConfig
    source_free = True

    def forward(
        self, source: Output, labels: Tensor, target: Output, progress: float
    ) -> dict[str, Tensor]:
        return {"fbnm": self.config.trade_off * fbnm(target.logits, prior=self.shares)}
