"""Losses on the spectrum of target predictions: BNM and its fast approximation."""

import math
from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from equida.losses.closed_form import (
    PAPER_BATCH,
    Logits,
    checked,
    from_closed_form,
    one_of,
    relative_prior,
    through_softmax,
)

Normalize = Literal["batch", "min", "sqrt", "sum", "transfer", "optimum"]


def bnm(
    logits: Logits,
    normalize: Normalize = "batch",
    prior: Tensor | Sequence[float] | None = None,
) -> Tensor:
    """Batch nuclear-norm maximization: minus the scaled sum of singular values of the softmax.

    BNM(P) = -||P||_* / B   (Cui et al. 2020, in the scale of Zhang et al. 2022, Eq. 3)

    The minimum is attained at one-hot rows with balanced classes. Lower is better; NaN, with NaN
    gradients, where a logit is not finite.

    Args:
        logits: target predictions, (batch, classes).
        normalize: what the norm is divided by. "batch": B (the paper); "min": min(B, C), the mean
            singular value (the BNM authors' code); "sqrt": sqrt(B C); "sum": nothing; "optimum":
            the bound of the norm, sqrt(B min(B, C)), so that the weight of the loss carries over to
            other batches and numbers of classes; "transfer": the same at other batches, and B at
            36. The weight does not carry over from one of these to another: B / min(B, C) is 1.16
            at 36 x 31 and 3 at 36 x 12. With a prior the norm can be larger than that bound.
        prior: the shares q of the classes to aim at, instead of equal ones: the norm is that of
            P diag(sqrt(C q_c)), which is largest at one-hot rows with class sizes in proportion to
            q. A share below 1e-6 / C counts as 1e-6 / C.

    >>> bnm(torch.eye(2)[[0, 0, 1, 1]] * 50, normalize="sum")
    tensor(-2.8284)
    """
    logits = checked(logits)
    if logits.device.type == "mps":  # has neither float64 nor singular values
        if isinstance(prior, Tensor):
            prior = prior.cpu()
        return bnm(logits.cpu(), normalize, prior).to(logits.device)
    batch, classes = logits.shape
    largest = math.sqrt(batch * min(batch, classes))
    divisors = {
        "batch": float(batch),
        "min": float(min(batch, classes)),
        "sqrt": math.sqrt(batch * classes),
        "sum": 1.0,
        "optimum": largest,
        "transfer": PAPER_BATCH * (largest / math.sqrt(PAPER_BATCH * min(PAPER_BATCH, classes))),
    }
    one_of("normalize", normalize, Normalize)
    scale = -1.0 / divisors[normalize]
    columns = None if prior is None else relative_prior(prior, logits).sqrt()
    try:
        # The smaller problem has more operations around it, which a small matrix does not repay.
        if logits.dtype == torch.float64 or logits.numel() <= 2048:
            probs = logits.softmax(1)
            singular: Tensor = torch.linalg.svdvals(probs if columns is None else probs * columns)
            return singular.sum() * scale
        return from_closed_form(_through_gram, logits, scale, columns)
    except torch.linalg.LinAlgError:  # type: ignore[attr-defined]
        probs = logits.softmax(1)
        if bool(probs.isfinite().all()):
            raise
        # As every other loss of a network that has diverged, so that training can say where.
        return probs.sum() * math.nan


def _through_gram(logits: Tensor, scale: float, columns: Tensor | None) -> tuple[Tensor, Tensor]:
    """||M||_* and its gradient U V^T from the smaller of M M^T and M^T M, in float64.

    M is P, or P diag(columns). U V^T = (M M^T)^(-1/2) M = M (M^T M)^(-1/2). Squaring costs half of
    the digits, which float64 has to spare for a float32 result.
    """
    probs = logits.softmax(1)
    matrix = probs if columns is None else probs * columns
    exact = matrix.double()
    tall = exact.shape[0] > exact.shape[1]
    values, vectors = torch.linalg.eigh(exact.mT @ exact if tall else exact @ exact.mT)
    # A large product is as good in float32 unless P is all but singular, where the higher floor
    # keeps rounding from being blown up.
    large = probs.numel() > 2**16
    # The floor fades out the directions below the noise of the squared matrix: of the subgradients
    # in the null space of P, 0 is the one that every machine agrees on.
    floor = 1e-11 if large else 1e-14
    # The noise is in proportion to the largest value, which is B at most where all columns count
    # alike; how much less it is with a prior depends on the shares.
    largest = probs.shape[0] if columns is None else values[-1]
    inverse = values.clamp_min(largest * floor).rsqrt() * scale
    factor = matrix if large else exact
    root = ((vectors * inverse) @ vectors.mT).to(factor.dtype)
    by_matrix = (factor @ root if tall else root @ factor).to(probs.dtype)
    by_probs = by_matrix if columns is None else by_matrix * columns
    return (values @ inverse).to(probs.dtype), through_softmax(by_probs, probs)


def fbnm(logits: Logits, prior: Tensor | Sequence[float] | None = None) -> Tensor:
    """Fast BNM: minus the mean of the min(B, C) largest column norms of the softmax.

    sum_c sqrt(sum_i P_ic^2) bounds the nuclear norm from above and equals it at one-hot rows, in
    time O(B C) (Cui et al. 2021). Lower is better.

    Args:
        logits: target predictions, (batch, classes).
        prior: the shares q of the classes to aim at, instead of equal ones: column c is multiplied
            by sqrt(C q_c), as in `bnm`.

    >>> fbnm(torch.eye(2)[[0, 0, 1, 1]] * 50)
    tensor(-1.4142)
    """
    logits = checked(logits)
    probs = logits.softmax(1)
    if prior is not None:
        probs = probs * relative_prior(prior, logits).sqrt()
    norms = torch.linalg.vector_norm(probs, dim=0)
    largest: Tensor = norms.topk(min(probs.shape)).values
    return -largest.mean()
