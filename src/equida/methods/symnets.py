"""SymNets: a source and a target classifier that compete, and features that confuse them."""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

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
        sizes = [len(source.features), len(target.features)]
        features = torch.cat([source.features, target.features])
        heads: tuple[Any, Any] = self.source_classifier, self.classifier
        weight = torch.cat([head.weight for head in heads])
        bias = torch.cat([head.bias for head in heads])
        # Each side is trained against the other as it is: one detaches features, one the heads.
        claims = F.linear(features.detach(), weight, bias).split(sizes)
        confused = F.linear(features, weight.detach(), bias.detach()).split(sizes)
        adapted = self.config.trade_off * ramp(progress)
        return {
            "classifiers": symmetric_classifier_loss(claims[0], labels, claims[1]),
            "features": symmetric_feature_loss(confused[0], labels, confused[1], adapted),
        }
