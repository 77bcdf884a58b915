"""IM: entropy of target predictions, less the entropy of their mean."""

from dataclasses import dataclass

from torch import Tensor

from equida.losses import information_maximization
from equida.methods.aiming import AimingMethod, prior_field, strength_field
from equida.methods.base import Output, register, search


@dataclass(frozen=True)
class IMConfig:
    trade_off: float = search(1.0, 0.1, 2.5)
    """Weight of the target term against source cross-entropy."""
    prior: str = prior_field()
    prior_strength: float = strength_field(0.5)


@register("im", IMConfig, reference="Liang et al. 2020, arXiv 2002.08546 (SHOT-IM)")
class IM(AimingMethod):
    """Information maximization: target predictions confident one by one and diverse on average."""

    config: IMConfig
    source_free = True

    def forward(
        self, source: Output, labels: Tensor, target: Output, progress: float
    ) -> dict[str, Tensor]:
        value = information_maximization(target.logits, prior=self.shares)
        return {"im": self.config.trade_off * value}
