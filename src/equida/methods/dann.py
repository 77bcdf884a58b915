"""DANN: features from which a discriminator cannot tell the domain."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from equida.alignment import Discriminator, domain_loss, ramp, reverse_gradient
from equida.methods.base import Method, Output, register, search


@dataclass(frozen=True)
class DANNConfig:
    trade_off: float = search(1.0, 0.1, 2.5)
    """Weight of the domain loss against source cross-entropy."""
    width: int = search(1024, 64, 2048, log=True, minimum=1)
    """Units in each of the discriminator's two hidden layers."""
    dropout: float = search(0.5, 0.0, 0.7, maximum=1.0)
    """Dropout after each hidden layer of the discriminator."""


@register(
    "dann",
    DANNConfig,
    reference="Ganin et al. 2016, arXiv 1505.07818",
    # As wide as LeNet's features: 1024 would cost twice the network it looks at. Not tuned.
    presets={"digits": {"width": 128}},
)
class DANN(Method):
    """Domain-adversarial network: features from which a discriminator cannot tell the domain."""

    config: DANNConfig

    def __init__(
        self, config: DANNConfig, features: int, classes: int, classifier: nn.Module
    ) -> None:
        super().__init__(config, features, classes, classifier)
        self.discriminator = Discriminator(features, config.width, config.dropout)

    def forward(
        self, source: Output, labels: Tensor, target: Output, progress: float
    ) -> dict[str, Tensor]:
        both = torch.cat([source.features, target.features])
        domains = self.discriminator(reverse_gradient(both, ramp(progress)))
        of_source, of_target = domains.split([len(source.features), len(target.features)])
        return {"domain": self.config.trade_off * domain_loss(of_source, of_target)}
