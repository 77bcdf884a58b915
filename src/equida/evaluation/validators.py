"""Scores that guess, without target labels, how well a model does on the target.

Every score is one number of the whole target set (or source set), and higher is better. They are
computed side by side at each evaluation, so that a run can say what each of them would have picked.
"""

import math

import torch
from torch import Tensor

SND_SAMPLES = 1000
"""How many target samples soft neighbourhood density looks at: its cost is quadratic in them."""


def negative_entropy(log_probs: Tensor) -> float:
    """Minus the mean entropy of the predictions, in [-log C, 0] (Morerio et al. 2018).

    >>> negative_entropy(torch.full((4, 2), 0.5).log())
    -0.693...
    """
    return float((log_probs.exp() * log_probs).sum(1).mean())


def information_maximization(log_probs: Tensor) -> float:
    """Entropy of the mean prediction minus the mean entropy, in [0, log C] (Musgrave et al. 2022).

    >>> round(information_maximization(torch.eye(2).mul(50).log_softmax(1)), 3)
    0.693
    """
    log_mean = log_probs.logsumexp(0) - math.log(len(log_probs))
    return float(-(log_mean.exp() * log_mean).sum()) + negative_entropy(log_probs)


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


TARGET_VALIDATORS = {
    "entropy": negative_entropy,
    "information_maximization": information_maximization,
    "bnm": nuclear_norm,
    "snd": soft_neighbourhood_density,
}
VALIDATORS = ("source_accuracy", *TARGET_VALIDATORS)
"""All names; source accuracy looks at source labels, the others at target predictions."""
