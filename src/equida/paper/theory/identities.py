"""The paper's formulas against each other and against autograd, on random matrices."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from equida.evaluation import (
    class_weighted_squares,
    mean_squares,
    normalized_squares,
    nuclear_norm,
)
from equida.paper.theory.checks import Check, CheckVerdict, Context, verdict_fields
from equida.paper.theory.onehot import compositions, cws_of, ns_of, nuclear_norm_of, one_hot
from equida.paper.theory.search import random_logits

SHAPES = [(3, 5), (4, 4), (9, 3)]
EXACT = 1e-10


def identity_checks(context: Context) -> list[Check]:
    """One check per formula; the deviation is the worst over all matrices."""
    context.note("identities and inequalities")
    stacks = [_matrices(context, shape) for shape in SHAPES]
    return [_hessian(context), _one_hot_forms(), _order_at_zero(stacks)] + [
        _over_all(stacks, *rest) for rest in _FORMULAS
    ]


def _matrices(context: Context, shape: tuple[int, int]) -> Tensor:
    """Random prediction matrices, from nearly uniform rows to rows with exact zeros."""
    generator = context.generator(f"matrices {shape}")
    logits = random_logits(context.budget.draws, *shape, generator, widest=300.0)
    return logits.softmax(-1)


def _squares(probs: Tensor) -> Tensor:
    return probs.square().sum((-2, -1))


def _cws_zero(probs: Tensor) -> Tensor:
    rows, classes = probs.shape[-2:]
    return class_weighted_squares(probs, r=0.0) - mean_squares(probs) * rows / classes


def _ns_zero(probs: Tensor, alpha: float = 2.0, eps: float = 0.01) -> Tensor:
    pairs, squares = probs.shape[-2] * (probs.shape[-2] - 1), _squares(probs)
    printed = (1.0 - pairs / (pairs + alpha * squares)) / alpha + eps * squares
    return normalized_squares(probs, r=0.0, alpha=alpha, eps=eps) - printed


def _ns_one(probs: Tensor, alpha: float = 2.0, eps: float = 0.01) -> Tensor:
    squares, sizes = _squares(probs), probs.sum(-2)
    printed = 1.0 / (sizes.square().sum(-1) / squares + alpha - 1.0) + eps * squares
    return normalized_squares(probs, r=1.0, alpha=alpha, eps=eps) - printed


def _ns_special(probs: Tensor) -> Tensor:
    printed = _squares(probs) / probs.sum(-2).square().sum(-1)
    return normalized_squares(probs, r=1.0, alpha=1.0, eps=0.0) - printed


def _below_norm(probs: Tensor) -> Tensor:
    cws = class_weighted_squares(probs, r=0.5) * probs.shape[-1]
    return (cws - nuclear_norm(probs)).clamp_min(0.0)


def _above_norm(probs: Tensor) -> Tensor:
    return (nuclear_norm(probs) - probs.square().sum(-2).sqrt().sum(-1)).clamp_min(0.0)


def _root_below_linear(probs: Tensor) -> Tensor:
    linear = normalized_squares(probs, r=1.0)
    excess = [normalized_squares(probs, r=r) - linear for r in (0.1, 0.25, 0.5, 0.75, 0.9)]
    return torch.stack(excess).clamp_min(0.0)


_FORMULAS: list[tuple[str, str, str, Callable[[Tensor], Tensor], CheckVerdict, str]] = [
    (
        "cws.r0",
        "CWS at r = 0 is the squares loss up to a constant",
        "Sec. 3.4",
        _cws_zero,
        "holds",
        "The constant is B/C: CWS_0 = (B/C) (-MS).",
    ),
    ("ns.r0", "the form of NS at r = 0", "Eq. 29", _ns_zero, "holds", "The form takes 0^0 as 1."),
    (
        "ns.r1",
        "the form of NS at r = 1",
        "Eq. 30",
        _ns_one,
        "holds",
        "The form holds for every alpha and eps.",
    ),
    (
        "ns.special",
        "NS at r = 1, alpha = 1, eps = 0 is S over the sum of squared class sizes",
        "Eq. 31",
        _ns_special,
        "holds",
        "This is the special case of Eq. 30.",
    ),
    (
        "norm.lower",
        "C CWS(P; r = 0.5) <= nuclear norm, with equality at one-hot rows",
        "Eq. 46, there for one-hot rows only",
        _below_norm,
        "paper silent",
        "P D^(-1/2) with D the class sizes has operator norm 1, so the nuclear norm is at least "
        "its inner product with P: CWSM pushes up a lower bound of what BNM pushes up.",
    ),
    (
        "norm.upper",
        "nuclear norm <= sum_c sqrt(s_c), with equality at one-hot rows",
        "not in the paper",
        _above_norm,
        "paper silent",
        "This is the triangle inequality over columns; the right side is what fast BNM maximises.",
    ),
    (
        "ns.monotone",
        "NS_r <= NS_1 for 0 < r <= 1",
        "not in the paper",
        _root_below_linear,
        "paper silent",
        "Every pair G lies in [0, 1], so G^r >= G; this is what closes Theorem 6 for B > C.",
    ),
]


def _over_all(
    stacks: list[Tensor],
    name: str,
    claim: str,
    reference: str,
    difference: Callable[[Tensor], Tensor],
    verdict: CheckVerdict,
    explanation: str,
) -> Check:
    worst = max(float(difference(probs).abs().max()) for probs in stacks)
    return Check(
        id=name,
        claim=claim,
        reference=reference,
        found=f"worst deviation {worst:.0e}",
        explanation=explanation,
        **_shared_fields(stacks, worst),
        **verdict_fields(worst < EXACT, verdict),
    )


def _shared_fields(stacks: list[Tensor], worst: float) -> dict[str, Any]:
    shapes = ", ".join(f"{rows}x{classes}" for rows, classes in SHAPES)
    return {
        "tried": f"{sum(map(len, stacks))} random matrices of {shapes}, float64",
        "computed": worst,
        "deviation": worst,
    }


def _order_at_zero(stacks: list[Tensor]) -> Check:
    """NS_0 puts matrices in the order of MaxSquare."""
    worst = 0.0
    for probs in stacks:
        values = normalized_squares(probs, r=0.0, eps=0.0)[mean_squares(probs).argsort()]
        worst = max(worst, float((values[:-1] - values[1:]).max()))
    worst = max(worst, 0.0)
    return Check(
        id="ns.r0.order",
        claim="NSM at r = 0 orders matrices as MaxSquare does",
        reference="Sec. 3.5 below Eq. 29",
        found=f"worst inversion {worst:.0e}",
        explanation="NS_0 is a rising function of S alone, so no equity is asked for.",
        **_shared_fields(stacks, worst),
        **verdict_fields(worst < EXACT, "holds"),
    )


def _one_hot_forms() -> Check:
    worst = 0.0
    shapes = [(5, 3), (3, 4), (4, 4)]
    for rows, classes in shapes:
        for sizes in compositions(rows, classes):
            probs, counts = one_hot(sizes), torch.tensor(sizes, dtype=torch.float64)
            differences = [nuclear_norm(probs) - nuclear_norm_of(counts)]
            differences.append(nuclear_norm(probs) - classes * class_weighted_squares(probs, r=0.5))
            for r in (0.25, 0.5, 1.0):
                differences.append(class_weighted_squares(probs, r=r) - cws_of(counts, r))
                ns = normalized_squares(probs, r=r, alpha=2.0, eps=0.01)
                differences.append(ns - ns_of(counts, 2.0, 0.01))
            worst = max(worst, *(abs(float(one)) for one in differences))
    return Check(
        id="one-hot.forms",
        claim="nuclear norm, CWS and NS at one-hot rows follow from the class sizes; the norm is "
        "C CWS at r = 0.5",
        reference="Eqs. 8, 25, 41 and 46",
        tried="every vector of class sizes of 5x3, 3x4 and 4x4",
        computed=worst,
        found=f"worst deviation {worst:.0e}",
        deviation=worst,
        explanation="Eq. 41 is printed for r = 1 and holds for every r > 0.",
        **verdict_fields(worst < EXACT, "holds"),
    )


def _hessian(context: Context) -> Check:
    """Autograd's second derivative in one row against the printed diagonal."""
    generator = context.generator("hessian")
    worst, least, count = 0.0, torch.inf, max(context.budget.draws // 20, 10)
    for draw in range(count):
        probs = torch.rand(4, 3, dtype=torch.float64, generator=generator) + 1e-3
        probs = probs / probs.sum(1, keepdim=True)
        others, row = probs[1:], probs[0]
        if draw % 3 == 0:
            # A class that no other row uses: a_c = b_c = 0, the second case of the proof.
            others = torch.eye(3, dtype=torch.float64)[[0, 1, 1]]
        r = float(torch.rand((), dtype=torch.float64, generator=generator)) * 0.98 + 0.01

        def row_value(x: Tensor, others: Tensor = others, r: float = r) -> Tensor:
            return 3 * class_weighted_squares(torch.cat([x[None], others]), r=r)

        numeric = torch.autograd.functional.hessian(row_value, row)
        printed = torch.diag(_printed_hessian(row, others.sum(0), others.square().sum(0), r))
        scale = float(printed.abs().max())
        worst = max(worst, float((numeric - printed).abs().max()) / scale)
        least = min(least, float(printed.diagonal().min()))
    return Check(
        id="theorem-2.hessian",
        claim="CWS in one row has the printed diagonal Hessian, and it is positive",
        reference="Eqs. 16 and 17, in the proof of Theorem 2",
        tried=f"{count} random rows with 0.01 < r < 0.99 against autograd in float64, a third of "
        "them with a class that no other row uses",
        computed={"worst_relative_deviation": worst, "least_entry": least},
        found=f"worst relative deviation {worst:.0e}; smallest entry {least:.2g} > 0",
        deviation=worst,
        explanation="At x_c = a_c = 0 the printed entry is 0/0; CWS stays strictly convex there "
        "with the convention 0/0^r = 0.",
        **verdict_fields(worst < 1e-9 and least > 0.0, "holds"),
    )


def _printed_hessian(row: Tensor, sizes: Tensor, squares: Tensor, r: float) -> Tensor:
    top = (1 - r) * (2 - r) * row**2 + 4 * (1 - r) * sizes * row
    return (top + 2 * sizes**2 + r * (1 + r) * squares) / (sizes + row) ** (r + 2)
