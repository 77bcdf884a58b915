"""Where the paper's words on r, eps and alpha go wrong or stop short."""

from functools import partial

import torch

from equida.evaluation import class_weighted_squares, normalized_squares
from equida.losses import nsm
from equida.paper.theory.checks import Check, Context, rounded, verdict_fields
from equida.paper.theory.examples import MATRICES
from equida.paper.theory.onehot import balanced_sizes, cws_of, one_hot, partitions
from equida.paper.theory.search import find_maximum, shape_list

SPLIT = torch.tensor([[0.5, 0.5, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]], dtype=torch.float64)
"""Two rows with disjoint supports, neither of them one-hot."""


def limit_checks(context: Context) -> list[Check]:
    """Every statement on a parameter that the search or a counter-example contradicts or adds."""
    context.note("limits of the parameters")
    return [
        _no_equity_at_one(),
        _no_discriminability_at_one(),
        _pressure_peaks(),
        _no_effect_at_vertices(context),
        _epsilon_rule(context),
        _epsilon_at_equal(context),
        _alpha_zero(),
        _jump_at_zero(),
        _count_of_small_classes(),
        _definition(),
    ]


def _no_equity_at_one() -> Check:
    skewed, even = one_hot([34, 1, 1]), one_hot([12, 12, 12])
    values = [float(class_weighted_squares(probs, r=1.0)) for probs in (skewed, even)]
    sizes = torch.tensor(list(partitions(36, 12)), dtype=torch.float64)
    worth = cws_of(sizes, 1.0)
    ties = int((worth >= worth.max() - 1e-12).sum())
    only_presence = bool(torch.allclose(worth, (sizes > 0).double().mean(-1)))
    return Check(
        id="cwsm.r1.equity",
        claim="CWSM at r = 1 balances the classes most",
        reference='Sec. 3.4: "The larger the r is, the more intensive the equity constraint is"',
        tried=f"all {len(sizes)} multisets of class sizes of 36 rows in 12 classes",
        computed={"skewed_34_1_1": values[0], "even_12_12_12": values[1], "optima_36x12": ties},
        found=f"sizes (34, 1, 1) and (12, 12, 12) both score {rounded(values[1])}; {ties} "
        "different multisets of sizes tie at 36x12",
        explanation="At r = 1 a one-hot matrix scores the share of non-empty classes, whatever "
        "their sizes: it rewards diversity, not equity (Theorems 2 and 3 rightly leave r = 1 out).",
        deviation=abs(values[0] - values[1]),
        **verdict_fields(values[0] == values[1] and ties > 1 and only_presence, "paper wrong"),
    )


def _no_discriminability_at_one() -> Check:
    value = float(class_weighted_squares(SPLIT, r=1.0))
    sharp = float(class_weighted_squares(torch.eye(4, dtype=torch.float64)[:2], r=1.0))
    return Check(
        id="cwsm.r1.discriminability",
        claim="CWSM at r = 1 does not even ask for one-hot rows where B < C",
        reference="Sec. 4.3, r = 1 on Office-Home, where B = 36 < C = 65",
        tried="rows (.5, .5, 0, 0) and (0, 0, .5, .5) against one-hot rows",
        computed={"split": value, "one_hot": sharp},
        found=f"both score {rounded(value)}, the maximum B/C",
        deviation=abs(value - sharp),
        explanation="sum_c s_c / n_c is at most B, and any rows with disjoint supports attain it, "
        "decided or not.",
        **verdict_fields(abs(value - sharp) < 1e-12, "paper silent"),
    )


def _pressure_peaks() -> Check:
    grid = torch.linspace(0.0, 1.0, 1001, dtype=torch.float64).tolist()
    ratios = [
        float(
            class_weighted_squares(MATRICES["P3"], r=r)
            / class_weighted_squares(MATRICES["P2"], r=r)
        )
        for r in grid
    ]
    top = max(ratios)
    peak = grid[ratios.index(top)]
    return Check(
        id="cwsm.r.peak",
        claim="the larger r, the more intensive the equity constraint of CWSM",
        reference='Sec. 3.4: "The larger the r is, the more intensive the equity constraint is"',
        tried="CWS(P3) / CWS(P2), what balance gains over sizes 3 and 1, at 1001 values of r",
        computed={"r": grid[::100], "ratio": ratios[::100], "peak_r": peak, "peak_ratio": top},
        found=f"rises from 1 at r = 0 to {top:.4f} at r = {peak:.2f} and falls back to 1 at r = 1",
        explanation="What balance is worth at one-hot rows is largest near r = 0.5 and vanishes at "
        "both ends.",
        **verdict_fields(0.45 < peak < 0.55 and abs(ratios[-1] - 1.0) < 1e-12, "paper wrong"),
    )


