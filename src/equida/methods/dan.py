"""DAN: features whose distribution is the same in both domains, measured by MMD."""

from dataclasses import dataclass

from torch import Tensor

from equida.alignment.mmd import Estimator, mmd
from equida.methods.base import Method, Output, register, search


@dataclass(frozen=True)
class DANConfig:
    trade_off: float = search(1.0, 0.1, 2.5)
    """Weight of the discrepancy against source cross-entropy."""
    estimator: Estimator = "quadratic"
    """All pairs of a batch ("quadratic", which varies less from batch to batch), or neighbours
    only ("linear", the authors' choice)."""


@register("dan", DANConfig, reference="Long et al. 2015, arXiv 1502.02791")
class DAN(Method):
    """Deep adaptation network: match the feature distributions of both domains by MMD.

    On the bottleneck's features; over all pairs of a batch unless the authors' linear estimator is
    asked for.
    """

    config: DANConfig

    def forward(
        self, source: Output, labels: Tensor, target: Output, progress: float
    ) -> dict[str, Tensor]:
        value = mmd(source.features, target.features, self.config.estimator)
        return {"mmd": self.config.trade_off * value}
