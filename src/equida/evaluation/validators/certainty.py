"""Scores of predictions alone: right on the source; certain, diverse and dense on the target."""

import math

import torch

from equida.evaluation.accuracy import accuracy
from equida.evaluation.predictions import DomainPredictions
from equida.evaluation.validators.base import validator

SND_SAMPLES = 1000
"""How many target samples are looked at: the cost is quadratic in them."""
SND_TEMPERATURE = 0.05
"""The authors' temperature of the softmax over similarities."""


@validator(
    "source_accuracy",
    "source accuracy",
    "the step with the best accuracy on source samples",
    needs=("source",),
)
def source_accuracy(target: DomainPredictions, source: DomainPredictions | None) -> float:
    """Share of source samples that are predicted right, in [0, 1]."""
    confusion = source.confusion if source else None
    assert confusion is not None
    return accuracy(confusion)


@validator("entropy", "entropy", "the step with the lowest mean entropy of target predictions")
def negative_entropy(target: DomainPredictions, source: DomainPredictions | None = None) -> float:
    """Minus the mean entropy of the predictions, in [-log C, 0] (Morerio et al. 2018).

    >>> negative_entropy(DomainPredictions(torch.full((4, 2), 0.5).log()))
    -0.693...
    """
    log_probs = target.log_probs
    return float((log_probs.exp() * log_probs).sum(1).mean())


@validator(
    "information_maximization",
    "information maximization",
    "the step whose target predictions are certain one by one and diverse on average",
)
def mutual_information(target: DomainPredictions, source: DomainPredictions | None = None) -> float:
    """Entropy of the mean prediction minus the mean entropy, in [0, log C] (Musgrave et al. 2022).

    >>> certain = DomainPredictions(torch.eye(2).mul(50).log_softmax(1))
    >>> round(mutual_information(certain), 3)
    0.693
    """
    log_probs = target.log_probs
    log_mean = log_probs.logsumexp(0) - math.log(len(log_probs))
    return float(-(log_mean.exp() * log_mean).sum()) + negative_entropy(target)


@validator(
    "bnm", "nuclear norm (BNM)", "the step with the largest nuclear norm of target predictions"
)
def relative_nuclear_norm(
    target: DomainPredictions, source: DomainPredictions | None = None
) -> float:
    """Nuclear norm over sqrt(N min(N, C)), its maximum: in (0, 1] (as the BNM validator).

    >>> round(relative_nuclear_norm(DomainPredictions(torch.eye(2).mul(50).log_softmax(1))), 6)
    1.0
    """
    probs = target.log_probs.exp().double()
    # From the small Gram matrix: the set may have a hundred thousand rows.
    rows, classes = probs.shape
    gram = probs.mT @ probs if rows > classes else probs @ probs.mT
    singular = torch.linalg.eigvalsh(gram).clamp_min(0.0).sqrt()
    return float(singular.sum() / math.sqrt(rows * min(rows, classes)))


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
    # Less 1, which changes no softmax and keeps every exponential in [exp(-1 / temperature), 1].
    similarity = (units @ units.mT).sub_(1.0).div_(SND_TEMPERATURE)
    weights = similarity.exp().fill_diagonal_(0.0)
    totals = weights.sum(1)
    return float((totals.log() - weights.mul_(similarity).sum(1) / totals).mean())
