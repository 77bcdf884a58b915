"""MCC: how much the classes are confused in target predictions."""

from dataclasses import dataclass

from torch import Tensor

from equida.losses import mcc
from equida.methods.base import Method, Output, register, search


@dataclass(frozen=True)
class MCCConfig:
    trade_off: float = search(1.0, 0.1, 2.5)
    """Weight of the target term against source cross-entropy."""
    temperature: float = search(2.5, 1.0, 5.0, minimum=1e-3)
    """What the logits are divided by; larger values let more of the confusion be seen."""


@register(
    "mcc",
    MCCConfig,
    reference="Jin et al. 2020, arXiv 1912.03699",
    presets={"visda2017": {"temperature": 3.0}},
)
class MCC(Method):
    """Minimum class confusion: no two classes likely for the same target samples."""

    config: MCCConfig
    source_free = True

    def forward(
        self, source: Output, labels: Tensor, target: Output, progress: float
    ) -> dict[str, Tensor]:
        value = mcc(target.logits, temperature=self.config.temperature)
        return {"mcc": self.config.trade_off * value}
