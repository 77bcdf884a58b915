"""The optimum of CWS and NS with a class prior, which the paper does not have."""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from equida.evaluation import class_weighted_squares, normalized_squares
from equida.paper.theory.checks import Check, Context, verdict_fields
from equida.paper.theory.onehot import compositions, cws_of, ns_of, one_hot
from equida.paper.theory.search import search

SHAPES = [(7, 3), (3, 4), (4, 4)]


def greedy_sizes(rows: int, gain: Callable[[int, int], float], classes: int) -> list[int]:
    """The class sizes that add up the largest gains; `gain(c, n)` is that of the n-th row of c.

    Exact where the gains of every class fall with n, as they do for CWS and NS.

    >>> greedy_sizes(3, lambda label, n: [1.0, 0.6][label] / n, 2)
    [2, 1]
    """
    sizes = [0] * classes
    queue = [(-gain(label, 1), label) for label in range(classes)]
    heapq.heapify(queue)
    for _ in range(rows):
        _, label = heapq.heappop(queue)
        sizes[label] += 1
        heapq.heappush(queue, (-gain(label, sizes[label] + 1), label))
    return sizes


def cws_sizes(rows: int, prior: Sequence[float], r: float) -> list[int]:
    """Class sizes of the one-hot matrix with the largest CWS under a prior.

    They maximise sum_c (C p_c)^r n_c^(1-r); without rounding n_c is in proportion to p_c.

    >>> cws_sizes(10, [0.5, 0.3, 0.2], r=0.5)
    [5, 3, 2]
    """

    def gain(label: int, n: int) -> float:
        step: float = n ** (1.0 - r) - (n - 1) ** (1.0 - r)
        return float((len(prior) * prior[label]) ** r) * step

    return greedy_sizes(rows, gain, len(prior))


def ns_sizes(rows: int, prior: Sequence[float], r: float) -> list[int]:
    """Class sizes of the one-hot matrix with the largest NS under a prior.

    They minimise sum_c (n_c^2 - n_c)(C p_c)^-r; without rounding n_c - 1/2 is in proportion to
    p_c^r. To aim at shares q, give a prior in proportion to q^(1/r).

    >>> ns_sizes(60, [0.5, 0.3, 0.2], r=1.0)
    [30, 18, 12]
    """

    def gain(label: int, n: int) -> float:
        return -(n - 1) * float((len(prior) * prior[label]) ** -r)

    return greedy_sizes(rows, gain, len(prior))


def prior_checks(context: Context) -> list[Check]:
    """The optimum with a prior by enumeration, by search, and how near its sizes come."""
    return [_optimum(context, "cws"), _optimum(context, "ns"), _aim(context)]


def _optimum(context: Context, name: str) -> Check:
    generator = context.generator(f"prior {name}")
    # Classes are told apart here, so that fewer starts lead to the one best allocation.
    budget = replace(context.budget, starts=4 * context.budget.starts)
    worst, excess, reached, starts = 0.0, -torch.inf, True, 0
    shapes = SHAPES[: context.budget.shapes]
    for shape in shapes:
        for r in (0.5, 0.75) if name == "cws" else (0.5, 1.0):
            context.note(f"prior, {name}: {shape[0]}x{shape[1]} r={r:g}")
            prior = _random_prior(shape[1], generator)
            best, allocated = _best_one_hot(name, shape, r, prior)
            worst = max(worst, best - allocated)
            eps = 0.01 if shape[0] < shape[1] else 0.0
            measure = (
                partial(class_weighted_squares, r=r, prior=prior)
                if name == "cws"
                else partial(normalized_squares, r=r, prior=prior, eps=eps)
            )
            optimum = best if name == "cws" else best + eps * shape[0]
            result = search(measure, optimum, shape, budget, generator, {"r": r})
            excess, starts = max(excess, result.excess), starts + result.starts
            reached &= result.attained and result.one_hot
    formula = {
        "cws": "CWS with a prior p: one-hot rows with class sizes that maximise "
        "sum (C p)^r n^(1-r)",
        "ns": "NS with a prior p: one-hot rows with class sizes that minimise "
        "sum (n^2 - n)(C p)^-r",
    }
    return Check(
        id=f"prior.{name}",
        section="prior",
        claim=formula[name],
        reference="not in the paper (argument `prior` of the losses)",
        tried=f"all vectors of class sizes and {starts} ascents, random priors, "
        + ", ".join(f"{rows}x{classes}" for rows, classes in shapes),
        computed={"worst_gap_of_allocation": worst, "highest_point_above": excess},
        found=f"greedy allocation within {worst:.0e} of the best one-hot matrix; highest point of "
        f"a search {excess:+.0e} from it",
        deviation=max(worst, excess),
        explanation={
            "cws": "Each row's part stays strictly convex under positive weights, so rows are "
            "one-hot; the gains of a class fall with its size, so greedy allocation is exact and "
            "follows n_c ~ p_c.",
            "ns": "O_r is concave and S convex in one row, so some one-hot row does at least as "
            "well; the cost of a class grows by 2(n - 1)(C p_c)^-r, so n_c - 1/2 ~ p_c^r.",
        }[name],
        **verdict_fields(worst < 1e-12 and excess < 1e-9 and reached, "paper silent"),
    )


