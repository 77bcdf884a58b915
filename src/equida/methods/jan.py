"""JAN: features and predictions whose joint distribution is the same in both domains."""

from dataclasses import dataclass

from torch import Tensor

from equida.alignment.mmd import Estimator, joint_mmd
from equida.methods.base import Method, Output, register, search


@dataclass(frozen=True)
class JANConfig:
    trade_off: float = search(1.0, 0.1, 2.5)
    """Weight of the discrepancy against source cross-entropy."""
    estimator: Estimator = "quadratic"
    """All pairs of a batch ("quadratic"), or neighbours only ("linear")."""


@register("jan", JANConfig, reference="Long et al. 2017, arXiv 1605.06636")
class JAN(Method):
    """Joint adaptation network: match features and predictions together by joint MMD."""

    config: JANConfig

    def forward(
        self, source: Output, labels: Tensor, target: Output, progress: float
    ) -> dict[str, Tensor]:
        value = joint_mmd(
            source.features, target.features, source.logits, target.logits, self.config.estimator
        )
        return {"joint_mmd": self.config.trade_off * value}
