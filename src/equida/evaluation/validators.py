"""Scores that guess, without target labels, how well a model does on the target.

Every score is one number of the whole target set, and higher is better. They are computed side by
side at each evaluation, so that a run can say what each of them would have picked. To add one,
write its function here with `@validator` above it: runs, tables and the page then show it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from equida.registry import Registry

SND_SAMPLES = 1000
"""How many target samples soft neighbourhood density looks at: its cost is quadratic in them."""

Score = Callable[[Tensor], float]


@dataclass(frozen=True)
class Validator:
    """A label-free score of target predictions."""

    name: str
    title: str
    meaning: str
    """Which step it picks, as the end of a sentence."""
    score: Score | None
    """From log-probabilities of the target, (samples, classes); None: source accuracy, which is
    measured with the source's labels."""


VALIDATORS: Registry[Validator] = Registry("validator")
VALIDATORS.add(
    "source_accuracy",
    Validator(
        "source_accuracy",
        "source accuracy",
        "the step with the best accuracy on source samples",
        None,
    ),
)


def validator(name: str, title: str, meaning: str) -> Callable[[Score], Score]:
    """Make a score of target log-probabilities known by `name`."""

    def add(score: Score) -> Score:
        VALIDATORS.add(name, Validator(name, title, meaning, score))
        return score

    return add


@validator("entropy", "entropy", "the step with the lowest mean entropy of target predictions")
def negative_entropy(log_probs: Tensor) -> float:
    """Minus the mean entropy of the predictions, in [-log C, 0] (Morerio et al. 2018).

    >>> negative_entropy(torch.full((4, 2), 0.5).log())
    -0.693...
    """
    return float((log_probs.exp() * log_probs).sum(1).mean())


@validator(
    "information_maximization",
    "information maximization",
    "the step whose target predictions are certain one by one and diverse on average",
)
def information_maximization(log_probs: Tensor) -> float:
    """Entropy of the mean prediction minus the mean entropy, in [0, log C] (Musgrave et al. 2022).

    >>> round(information_maximization(torch.eye(2).mul(50).log_softmax(1)), 3)
    0.693
    """
    log_mean = log_probs.logsumexp(0) - math.log(len(log_probs))
    return float(-(log_mean.exp() * log_mean).sum()) + negative_entropy(log_probs)


@validator(
    "bnm", "nuclear norm (BNM)", "the step with the largest nuclear norm of target predictions"
)
def nuclear_norm(log_probs: Tensor) -> float:
    """Nuclear norm over sqrt(N min(N, C)), its maximum: in (0, 1] (as the BNM validator).

    >>> round(nuclear_norm(torch.eye(2).mul(50).log_softmax(1)), 6)
    1.0
    """
    probs = log_probs.exp().double()
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
def soft_neighbourhood_density(log_probs: Tensor, temperature: float = 0.05) -> float:
    """Mean entropy of each sample's similarities to the others (Saito et al. 2021).

    Predictions are scaled to unit length; similarities become a distribution over the other samples
    by softmax at `temperature`. Dense neighbourhoods, which a good model has, give a high entropy.
    Sets above 1000 samples are thinned evenly.

    >>> soft_neighbourhood_density(torch.zeros(5, 3).log_softmax(1))
    1.386...
    """
    thinned = log_probs[:: max(1, math.ceil(len(log_probs) / SND_SAMPLES))]
    units = torch.nn.functional.normalize(thinned.exp(), dim=1)
    similarity = units @ units.mT / temperature
    similarity.fill_diagonal_(-math.inf)
    weights = similarity.softmax(1)
    return float(torch.special.entr(weights).sum(1).mean())
