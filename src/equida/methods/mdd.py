"""MDD: an adversary that agrees with the classifier on the source and not on the target."""

from dataclasses import dataclass

from torch import Tensor, nn

from equida.alignment import margin_disparity, ramp, reverse_gradient
from equida.dropout import Dropout
from equida.methods.base import Method, Output, register, search


@dataclass(frozen=True)
class MDDConfig:
    trade_off: float = search(1.0, 0.1, 2.5)
    """Weight of the disparity against source cross-entropy."""
    margin: float = search(4.0, 1.0, 8.0, minimum=1.0)
    """Weight of agreement on the source: the exponential of the margin."""
    reversal: float = search(0.1, 0.01, 1.0, log=True)
    """Strength of the features' side at the end of training; it grows from 0."""
    dropout: float = search(0.5, 0.0, 0.7, maximum=1.0)
    """Dropout in the adversary, between its two layers."""


@register("mdd", MDDConfig, reference="Zhang et al. 2019, arXiv 1904.05801")
class MDD(Method):
    """Margin disparity discrepancy: features on which an adversary cannot part the domains.

    The classifier, which predicts, is the network's own head; the adversary is this method's.
    """

    config: MDDConfig

    def __init__(
        self, config: MDDConfig, features: int, classes: int, classifier: nn.Module
    ) -> None:
        super().__init__(config, features, classes, classifier)
        self.adversary = nn.Sequential(
            nn.Linear(features, features),
            nn.ReLU(),
            Dropout(config.dropout),
            nn.Linear(features, classes),
        )
        for layer in self.adversary:
            if isinstance(layer, nn.Linear):
                nn.init.normal_(layer.weight, std=0.01)
                nn.init.zeros_(layer.bias)

    def forward(
        self, source: Output, labels: Tensor, target: Output, progress: float
    ) -> dict[str, Tensor]:
        reversal = ramp(progress, self.config.reversal)
        disparity = margin_disparity(
            source.logits,
            self.adversary(reverse_gradient(source.features, reversal)),
            target.logits,
            self.adversary(reverse_gradient(target.features, reversal)),
            self.config.margin,
        )
        return {"disparity": self.config.trade_off * disparity}
