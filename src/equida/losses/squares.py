"""Losses on the squares of target predictions: MaxSquare, CWSM, NSM."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from equida.losses.closed_form import (
    Logits,
    Scale,
    checked,
    from_closed_form,
    in_range,
    log_probabilities,
    one_of,
    positive,
    refuse_prior_without_equity,
    relative_prior,
    rescale,
    through_softmax,
)


def max_square(logits: Logits) -> Tensor:
    """Maximum squares: minus the mean over rows of the sum of squared probabilities.

    MS(P) = -1/B sum_ic P_ic^2   (Chen et al. 2019, in the scale of Zhang et al. 2022, Eq. 2)

    Every one-hot matrix is a minimum, also one in which all rows fall into one class. Value in
    [-1, -1/C]; lower is better.

    >>> max_square(torch.zeros(3, 4))
    tensor(-0.2500)
    """
    logits = checked(logits, per_row=True)
    return logits.softmax(1).square().sum() / -logits.shape[0]


def iw_max_square(logits: Logits, ratio: float = 0.2) -> Tensor:
    """Maximum squares with rare predictions weighted up: -1/C sum_i w_i sum_c P_ic^2.

    w_i = 1 / max(h_i^ratio B^(1-ratio), 1), where h_i counts the rows with the same predicted class
    as row i; no gradient flows through it (Chen et al. 2019, Eq. 13, with the batch as the image).
    Value in [-1, 0); lower is better.

    Args:
        logits: target predictions, (batch, classes).
        ratio: pressure towards rare classes, in [0, 1].

    >>> iw_max_square(torch.eye(2)[[0, 0, 0, 1]] * 50)
    tensor(-0.5621)
    """
    in_range("ratio", ratio, 0.0, 1.0)
    probs = checked(logits).softmax(1)
    predicted = probs.argmax(1)
    alike = (predicted[:, None] == predicted).sum(1).to(probs.dtype)
    weights = 1.0 / (alike**ratio * probs.shape[0] ** (1.0 - ratio)).clamp_min(1.0)
    total: Tensor = (weights * probs.square().sum(1)).sum()
    return total / -probs.shape[1]


def cwsm(
    logits: Logits,
    r: float = 0.5,
    prior: Tensor | Sequence[float] | None = None,
    normalize: Scale = "paper",
) -> Tensor:
    """Class weighted squares maximization: minus CWS of the softmax of `logits`.

    CWS(P) = 1/C sum_c (sum_i P_ic^2) / (sum_i P_ic)^r   (Zhang et al. 2022, Eq. 11)

    Each class counts by the inverse of its soft size, so the minimum is attained at one-hot rows
    with balanced classes (0 < r < 1). Value in [-(B/C)^(1-r), 0); lower is better.

    Args:
        logits: target predictions, (batch, classes).
        r: pressure towards equal class sizes, in [0, 1]; 0 is MaxSquare up to a constant, and at 1
            only the number of non-empty classes counts, not their sizes.
        prior: the shares q of the classes to aim at, instead of equal ones; r must be above 0.
            Class c's term is multiplied by (C q_c)^r, which moves the minimum to class sizes in
            proportion to q (0 < r < 1; at r = 1 it says what each class is worth). A share below
            1e-6 / C counts as 1e-6 / C.
        normalize: "paper"; "optimum": divided by the bound of CWS, (B/C)^(1-r) or, where B < C, B/C
            (of equal shares; reached where C divides B or B < C), so that the weight of the loss
            carries over to other batches and numbers of classes (in the paper's scale a sample's
            gradient grows as (B/C)^(1-r)); "transfer": that, times the bound of a batch of 36, so
            that it is the paper's there.

    >>> balanced, collapsed = torch.eye(2) * 50, torch.tensor([[50.0, 0.0], [50.0, 0.0]])
    >>> bool(cwsm(balanced) < cwsm(collapsed))
    True
    """
    in_range("r", r, 0.0, 1.0)
    refuse_prior_without_equity(r, prior)
    one_of("normalize", normalize, Scale)
    logits = checked(logits)
    weights = None if prior is None else relative_prior(prior, logits) ** r
    loss = from_closed_form(_cwsm, logits, float(r), weights)
    batch, classes = logits.shape
    return rescale(
        loss,
        normalize,
        batch,
        lambda rows: min(rows / classes, (rows / classes) ** (1.0 - r)),
    )


def _cwsm(logits: Tensor, r: float, weights: Tensor | None) -> tuple[Tensor, Tensor]:
    classes = logits.shape[1]
    probs = logits.softmax(1)
    # An absent class has size 0 and no squares: the floor makes its term 0, as in the limit. It
    # leaves room for a weight, which is C at most.
    sizes = probs.sum(0).clamp_min(torch.finfo(probs.dtype).tiny * classes)
    scale = sizes.pow(-r) if weights is None else sizes.pow(-r) * weights
    terms = probs.square().sum(0) * scale
    by_probs = torch.addcmul(terms / sizes * (r / classes), probs, scale, value=-2.0 / classes)
    return terms.sum() / -classes, through_softmax(by_probs, probs)


def nsm(
    logits: Logits,
    r: float = 0.5,
    alpha: float = 1.0,
    eps: float | None = None,
    prior: Tensor | Sequence[float] | None = None,
    normalize: Scale = "paper",
) -> Tensor:
    """Normalized squares maximization: minus NS of the softmax of `logits`.

    NS(P) = S / (O_r + alpha S) + eps S,  S = sum_ic P_ic^2,
    O_r = sum over pairs i != j of (sum_c P_ic P_jc)^r   (Zhang et al. 2022, Eq. 27)

    Two rows that may be of the same class cost; so for 0 < r <= 1 the minimum is attained at
    one-hot rows with balanced classes. Value in [-(1/alpha + eps B), 0); lower is better.

    Args:
        logits: target predictions, (batch, classes).
        r: pressure towards equal class sizes, in [0, 1]; 0 leaves none.
        alpha: above 0; larger values flatten the gradient near the minimum.
        eps: weight of S alone; None is 1e-6 where batch < classes, where rows with disjoint
            supports would otherwise do as well as one-hot rows, and 0 elsewhere.
        prior: the shares q of the classes to aim at, instead of equal ones; r must be above 0. The
            term of a pair becomes G^(r-1) H with G = sum_c P_ic P_jc and H = sum_c P_ic P_jc /
            (C q_c). Batches that are drawn at random cost least on average where the shares of
            the classes are q; in a single batch, n_c - 1/2 is in proportion to q_c. A share below
            1e-6 / C counts as 1e-6 / C.
        normalize: "paper"; "optimum": divided by the bound of NS, which is
            1 / (max(B/C - 1, 0) + alpha) + eps B for r > 0 and equal shares (it is reached where C
            divides B or B < C, and missed elsewhere, at alpha = 1 by a ninth at most), so that the
            weight of the loss carries over to other batches (in the paper's scale a sample's
            gradient shrinks as 1/B); "transfer": that, times the bound of a batch of 36, so that it
            is the paper's there.

    >>> balanced, collapsed = torch.eye(2) * 50, torch.tensor([[50.0, 0.0], [50.0, 0.0]])
    >>> nsm(balanced), nsm(collapsed)
    (tensor(-1.), tensor(-0.5000))
    """
    in_range("r", r, 0.0, 1.0)
    refuse_prior_without_equity(r, prior)
    one_of("normalize", normalize, Scale)
    positive("alpha", alpha)
    logits = checked(logits)
    if eps is None:
        eps = 1e-6 if logits.shape[0] < logits.shape[1] else 0.0
    in_range("eps", eps, 0.0, math.inf)
    scale = None if prior is None else 1.0 / relative_prior(prior, logits)
    # G^r counts where G itself has underflowed: 1e-45 to the 0.25 is 2e-11, to the 0.05 it is 6e-3.
    compute = _nsm_of_small_powers if 0.0 < r < 0.25 else _nsm
    loss = from_closed_form(compute, logits, float(r), float(alpha), float(eps), scale)
    batch, classes = logits.shape

    def largest(rows: int) -> float:
        alike = rows - 1.0 if r == 0.0 else max(rows / classes - 1.0, 0.0)
        return 1.0 / (alike + alpha) + eps * rows

    return rescale(loss, normalize, batch, largest)


def _nsm(
    logits: Tensor, r: float, alpha: float, eps: float, scale: Tensor | None
) -> tuple[Tensor, Tensor]:
    probs = logits.softmax(1)
    squares = probs.square().sum()
    pairs, pairs_by_probs = _pairs(probs, r, scale)
    value, by_squares, by_pairs = _normalized(squares, pairs, alpha, eps)
    by_probs = torch.addcmul(pairs_by_probs * by_pairs, probs, 2.0 * by_squares)
    return value, through_softmax(by_probs, probs)


def _normalized(
    squares: Tensor, pairs: Tensor, alpha: float, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """-(S / (O + alpha S) + eps S) and its derivatives by S and by O."""
    denominator = pairs + alpha * squares
    inverse = denominator.pow(-2)
    value, by_squares = -squares / denominator, -pairs * inverse
    if eps:
        value, by_squares = value - eps * squares, by_squares - eps
    return value, by_squares, squares * inverse


def _pairs(probs: Tensor, r: float, scale: Tensor | None) -> tuple[Tensor, Tensor]:
    """O_r = sum over i != j of G_ij^(r-1) H_ij, and its gradient by P.

    G = P P^T and H = P diag(scale) P^T; without `scale`, H is G.
    """
    if r == 0.0:
        rows = probs.shape[0]
        return probs.new_tensor(rows * (rows - 1)), torch.zeros_like(probs)
    if r == 1.0:
        scaled = probs if scale is None else probs * scale
        others = scaled.sum(0) - scaled
        return (probs * others).sum(), 2.0 * others
    gram = _gram(probs)
    gram.diagonal().zero_()
    powers = gram.pow(r)
    # G^(r-1) without its pole: where G underflows, so does the gradient by the logits, which is
    # bounded by r G^r.
    floored = gram.clamp_min(torch.finfo(gram.dtype).tiny)
    slopes = powers / floored
    if scale is None:
        return powers.sum(), (slopes @ probs) * (2.0 * r)
    weighted = _gram(probs * scale.sqrt())
    weighted.diagonal().zero_()
    # H / G is a mean of `scale`, so that it is bounded where both underflow.
    by_gram = slopes * (weighted / floored)
    by_probs = torch.addcmul((by_gram @ probs) * (2.0 * r - 2.0), slopes @ probs, scale, value=2.0)
    return (slopes * weighted).sum(), by_probs


def _gram(rows: Tensor) -> Tensor:
    """rows @ rows.T; where it is large, what symmetry gives twice is computed once."""
    if rows.shape[0] < 512:
        return rows @ rows.mT
    upper, lower = rows.chunk(2)
    across = upper @ lower.mT
    return torch.cat(
        [torch.cat([_gram(upper), across], 1), torch.cat([across.mT, _gram(lower)], 1)]
    )


def _nsm_of_small_powers(
    logits: Tensor, r: float, alpha: float, eps: float, scale: Tensor | None
) -> tuple[Tensor, Tensor]:
    """`_nsm` in float64, which has room for nearly all powers, or else in logarithms.

    G_ij >= P_ic P_jc for each class c, and so it is at least the smallest probability over C.
    """
    if _can_look(logits) and float(log_probabilities(logits.detach()).min()) > -600.0:
        exact = None if scale is None else scale.double()
        value, gradient = _nsm(logits.double(), r, alpha, eps, exact)
        return value.to(logits.dtype), gradient.to(logits.dtype)
    return _nsm_in_logarithms(logits, r, alpha, eps, scale)


def _can_look(logits: Tensor) -> bool:
    """Whether a decision can be taken by the values, on a device that has float64."""
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return False
    return logits.device.type not in ("meta", "mps")


def _nsm_in_logarithms(
    logits: Tensor, r: float, alpha: float, eps: float, scale: Tensor | None
) -> tuple[Tensor, Tensor]:
    """`_nsm` with log G instead of G, for powers that outlive the underflow of G.

    With R_ij the distribution in proportion to P_ic P_jc, the gradient of O_r by row i of the
    logits is 2 r sum_j G_ij^r (R_ij - P_i). Costs B^2 C exponentials, in blocks of rows.

    With `scale`, T_ij = G_ij^(r-1) H_ij takes the place of G_ij^r, where H_ij / G_ij is the mean of
    `scale` over R_ij: 2 sum_j (G_ij^r scale R_ij + T_ij ((r - 1) R_ij - r P_i)).
    """
    log_probs = log_probabilities(logits)
    probs = log_probs.exp()
    rows, classes = logits.shape
    everyone = torch.arange(rows, device=logits.device)
    powers, by_logits = [], []
    for block in torch.split(everyone, max(1, 2**24 // (rows * classes))):
        joint = log_probs[block][:, None] + log_probs
        log_gram = joint.logsumexp(2)
        together = (joint - log_gram[..., None]).exp()
        power = torch.where(block[:, None] == everyone, 0.0, (r * log_gram).exp())
        meeting = (power[..., None] * together).sum(1)
        if scale is not None:
            power = power * (together * scale).sum(2)
            reweighted = meeting * (scale / r)
            meeting = reweighted + (power[..., None] * together).sum(1) * (1.0 - 1.0 / r)
        powers.append(power.sum(1))
        by_logits.append(meeting - powers[-1][:, None] * probs[block])
    squares = probs.square().sum()
    value, by_squares, by_pairs = _normalized(squares, torch.cat(powers).sum(), alpha, eps)
    from_squares = through_softmax(probs * (2.0 * by_squares), probs)
    return value, from_squares + torch.cat(by_logits) * (2.0 * r * by_pairs)
