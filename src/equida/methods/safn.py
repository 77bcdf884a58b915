"""SAFN: feature vectors of both domains that grow, step by step."""

from dataclasses import dataclass

from torch import Tensor

from equida.alignment import stepwise_norm
from equida.losses import entropy
from equida.methods.base import Method, Output, register, search


@dataclass(frozen=True)
class SAFNConfig:
    trade_off: float = search(0.05, 0.005, 0.5, log=True)
    """Weight of the norm term of each domain against source cross-entropy."""
    delta: float = search(1.0, 0.1, 2.0, log=True)
    """Step by which a feature vector is asked to grow."""
    entropy: float = search(0.0, 0.0, 0.2)
    """Weight of the entropy of target predictions; 0.1 is SAFN+ENT."""


@register(
    "safn",
    SAFNConfig,
    reference="Xu et al. 2019, arXiv 1811.07456",
    presets={
        # The row that the paper prints as SAFN on Office-31 is that of SAFN+ENT.
        "office31": {"entropy": 0.1},
        "visda2017": {"trade_off": 0.01, "delta": 0.3},
    },
)
class SAFN(Method):
    """Stepwise adaptive feature norm: larger feature norms transfer better, so let them grow.

    The features are those of the recipe's bottleneck. The authors' own head is 1000 wide, starts
    from N(0, 0.01), and scales what dropout leaves by sqrt(1 - p); this one does not.
    """

    config: SAFNConfig

    def forward(
        self, source: Output, labels: Tensor, target: Output, progress: float
    ) -> dict[str, Tensor]:
        config = self.config
        terms = {
            "norm_source": config.trade_off * stepwise_norm(source.features, config.delta),
            "norm_target": config.trade_off * stepwise_norm(target.features, config.delta),
        }
        if config.entropy > 0:
            terms["entropy"] = config.entropy * entropy(target.logits)
        return terms
