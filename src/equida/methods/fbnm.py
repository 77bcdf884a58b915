"""FBNM: the column norms of target predictions in place of their nuclear norm."""

from dataclasses import dataclass

from torch import Tensor

from equida.losses import fbnm
from equida.methods.aiming import AimingMethod, prior_field
from equida.methods.base import Output, register, search


@dataclass(frozen=True)
class FBNMConfig:
    trade_off: float = search(1.0, 0.1, 2.5)
    """Weight of the target term against source cross-entropy."""
    prior: str = prior_field()
    """Class shares to aim at: uniform, source (those of its labels), estimate (of the target,
    without its labels), a share for each class, a file, or oracle (uses target labels)."""
    prior_strength: float = search(0.75, 0.0, 1.0, maximum=1.0)
    """How far to move from uniform shares to `prior`; an estimate is used as it is."""


@register("fbnm", FBNMConfig, reference="Cui et al. 2021, arXiv 2107.06154")
class FBNM(AimingMethod):
    """Fast batch nuclear-norm maximization: BNM by column norms, without singular values."""

    config: FBNMConfig
    source_free = True

    def forward(
        self, source: Output, labels: Tensor, target: Output, progress: float
    ) -> dict[str, Tensor]:
        return {"fbnm": self.config.trade_off * fbnm(target.logits, prior=self.shares)}
