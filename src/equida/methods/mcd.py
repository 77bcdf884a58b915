"""MCD: two classifiers find target samples far from the source; features bring them back."""

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor, nn

from equida.alignment import class_balance, classifier_discrepancy, reverse_gradient
from equida.methods.base import Method, Output, register, search


@dataclass(frozen=True)
class MCDConfig:
    trade_off: float | None = search(None, 0.3, 30.0, log=True)
    """Weight of the discrepancy of the two classifiers on the target, a mean over the classes;
    None is classes / 3, near the authors' 10 on 31 classes."""
    reversal: float = search(1.0, 0.1, 4.0, log=True)
    """Strength of the features' side against the classifiers' (the authors take 1 to 4 steps)."""
    balance: float = search(0.01, 0.0, 0.1)
    """Weight of each classifier's class balance on the target."""


@register(
    "mcd",
    MCDConfig,
    reference="Saito et al. 2018, arXiv 1712.02560",
    presets={
        "office31": {"trade_off": 10.0},
        "office_home": {"trade_off": 30.0},
        "visda2017": {"trade_off": 1.0},
    },
)
class MCD(Method):
    """Maximum classifier discrepancy: two classifiers disagree on the target, features reconcile.

    The first classifier is the network's own head, and the second one belongs to this method.
    Instead of the authors' alternating steps, the gradient of the discrepancy is reversed between
    classifiers and features, so that one step does both. Both classifiers are linear; the authors'
    have two hidden layers. The method predicts with the mean of both.
    """

    config: MCDConfig
    supervised_terms = frozenset({"second"})

    def __init__(
        self, config: MCDConfig, features: int, classes: int, classifier: nn.Module
    ) -> None:
        super().__init__(config, features, classes, classifier)
        self.second = nn.Linear(features, classes)

    def forward(
        self, source: Output, labels: Tensor, target: Output, progress: float
    ) -> dict[str, Tensor]:
        config = self.config
        weight = self.classes / 3 if config.trade_off is None else config.trade_off
        reversed_ = reverse_gradient(target.features, config.reversal)
        discrepancy = classifier_discrepancy(self.classifier(reversed_), self.second(reversed_))
        balance = class_balance(target.logits) + class_balance(self.second(target.features))
        return {
            "second": F.cross_entropy(self.second(source.features), labels),
            "discrepancy": -weight * discrepancy,
            "balance": config.balance * balance,
        }

    def predict(self, output: Output) -> Tensor:
        second: Tensor = self.second(output.features)
        return 0.5 * (output.logits + second)