def _best_one_hot(
    name: str, shape: tuple[int, int], r: float, prior: Tensor
) -> tuple[float, float]:
    """The best value of all one-hot matrices (from the measure) and that of the allocation."""
    rows, classes = shape
    relative = prior * classes
    values = []
    for sizes in compositions(rows, classes):
        probs = one_hot(sizes)
        if name == "cws":
            values.append(float(class_weighted_squares(probs, r=r, prior=prior)))
        else:
            values.append(float(normalized_squares(probs, r=r, prior=prior, eps=0.0)))
    if name == "cws":
        counts = torch.tensor(cws_sizes(rows, prior.tolist(), r), dtype=torch.float64)
        return max(values), float(cws_of(counts, r, relative))
    counts = torch.tensor(ns_sizes(rows, prior.tolist(), r), dtype=torch.float64)
    return max(values), float(ns_of(counts, 1.0, 0.0, r, relative))


def _aim(context: Context) -> Check:
    """How far the optimal sizes are from the shares that were aimed at."""
    generator = context.generator("aim")
    rows, classes, draws = 600, 6, 50
    worst = {"cws": 0.0, "ns": 0.0, "ns_without_root": 0.0}
    for _ in range(draws):
        shares = _random_prior(classes, generator)
        aimed = shares.square() / shares.square().sum()
        sizes = {
            "cws": cws_sizes(rows, shares.tolist(), 0.5),
            "ns": ns_sizes(rows, aimed.tolist(), 0.5),
            "ns_without_root": ns_sizes(rows, shares.tolist(), 0.5),
        }
        for name, counts in sizes.items():
            distance = (torch.tensor(counts) / rows - shares).abs().max()
            worst[name] = max(worst[name], float(distance))
    near = worst["cws"] < 0.005 and worst["ns"] < 0.005 < worst["ns_without_root"]
    return Check(
        id="prior.aim",
        section="prior",
        claim="to aim at shares q, give CWSM the prior q, and NSM a prior ~ q^(1/r)",
        reference="not in the paper (argument `prior` of the losses)",
        tried=f"{draws} random q, {rows} rows, {classes} classes, r = 0.5",
        computed=worst,
        found=f"largest error of a share: CWS {worst['cws']:.4f}, NS {worst['ns']:.4f} "
        f"(with q itself as the prior {worst['ns_without_root']:.3f})",
        deviation=max(worst["cws"], worst["ns"]),
        explanation="NS answers a prior by its r-th power, so at r = 0.5 the prior has to be "
        "squared and normalised; what is left is the rounding to whole rows and the 1/2.",
        **verdict_fields(near, "paper silent"),
    )


def _random_prior(classes: int, generator: torch.Generator) -> Tensor:
    shares = torch.rand(classes, dtype=torch.float64, generator=generator) + 0.2
    return shares / shares.sum()
