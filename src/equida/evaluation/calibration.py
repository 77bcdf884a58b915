"""Confidences that mean what they say: a temperature fitted to samples with labels."""

import math

import torch
from torch import Tensor

LOWEST, HIGHEST = 0.05, 20.0
"""Between these temperatures the best one is looked for."""


def fit_temperature(log_probs: Tensor, labels: Tensor) -> float:
    """The temperature T for which softmax(log_probs / T) has the least cross-entropy.

    Above 1 the predictions were too sure of themselves, below 1 not sure enough (Guo et al. 2017).
    The samples must not have been trained on.

    Args:
        log_probs: predictions, (samples, classes).
        labels: the true classes, (samples,); those below 0 are left out.

    >>> fit_temperature(torch.tensor([[0.5, 0.5], [0.8, 0.2]]).log(), torch.tensor([-1, -1]))
    1.0
    """
    known = labels >= 0
    logits, wanted = log_probs[known].double(), labels[known]
    if not len(logits):
        return 1.0

    def slope(log_temperature: float) -> float:
        """The derivative of the cross-entropy by 1 / T, in which it is convex."""
        scaled = logits / math.exp(log_temperature)
        right = logits[torch.arange(len(logits)), wanted]
        return float(((scaled.softmax(1) * logits).sum(1) - right).mean())

    low, high = math.log(LOWEST), math.log(HIGHEST)
    # The slope falls as the temperature rises: below the best one it is positive.
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(middle) > 0 else (low, middle)
    return math.exp((low + high) / 2)


def with_temperature(log_probs: Tensor, temperature: float) -> Tensor:
    """The log-probabilities at another temperature; the most likely class stays the same.

    >>> with_temperature(torch.tensor([[0.8, 0.2]]).log(), 2.0).exp()
    tensor([[0.6667, 0.3333]])
    """
    return (log_probs / temperature).log_softmax(1)


def expected_accuracy(log_probs: Tensor) -> float:
    """The mean probability of the most likely class: the accuracy that the predictions promise.

    It is right for samples like those that the temperature was fitted to. On a target that has
    moved away from the source it is optimistic.

    >>> round(expected_accuracy(torch.tensor([[0.8, 0.2], [0.6, 0.4]]).log()), 3)
    0.7
    """
    return float(log_probs.exp().amax(1).mean())
