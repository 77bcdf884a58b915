"""ENT: the entropy of target predictions."""

from dataclasses import dataclass

from torch import Tensor

from equida.losses import entropy
from equida.methods.base import Method, Output, register, search


@dataclass(frozen=True)
class EntropyConfig:
    trade_off: float = search(0.1, 0.01, 1.0, log=True)
    """Weight of the target term against source cross-entropy."""


@register("entropy", EntropyConfig, reference="Grandvalet & Bengio 2005, NIPS 17")
class Entropy(Method):
    """Entropy minimization: confident target predictions."""

    config: EntropyConfig
    source_free = True

    def forward(
        self, source: Output, labels: Tensor, target: Output, progress: float
    ) -> dict[str, Tensor]:
        return {"entropy": self.config.trade_off * entropy(target.logits)}
