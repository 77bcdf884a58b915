"""Accuracy of predictions, overall and by class."""

import torch
from torch import Tensor


def confusion_matrix(predicted: Tensor, labels: Tensor, classes: int) -> Tensor:
    """Counts by true class (rows) and predicted class (columns); labels below 0 are left out.

    >>> confusion_matrix(torch.tensor([0, 1, 1]), torch.tensor([0, 0, -1]), 2).tolist()
    [[1, 1], [0, 0]]
    """
    known = labels >= 0
    cells = labels[known] * classes + predicted[known]
    return torch.bincount(cells, minlength=classes * classes).view(classes, classes)


def accuracy(confusion: Tensor) -> float:
    """Share of right predictions, in [0, 1].

    >>> accuracy(torch.tensor([[3, 1], [0, 0]]))
    0.75
    """
    counts = confusion.double()
    return float(counts.diagonal().sum() / counts.sum())


def class_accuracies(confusion: Tensor) -> Tensor:
    """Share of right predictions in each true class; NaN for a class without samples.

    >>> class_accuracies(torch.tensor([[3, 1], [0, 0]])).tolist()
    [0.75, nan]
    """
    counts = confusion.double()
    return counts.diagonal() / counts.sum(1)


def mean_class_accuracy(confusion: Tensor) -> float:
    """Mean of the accuracies of the classes that have samples, in [0, 1].

    >>> mean_class_accuracy(torch.tensor([[3, 1], [0, 2]]))
    0.875
    """
    return float(class_accuracies(confusion).nanmean())