def _no_effect_at_vertices(context: Context) -> Check:
    spread = 0.0
    tried = [(6, 3), (5, 5), (4, 6)]
    for rows, classes in tried:
        for sizes in partitions(rows, classes):
            probs = one_hot(sizes)
            values = [float(normalized_squares(probs, r=r)) for r in (1e-3, 0.25, 0.5, 0.75, 1.0)]
            spread = max(spread, max(values) - min(values))
    context.note("limits of the parameters: eps")
    return Check(
        id="nsm.r.vertices",
        claim="NSM: the intensity of the equity constraint increases as r rises",
        reference='Sec. 3.5: "When 0 < r < 1, the intensity of the equity constraint increases '
        'as r rises"',
        tried="all class sizes of one-hot matrices of 6x3, 5x5 and 4x6, r from 0.001 to 1",
        computed={"largest_change_of_value": spread},
        found=f"values change by at most {spread:.0e} with r",
        deviation=spread,
        explanation="At one-hot matrices every pair counts 0 or 1, so r > 0 changes neither their "
        "values nor which of them is best; it only shapes the way to them.",
        **verdict_fields(spread < 1e-12, "paper wrong"),
    )


def _epsilon_rule(context: Context) -> Check:
    """The printed rule is eps = 0 for B < C; there, half-decided rows are as good as one-hot."""
    shape = (2, 4)
    sharp = torch.eye(4, dtype=torch.float64)[:2]
    by_eps = {}
    for eps in (0.0, 1e-6):
        by_eps[eps] = [float(normalized_squares(p, eps=eps)) for p in (SPLIT, sharp)]
    measure = partial(normalized_squares, r=1.0, eps=0.0)
    generator = context.generator("epsilon rule")
    result = find_maximum(measure, 1.0, shape, context.budget, generator, {"r": 1.0, "eps": 0.0})
    tie = abs(by_eps[0.0][0] - by_eps[0.0][1])
    shown = tie < 1e-12 and by_eps[1e-6][0] < by_eps[1e-6][1] and result.softness > 0.01
    return Check(
        id="nsm.eps.rule",
        claim="eps = 0 for B < C and 1e-6 for B >= C",
        reference="Sec. 3.5 below Eq. 27, against Eq. 40 and Sec. 4.1",
        tried="rows (.5, .5, 0, 0) and (0, 0, .5, .5) against one-hot rows; "
        f"{result.starts} ascents at 2x4, r = 1, eps = 0",
        computed={
            "eps_0": dict(zip(("split", "one_hot"), by_eps[0.0], strict=True)),
            "eps_1e-6": dict(zip(("split", "one_hot"), by_eps[1e-6], strict=True)),
            "search_eps_0_softness": result.softness,
        },
        found=f"eps = 0: both score {rounded(by_eps[0.0][0])}, and ascents end at maximisers "
        f"{result.softness:.2f} from one-hot; eps = 1e-6: one-hot rows win",
        printed={"B < C": 0.0, "B >= C": 1e-6},
        deviation=tie,
        explanation="The rule in the text is inverted: eps > 0 is needed where B < C, as in the "
        "paper's own proof (Eq. 40) and experiments (0 at 36 > 31, 1e-6 at 36 < 65).",
        **verdict_fields(shown, "paper wrong"),
    )


