"""The paper's measures, written as its formulas: probabilities in, the printed number out.

`probs` is a matrix P of B rows and C columns whose rows are distributions. Every function is plain,
differentiable PyTorch and accepts leading batch dimensions (`..., B, C`). To train on a measure,
take the loss of the same idea from `equida.losses`, which is stable and takes logits.

Reference: Zhang et al. 2022, On the Equity of Nuclear Norm Maximization in Unsupervised Domain
Adaptation.
"""

from typing import Literal

import torch
from torch import Tensor


def _full(probs: Tensor) -> Tensor:
    """Half precision as float32: it can neither count to 2,049 nor to 65,536."""
    return probs if probs.dtype in (torch.float32, torch.float64) else probs.float()


def mean_squares(probs: Tensor) -> Tensor:
    """Mean over rows of the sum of squares, in [1/C, 1]: 1 where every row is one-hot (Eq. 2).

    >>> mean_squares(torch.tensor([[1.0, 0.0], [0.5, 0.5]]))
    tensor(0.7500)
    """
    return _full(probs).square().sum(-1).mean(-1)


def discriminability(probs: Tensor) -> Tensor:
    """How decided the predictions are: `mean_squares` over a whole target set (Sec. 4.3).

    >>> discriminability(torch.eye(3))
    tensor(1.)
    """
    return mean_squares(probs)


def nuclear_norm(probs: Tensor, prior: Tensor | None = None) -> Tensor:
    """Sum of the singular values of P, in [sqrt(B/C), sqrt(B min(B, C))] (Sec. 3.1).

    With shares q as `prior`, of P diag(sqrt(C q_c)). The paper's measure has none (q_c = 1/C).

    >>> nuclear_norm(torch.eye(2)[[0, 0, 1, 1]])
    tensor(2.8284)
    """
    probs = _full(probs)
    if prior is not None:
        probs = probs * (prior * probs.shape[-1]).sqrt()
    singular: Tensor = torch.linalg.svdvals(probs)
    return singular.sum(-1)


def class_weighted_squares(probs: Tensor, r: float = 0.5, prior: Tensor | None = None) -> Tensor:
    """CWS(P) = 1/C sum_c (C q_c)^r s_c / n_c^r, s_c = sum_i P_ic^2, n_c = sum_i P_ic (Eq. 11).

    An absent class counts as 0. The paper's measure is the one without `prior` (q_c = 1/C).

    >>> class_weighted_squares(torch.eye(2)[[0, 0, 0, 1]])
    tensor(1.3660)
    """
    probs = _full(probs)
    squares, sizes = probs.square().sum(-2), probs.sum(-2)
    present = sizes > 0
    terms = torch.where(present, squares / torch.where(present, sizes, 1.0) ** r, 0.0)
    if prior is not None:
        terms = terms * (prior * probs.shape[-1]) ** r
    return terms.mean(-1)


def normalized_squares(
    probs: Tensor,
    r: float = 0.5,
    alpha: float = 1.0,
    eps: float | None = None,
    prior: Tensor | None = None,
) -> Tensor:
    """NS(P) = S / (O_r + alpha S) + eps S, with S = sum_ic P_ic^2 (Eq. 27).

    O_r = sum over ordered pairs i != j of G_ij^r, G_ij = sum_c P_ic P_jc, with 0^0 = 1. With shares
    q as `prior` it is that of G_ij^(r-1) H_ij, H_ij = sum_c P_ic P_jc / (C q_c). `eps=None` is 1e-6
    where B < C and 0 elsewhere; the paper's measure is the one without `prior`.

    >>> normalized_squares(torch.eye(2)[[0, 0, 0, 1]])
    tensor(0.4000)
    """
    probs = _full(probs)
    rows, classes = probs.shape[-2:]
    if eps is None:
        eps = 1e-6 if rows < classes else 0.0
    gram = probs @ probs.mT
    pairs = gram**r
    if prior is not None:
        weighted = (probs / (prior * classes)) @ probs.mT
        pairs = pairs * weighted / torch.where(gram > 0, gram, 1.0)
    off_diagonal = ~torch.eye(rows, dtype=torch.bool, device=probs.device)
    other = torch.where(off_diagonal, pairs, 0.0).sum((-2, -1))
    squares = probs.square().sum((-2, -1))
    return squares / (other + alpha * squares) + eps * squares


def equity(probs: Tensor, kind: Literal["hard", "soft"] = "hard") -> Tensor:
    """1 - sum_c |n_c / N - 1/C|, in [-1 + 2/C, 1]: 1 where all classes have equal size (Sec. 4.3).

    The paper leaves open what n_c is: "hard" counts the rows that are predicted as class c, "soft"
    adds up their probabilities. More equity is more balance, which is not always more truth: real
    label distributions are seldom uniform.

    >>> probs = torch.tensor([[0.9, 0.1], [0.6, 0.4]])
    >>> equity(probs), equity(probs, "soft")
    (tensor(0.), tensor(0.5000))
    """
    probs = _full(probs)
    rows, classes = probs.shape[-2:]
    if kind == "hard":
        predicted = torch.nn.functional.one_hot(probs.argmax(-1), classes)
        sizes = predicted.sum(-2).to(probs.dtype)
    elif kind == "soft":
        sizes = probs.sum(-2)
    else:
        raise ValueError(f"kind is {kind!r}; it is 'hard' or 'soft'")
    return 1.0 - (sizes / rows - 1.0 / classes).abs().sum(-1)
