"""SymNets: a source and a target classifier that compete, and features that confuse them."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call

from equida.alignment import ramp, symmetric_classifier_loss, symmetric_feature_loss
from equida.methods.base import Method, Output, register, search


@dataclass(frozen=True)
class SymNetsConfig:
    trade_off: float = search(1.0, 0.1, 2.0)
    """Weight of what the features are asked on the target, against the source's categories."""


@register("symnets", SymNetsConfig, reference="Zhang et al. 2019, arXiv 1904.04663")
class SymNets(Method):
    """Domain-symmetric networks: two classifiers claim a domain each, features confuse the claims.

    The network's own head is the target classifier, the one that predicts: it alone is trained to
    claim target samples, and which of the two does better there cannot be known without labels.
    The source classifier is this method's.
    """

    config: SymNetsConfig
    owns_cross_entropy = True

    def __init__(
        self, config: SymNetsConfig, features: int, classes: int, classifier: nn.Module
    ) -> None:
        super().__init__(config, features, classes, classifier)
        self.source_classifier = nn.Linear(features, classes)

    def forward(
        self, source: Output, labels: Tensor, target: Output, progress: float
    ) -> dict[str, Tensor]:
        classifiers = symmetric_classifier_loss(
            self._both(source.features.detach()), labels, self._both(target.features.detach())
        )
        features = symmetric_feature_loss(
            self._both(source.features, frozen=True),
            labels,
            self._both(target.features, frozen=True),
            self.config.trade_off * ramp(progress),
        )
        return {"classifiers": classifiers, "features": features}

    def _both(self, features: Tensor, frozen: bool = False) -> Tensor:
        """Logits of the source, then of the target classifier; frozen ones receive no gradient."""
        heads = (self.source_classifier, self.classifier)
        if not frozen:
            return torch.cat([head(features) for head in heads], 1)
        return torch.cat([functional_call(head, _detached(head), features) for head in heads], 1)


def _detached(head: nn.Module) -> dict[str, Tensor]:
    return {name: parameter.detach() for name, parameter in head.named_parameters()}
