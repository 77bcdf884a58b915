"""A method with a head of its own: cosine similarity to one learned vector for each class."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from equida.losses import nsm
from equida.methods import Method, Output, register, search


@dataclass(frozen=True)
class CosineConfig:
    trade_off: float = search(1.0, 0.1, 2.5)
    """Weight of NSM of the head's target predictions against source cross-entropy."""
    scale: float = search(10.0, 2.0, 30.0, log=True, minimum=0.1)
    """Inverse temperature of the cosine similarities."""


@register("cosine", CosineConfig, reference="an example")
class Cosine(Method):
    """A cosine classifier beside the network's own, adapted by NSM; the method predicts with it."""

    config: CosineConfig
    supervised_terms = frozenset({"cosine"})

    def __init__(
        self, config: CosineConfig, features: int, classes: int, classifier: nn.Module
    ) -> None:
        super().__init__(config, features, classes, classifier)
        self.directions = nn.Parameter(torch.randn(classes, features))

    def forward(
        self, source: Output, labels: Tensor, target: Output, progress: float
    ) -> dict[str, Tensor]:
        return {
            "cosine": F.cross_entropy(self.predict(source), labels),
            "cosine_nsm": self.config.trade_off * nsm(self.predict(target)),
        }

    def predict(self, output: Output) -> Tensor:
        units = F.normalize(output.features, dim=1)
        return self.config.scale * units @ F.normalize(self.directions, dim=1).mT
