"""Losses on the spectrum of target predictions: BNM and its fast approximation."""

import math
from typing import Literal

import torch
from torch import Tensor

from equida.losses.closed import checked, from_closed_form

Normalize = Literal["batch", "min", "sqrt", "sum"]


def bnm(logits: Tensor, normalize: Normalize = "batch") -> Tensor:
    """Batch nuclear-norm maximization: minus the scaled sum of singular values of the softmax.

    BNM(P) = -||P||_* / B   (Cui et al. 2020, in the scale of Zhang et al. 2022, Eq. 3)

    The minimum is attained at one-hot rows with balanced classes. Lower is better.

    Args:
        logits: target predictions, (batch, classes).
        normalize: what the norm is divided by. "batch": B (the paper); "min": min(B, C), the mean
            singular value (the BNM authors' code); "sqrt": sqrt(B C); "sum": nothing. The weight of
            the loss does not carry over from one to another: B / min(B, C) is 1.16 at 36 x 31 and
            3 at 36 x 12.

    >>> bnm(torch.eye(2)[[0, 0, 1, 1]] * 50, normalize="sum")
    tensor(-2.8284)
    """
    logits = checked(logits)
    batch, classes = logits.shape
    divisors = {
        "batch": float(batch),
        "min": float(min(batch, classes)),
        "sqrt": math.sqrt(batch * classes),
        "sum": 1.0,
    }
    if normalize not in divisors:
        raise ValueError(f"normalize is {normalize!r}; it must be one of {', '.join(divisors)}")
    return from_closed_form(_bnm, logits, divisors[normalize])


def _bnm(logits: Tensor, divisor: float) -> tuple[Tensor, Tensor]:
    probs = logits.softmax(1)
    u, s, vh = torch.linalg.svd(probs, full_matrices=False)
    by_probs = (u @ vh) / -divisor
    gradient = torch.ops.aten._softmax_backward_data(by_probs, probs, 1, probs.dtype)
    return s.sum() / -divisor, gradient


def fbnm(logits: Tensor) -> Tensor:
    """Fast BNM: minus the mean of the min(B, C) largest column norms of the softmax.

    sum_c sqrt(sum_i P_ic^2) bounds the nuclear norm from above and equals it at one-hot rows, in
    time O(B C) (Cui et al. 2021). Lower is better.

    >>> fbnm(torch.eye(2)[[0, 0, 1, 1]] * 50)
    tensor(-1.4142)
    """
    probs = checked(logits).softmax(1)
    norms = torch.linalg.vector_norm(probs, dim=0)
    return -norms.topk(min(probs.shape)).values.mean()
