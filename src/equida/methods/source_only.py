"""Source only: what every method is compared with."""

from dataclasses import dataclass

from torch import Tensor

from equida.methods.base import Method, Output, register


@dataclass(frozen=True)
class SourceOnlyConfig:
    """Has no hyper-parameters."""


@register("source_only", SourceOnlyConfig, reference="the baseline")
class SourceOnly(Method):
    """No adaptation: source cross-entropy and nothing else."""

    config: SourceOnlyConfig
    uses_target = False

    def forward(
        self, source: Output, labels: Tensor, target: Output, progress: float
    ) -> dict[str, Tensor]:
        return {}
