"""The two sides of SymNets, on the joint softmax of a source and a target classifier.

Logits have 2C columns: 0..C-1 are the source classifier's, C..2C-1 the target classifier's.
(Zhang et al. 2019, Domain-Symmetric Networks; the losses of its first version.)
"""

import torch.nn.functional as F
from torch import Tensor

from equida.alignment.precision import full_precision, same_width


@full_precision
def symmetric_classifier_loss(source: Tensor, labels: Tensor, target: Tensor) -> Tensor:
    """What the two classifiers minimise: right on the source, each claiming its own domain.

    CE of the source half + CE of the target half - mean log P(source half) on the source
    - mean log P(target half) on the target. Value >= 0; lower is better.

    Args:
        source: logits of source samples, (batch, 2 * classes).
        labels: their classes, in [0, classes).
        target: logits of target samples.

    >>> import torch
    >>> undecided = torch.zeros(1, 4)
    >>> symmetric_classifier_loss(undecided, torch.tensor([0]), undecided)  # 4 log 2
    tensor(2.7726)
    """
    classes = _half(source, target)
    task = F.cross_entropy(source[:, :classes], labels)
    task = task + F.cross_entropy(source[:, classes:], labels)
    claim = _log_halves(source)[0].mean() + _log_halves(target)[1].mean()
    return task - claim


@full_precision
def symmetric_feature_loss(
    source: Tensor, labels: Tensor, target: Tensor, weight: float = 1.0
) -> Tensor:
    """What the features minimise: both halves say the source's class, neither owns the target.

    1/2 (CE of labels + CE of labels + C) over all 2C on the source
    + weight * (-1/2 mean (log P(source half) + log P(target half)) + H) on the target, where H is
    the mean entropy of the class whichever half says it. Value >= 0; lower is better.

    Args:
        source: logits of source samples, (batch, 2 * classes).
        labels: their classes, in [0, classes).
        target: logits of target samples.
        weight: of what is asked of the target.

    >>> import torch
    >>> undecided, mine = torch.zeros(1, 4), torch.tensor([[9.0, 0.0, 9.0, 0.0]])
    >>> loss = [symmetric_feature_loss(z, torch.tensor([0]), z) for z in (undecided, mine)]
    >>> bool(loss[1] < loss[0])  # sure of the class, and neither half owns it
    True
    """
    classes = _half(source, target)
    category = F.cross_entropy(source, labels) + F.cross_entropy(source, labels + classes)
    of_source, of_target = _log_halves(target)
    confusion = -0.5 * (of_source + of_target).mean()
    by_class = target.log_softmax(1).reshape(-1, 2, classes).logsumexp(1)
    entropy = -(by_class.exp() * by_class).sum(1).mean()
    return 0.5 * category + weight * (confusion + entropy)


def _half(source: Tensor, target: Tensor) -> int:
    same_width(source, target)
    if source.shape[1] % 2:
        raise ValueError(f"logits have {source.shape[1]} columns; they must be 2 * classes, even")
    return source.shape[1] // 2


def _log_halves(logits: Tensor) -> tuple[Tensor, Tensor]:
    """The logarithm of the probability that falls to the source half, and to the target half."""
    halves = logits.log_softmax(1).reshape(len(logits), 2, -1).logsumexp(2)
    return halves[:, 0], halves[:, 1]
