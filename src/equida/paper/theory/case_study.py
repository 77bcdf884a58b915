"""The case study of two rows and two classes: its surfaces as numbers (Sec. 3.6)."""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from equida.evaluation import (
    class_weighted_squares,
    mean_squares,
    normalized_squares,
    nuclear_norm,
)
from equida.paper.theory.checks import Check, Context, Measure, rounded, verdict_fields

VERTICES = {"P1": (0.0, 0.0), "P2": (1.0, 0.0), "P3": (0.0, 1.0), "P4": (1.0, 1.0)}
"""(p1, p2) of the four matrices of Eq. 45."""


def _bnm(probs: Tensor) -> Tensor:
    return nuclear_norm(probs) / probs.shape[-2]


def _cws(r: float) -> Measure:
    return partial(class_weighted_squares, r=r)


def _ns(r: float) -> Measure:
    return partial(normalized_squares, r=r, alpha=1.0, eps=0.0)


@dataclass(frozen=True)
class Panel:
    """A surface of the paper's Figure 1."""

    loss: str
    measure: Measure
    """The negative loss."""
    r: float | None = None


PANELS: dict[str, Panel] = {
    "a": Panel("MS", mean_squares),
    "b": Panel("BNM", _bnm),
    "c": Panel("CWSM", _cws(0.0), 0.0),
    "d": Panel("CWSM", _cws(0.5), 0.5),
    "e": Panel("CWSM", _cws(1.0), 1.0),
    "f": Panel("NSM", _ns(0.0), 0.0),
    "g": Panel("NSM", _ns(0.5), 0.5),
    "h": Panel("NSM", _ns(1.0), 1.0),
}
"""By letter; the paper gives no alpha for NSM, here it is 1."""


def matrices(p1: Tensor, p2: Tensor) -> Tensor:
    """The 2 x 2 prediction matrices with first column (p1, p2) (Eq. 44)."""
    first = torch.stack([p1, p2], -1)
    return torch.stack([first, 1.0 - first], -1)


def surface(measure: Measure, points: int) -> tuple[Tensor, Tensor, Tensor]:
    """p1, p2 and the measure on a square grid over [0, 1]^2."""
    axis = torch.linspace(0.0, 1.0, points, dtype=torch.float64)
    p1, p2 = torch.meshgrid(axis, axis, indexing="ij")
    return p1, p2, measure(matrices(p1, p2))


def case_study_checks(context: Context) -> list[Check]:
    """The three observations of the case study, and what its panels (e) and (h) also show."""
    context.note("case study")
    values = {
        letter: surface(panel.measure, context.budget.grid) for letter, panel in PANELS.items()
    }
    grids = {panel: value for panel, (_, _, value) in values.items()}
    return [
        _optima(grids),
        _without_equity(grids),
        _larger_r(),
        _uncertain(),
        _robustness(),
        _flat(grids),
    ]


def _grid_text(grid: Tensor) -> str:
    return f"{grid.shape[0]} x {grid.shape[1]} grid over p1, p2"


def _optima(grids: dict[str, Tensor]) -> Check:
    tops = {}
    for panel, value in grids.items():
        last = value.shape[0] - 1
        corners = {name: (int(x * last), int(y * last)) for name, (x, y) in VERTICES.items()}
        at = {(int(i), int(j)) for i, j in (value >= value.max() - 1e-12).nonzero()}
        names = [name for name, corner in corners.items() if corner in at]
        tops[panel] = {"vertices": names, "elsewhere": len(at) - len(names)}
    expected = {
        panel: {"vertices": ["P2", "P3"] if panel in "bdegh" else list(VERTICES), "elsewhere": 0}
        for panel in grids
    }
    return Check(
        id="case-study.1",
        claim="P1 to P4 are the optima of MS, P2 and P3 those of BNM and of CWSM and NSM at r > 0",
        reference="Sec. 3.6, observation 1",
        tried=_grid_text(grids["a"]),
        computed=tops,
        found="all four vertices for MS and for r = 0; P2 and P3 alone for the other five",
        explanation="This includes r = 1: at B = C = 2 no other matrix leaves no class empty.",
        **verdict_fields(tops == expected, "holds"),
    )


def _without_equity(grids: dict[str, Tensor]) -> Check:
    same = float((grids["a"] - grids["c"]).abs().max())
    squares = 2.0 * grids["a"]
    monotone = float((grids["f"] - squares / (2.0 + squares)).abs().max())
    return Check(
        id="case-study.2a",
        claim="the surface of CWSM (r = 0) is identical to that of MS, and NSM (r = 0) is similar",
        reference="Sec. 3.6, observation 2",
        tried=_grid_text(grids["a"]),
        computed={"cwsm_minus_ms": same, "nsm_minus_monotone_of_ms": monotone},
        found=f"largest difference to MS {same:.0e}, to 2 MS / (2 + 2 MS) {monotone:.0e}",
        deviation=max(same, monotone),
        explanation="They are identical only because B = C here (the factor is B/C); NSM (r = 0) "
        "is a rising function of MS.",
        **verdict_fields(max(same, monotone) < 1e-12, "holds"),
    )


