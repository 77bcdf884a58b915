"""IM: entropy of target predictions, less the entropy of their mean."""

from dataclasses import dataclass

from torch import Tensor

from equida.losses import information_maximization
from equida.methods.base import Method, Output, register, search


@dataclass(frozen=True)
class IMConfig:
    trade_off: float = search(1.0, 0.1, 2.5)
    """Weight of the target term against source cross-entropy."""


@register("im", IMConfig, reference="Liang et al. 2020, arXiv 2002.08546 (SHOT-IM)")
class IM(Method):
    """Information maximization: target predictions confident one by one and diverse on average."""

    config: IMConfig
    source_free = True

    def forward(
        self, source: Output, labels: Tensor, target: Output, progress: float
    ) -> dict[str, Tensor]:
        return {"im": self.config.trade_off * information_maximization(target.logits)}
