"""Soft neighbourhood density: whether target predictions lie in dense groups."""

import math

import torch

from equida.evaluation.predictions import DomainPredictions
from equida.evaluation.validators.base import validator

SND_SAMPLES = 1000
"""How many target samples are looked at: the cost is quadratic in them."""
TEMPERATURE = 0.05
"""The authors' temperature of the softmax over similarities."""


@validator(
    "snd",
    "soft neighbourhood density",
    "the step with the largest soft neighbourhood density of target predictions",
)
def soft_neighbourhood_density(
    target: DomainPredictions, source: DomainPredictions | None = None
) -> float:
    """Mean entropy of each sample's similarities to the others (Saito et al. 2021).

    Predictions are scaled to unit length; similarities become a distribution over the other samples
    by softmax. Dense neighbourhoods, which a good model has, give a high entropy. Sets above 1000
    samples are thinned evenly.

    >>> soft_neighbourhood_density(DomainPredictions(torch.zeros(5, 3).log_softmax(1)))
    1.386...
    """
    log_probs = target.log_probs
    thinned = log_probs[:: max(1, math.ceil(len(log_probs) / SND_SAMPLES))]
    units = torch.nn.functional.normalize(thinned.exp(), dim=1)
    # Less 1, which changes no softmax and keeps every exponential in [exp(-1 / TEMPERATURE), 1].
    similarity = (units @ units.mT).sub_(1.0).div_(TEMPERATURE)
    weights = similarity.exp().fill_diagonal_(0.0)
    totals = weights.sum(1)
    return float((totals.log() - weights.mul_(similarity).sum(1) / totals).mean())
