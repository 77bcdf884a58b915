"""BNM: the nuclear norm of target predictions."""

from dataclasses import dataclass

from torch import Tensor

from equida.losses.nuclear import Normalize, bnm
from equida.methods.base import Method, Output, register, search


@dataclass(frozen=True)
class BNMConfig:
    trade_off: float = search(1.0, 0.1, 2.5)
    """Weight of the target term against source cross-entropy."""
    normalize: Normalize = "batch"
    """What the norm is divided by: "batch" (Zhang et al. 2022), "min" (BNM's authors), "sqrt" or
    "sum" (nothing)."""


@register("bnm", BNMConfig, reference="Cui et al. 2020, arXiv 2003.12237")
class BNM(Method):
    """Batch nuclear-norm maximization: target predictions both confident and of full rank."""

    config: BNMConfig
    source_free = True

    def forward(
        self, source: Output, labels: Tensor, target: Output, progress: float
    ) -> dict[str, Tensor]:
        value = bnm(target.logits, normalize=self.config.normalize)
        return {"bnm": self.config.trade_off * value}