def _larger_r() -> Check:
    corners = torch.tensor([[0.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    probs = matrices(corners[:, 0], corners[:, 1])
    steps = [0.0, 0.25, 0.5, 0.75, 1.0]
    gaps = {}
    for name, build in (("cwsm", _cws), ("nsm", _ns)):
        gaps[name] = [float(value[1] - value[0]) for value in (build(r)(probs) for r in steps)]
    cwsm_rises = all(low < high for low, high in zip(gaps["cwsm"], gaps["cwsm"][1:], strict=False))
    nsm_stays = max(gaps["nsm"][1:]) - min(gaps["nsm"][1:])
    return Check(
        id="case-study.2b",
        claim="for both CWSM and NSM, larger r leads to more expectation on balanced solutions",
        reference="Sec. 3.6, observation 2",
        tried="value at P2 minus value at P1 for r = 0, 0.25, 0.5, 0.75, 1",
        computed={"r": steps, **gaps},
        found="CWSM: "
        + ", ".join(map(rounded, gaps["cwsm"]))
        + "; NSM: "
        + ", ".join(map(rounded, gaps["nsm"])),
        explanation="This is true for CWSM at B = C = 2 (not for larger classes, see cwsm.r.peak), "
        "but for NSM balance gains the same 0.5 at every r above 0.",
        **verdict_fields(cwsm_rises and nsm_stays < 1e-12, "paper wrong"),
    )


def _uncertain() -> Check:
    """Values and slopes at p1 = p2 = 0.5, the slopes away from it along p1 - p2."""
    middle, step = torch.tensor(0.5, dtype=torch.float64), 1e-6
    computed = {}
    for name, panel in (("bnm", "b"), ("cwsm", "d"), ("nsm", "g")):
        measure = PANELS[panel].measure
        value = float(measure(matrices(middle, middle)))
        aside = float(measure(matrices(middle + step, middle - step)))
        computed[name] = {"value": value, "slope": (aside - value) / step}
    edge = abs(computed["bnm"]["slope"] - 1.0) < 1e-4
    level = max(abs(computed[name]["slope"]) for name in ("cwsm", "nsm")) < 1e-4
    lower = computed["nsm"]["value"] < computed["bnm"]["value"]
    return Check(
        id="case-study.3a",
        claim="near p1 = p2 = 0.5 values and gradients are large for BNM, small for NSM (r = 0.5)",
        reference="Sec. 3.6, observation 3",
        tried="values at (0.5, 0.5) and slopes along (1, -1) by differences",
        computed=computed,
        found="; ".join(
            f"{name.upper()}: value {rounded(one['value'])}, slope {abs(one['slope']):.2f}"
            for name, one in computed.items()
        ),
        explanation="BNM has an edge along p1 = p2, since ||P|| = sqrt(S + 2 |p1 - p2|); NSM is "
        "smooth and level at this point.",
        **verdict_fields(edge and level and lower, "holds"),
    )


def _robustness() -> Check:
    """Mean size of the gradient over the square of half width 0.1 around (0.5, 0.5)."""
    axis = torch.linspace(0.4, 0.6, 20, dtype=torch.float64)
    # Shifted against each other: BNM has no gradient on its edge p1 = p2.
    p1, p2 = torch.meshgrid(axis, axis + 1e-4, indexing="ij")
    sizes = {}
    for name, panel in (("bnm", "b"), ("cwsm", "d"), ("nsm", "g")):
        inputs = (p1.clone().requires_grad_(), p2.clone().requires_grad_())
        value = PANELS[panel].measure(matrices(*inputs)).sum()
        sizes[name] = float(torch.stack(torch.autograd.grad(value, inputs)).norm(dim=0).mean())
    return Check(
        id="case-study.3b",
        claim="CWSM (r = 0.5) too is flat near p1 = p2 = 0.5",
        reference="Sec. 3.6, observation 3",
        tried="mean gradient norm over 20 x 20 points of [0.4, 0.6]^2",
        computed=sizes,
        found=", ".join(f"{name.upper()} {size:.3f}" for name, size in sizes.items()),
        explanation="CWSM is as level as NSM at (0.5, 0.5) and flatter than BNM around it, so "
        "small gradients there are no reason to call NSM alone robust, as the paper does.",
        **verdict_fields(max(sizes["cwsm"], sizes["nsm"]) < 0.5 * sizes["bnm"], "paper silent"),
    )


def _flat(grids: dict[str, Tensor]) -> Check:
    change = max(
        float(grids[panel].diagonal().max() - grids[panel].diagonal().min()) for panel in "eh"
    )
    return Check(
        id="case-study.flat",
        claim="at r = 1 CWSM and NSM (alpha = 1) do not push equal rows to a decision",
        reference="Sec. 3.6, panels (e) and (h)",
        tried="both surfaces along p1 = p2",
        computed={"largest_change": change},
        found=f"constant at 0.5 along p1 = p2 (change {change:.0e})",
        deviation=change,
        explanation="Two equal rows score 0.5 whether undecided or one-hot, which fits the lower "
        "discriminability of r = 1 in Table 7.",
        **verdict_fields(change < 1e-12, "paper silent"),
    )
