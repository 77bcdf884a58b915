"""CDAN: features from which a discriminator cannot tell the domain, knowing the predictions."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from equida.alignment import (
    Discriminator,
    RandomizedMap,
    certainty_weights,
    domain_loss,
    multilinear_map,
    ramp,
    reverse_gradient,
)
from equida.methods.base import Method, Output, register, search

# The rows that the paper prints as CDAN are those of CDAN+E.
WITH_ENTROPY = {"entropy": True}


@dataclass(frozen=True)
class CDANConfig:
    trade_off: float = search(1.0, 0.1, 2.5)
    """Weight of the domain loss against source cross-entropy."""
    entropy: bool = False
    """Let samples with sure predictions count more (CDAN+E)."""
    width: int = search(1024, 64, 2048, log=True, minimum=1)
    """Units in each of the discriminator's two hidden layers, and of the randomised map."""
    dropout: float = search(0.5, 0.0, 0.7, maximum=1.0)
    """Dropout after each hidden layer of the discriminator."""
    randomize_from: int = search(4096, 1024, 16384, log=True, minimum=1)
    """Features times classes from which on the randomised map replaces the outer product."""


@register(
    "cdan",
    CDANConfig,
    reference="Long et al. 2018, arXiv 1705.10667",
    presets={
        **dict.fromkeys(("office31", "office_home", "visda2017"), WITH_ENTROPY),
        # As wide as LeNet's features, see DANN; with entropy as everywhere in the paper.
        "digits": WITH_ENTROPY | {"width": 128},
    },
)
class CDAN(Method):
    """Conditional adversarial network: as DANN, on features together with predictions."""

    config: CDANConfig

    def __init__(
        self, config: CDANConfig, features: int, classes: int, classifier: nn.Module
    ) -> None:
        super().__init__(config, features, classes, classifier)
        self.map: RandomizedMap | None = None
        if features * classes >= config.randomize_from:
            self.map = RandomizedMap(features, classes, config.width)
        joint = config.width if self.map else features * classes
        self.discriminator = Discriminator(joint, config.width, config.dropout)

    def forward(
        self, source: Output, labels: Tensor, target: Output, progress: float
    ) -> dict[str, Tensor]:
        reversal = ramp(progress)
        features = reverse_gradient(torch.cat([source.features, target.features]), reversal)
        probs = torch.cat([source.logits, target.logits]).detach().softmax(1)
        joint = self.map(features, probs) if self.map else multilinear_map(features, probs)
        sizes = [len(source.logits), len(target.logits)]
        of_source, of_target = self.discriminator(joint).split(sizes)
        weights: list[Tensor | None] = [None, None]
        if self.config.entropy:
            weights = [certainty_weights(x.logits, reversal) for x in (source, target)]
        value = domain_loss(of_source, of_target, *weights)
        return {"domain": self.config.trade_off * value}