def _epsilon_at_equal(context: Context) -> Check:
    results = []
    for shape in [(4, 4), (6, 6)][: context.budget.shapes]:
        for r in (0.5, 1.0):
            generator = context.generator(f"eps at {shape} {r}")
            measure = partial(normalized_squares, r=r, eps=0.0)
            parameters = {"r": r, "eps": 0.0}
            results.append(find_maximum(measure, 1.0, shape, context.budget, generator, parameters))
    softness = max(one.softness for one in results)
    one_hot_only = all(one.attained and one.one_hot for one in results)
    return Check(
        id="nsm.eps.equal",
        claim="eps = 0 is enough at B = C",
        reference="Eq. 40, which asks for eps > 0 where B <= C",
        tried=f"{sum(one.starts for one in results)} ascents at {shape_list(results)}, "
        "r = 0.5 and 1, eps = 0",
        computed={"softness": softness, "reached": sum(one.reached for one in results)},
        found=f"maximisers within {softness:.0e} of one-hot with eps = 0",
        deviation=softness,
        explanation="B rows with disjoint supports in C = B columns "
        "have one column each, so they are one-hot with eps = 0 too.",
        **verdict_fields(one_hot_only, "paper silent"),
    )


def _alpha_zero() -> Check:
    value = float(normalized_squares(torch.eye(3, dtype=torch.float64), alpha=0.0))
    try:
        nsm(torch.eye(3), alpha=0.0)
        refused = False
    except ValueError:
        refused = True
    return Check(
        id="nsm.alpha.zero",
        claim="alpha >= 0",
        reference="Sec. 3.5 below Eq. 27",
        tried="three orthogonal rows with alpha = 0",
        computed={"value": rounded(value), "loss_refuses": refused},
        found=f"NS is {rounded(value)}; equida.losses.nsm refuses alpha = 0",
        explanation="With B <= C the optimum divides by alpha S + 0, and Eq. 29 and the bound "
        "1/alpha + eps B of Theorem 6 divide by alpha: it must be above 0.",
        **verdict_fields(value == torch.inf and refused, "paper wrong"),
    )


def _jump_at_zero() -> Check:
    probs = MATRICES["P2"]
    near, at_zero, at_one = (
        float(normalized_squares(probs, r=r, eps=0.0)) for r in (1e-9, 0.0, 1.0)
    )
    return Check(
        id="nsm.r.zero",
        claim="NSM jumps between r = 0 and every r above 0",
        reference="Eq. 29",
        tried="NS(P2), alpha = 1, at r = 0, 1e-9 and 1",
        computed={"r_0": at_zero, "r_1e-9": near, "r_1": at_one},
        found=f"{rounded(at_zero)} at r = 0, {rounded(near)} at r = 1e-9 as at r = 1",
        deviation=abs(near - at_zero),
        explanation="Eq. 29 takes 0^0 = 1; with rows that share no class NS jumps as r leaves 0, "
        "so a tiny r is not nearly MaxSquare there.",
        **verdict_fields(abs(near - at_one) < 1e-9 and near - at_zero > 0.1, "paper silent"),
    )


def _count_of_small_classes() -> Check:
    rows, classes = 36, 12
    least, most = rows // classes, -(-rows // classes)
    solutions = [m for m in range(classes + 1) if m * least + (classes - m) * most == rows]
    return Check(
        id="balance.m",
        claim="where C divides B, Eq. 10 does not determine m",
        reference="Eq. 10",
        tried="every m from 0 to C at B = 36, C = 12",
        computed={"solutions": solutions},
        found=f"all {len(solutions)} values of m solve it",
        explanation="Where C divides B, floor and ceiling are equal and any m will do; the class "
        "sizes are determined all the same.",
        **verdict_fields(solutions == list(range(classes + 1)), "paper silent"),
    )


def _definition() -> Check:
    rows, classes = 36, 31
    sizes = balanced_sizes(rows, classes)
    best = 1.0 - sum(abs(size / rows - 1.0 / classes) for size in sizes)
    least = {classes: -1.0 + 2.0 / classes for classes in (12, 31, 65)}
    return Check(
        id="equity.range",
        claim="equal sizes can be out of reach, and equity can be negative",
        reference="Definition 1 (Eqs. 4, 5) and the measure of Sec. 4.3",
        tried="the most balanced one-hot matrix of 36x31, and all rows in one class",
        computed={"best_36x31": best, "least_by_classes": {str(k): v for k, v in least.items()}},
        found=f"at most {best:.3f} at 36x31 with one-hot rows; at least {least[31]:.3f}",
        explanation="One-hot rows cannot have equal class sizes where C does not divide B (as at "
        "36x31 and 36x65), and the measure of equity goes down to -1 + 2/C, below 0.",
        **verdict_fields(best < 1.0 and min(least.values()) < 0.0, "paper silent"),
    )
