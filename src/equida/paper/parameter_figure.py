"""The paper's Figure 4: accuracy over lambda and alpha."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equida.data.benchmarks import BENCHMARKS
from equida.experiments.sweep import make_variant
from equida.paper.items import PAPER_SEEDS, PaperContext, PaperItem, seed_phrase
from equida.paper.plotting import COLOURS, MARKERS, figure_style, new_figure, save_figure
from equida.paper.tables import ALPHAS, LAMBDAS, PARAMETER_TASKS
from equida.runs.table import Cell, heading, row_cells
from equida.runs.variant import Variant, method_title

LEAST_HEIGHT = 5.0
"""Points of accuracy that an axis spans at least: small changes must not look large."""


@dataclass(frozen=True)
class Curve:
    """Accuracy over lambda, at one alpha where the method has one."""

    method: str
    benchmark: str
    task: str
    alpha: float | None
    points: Mapping[float, Cell]
    """By lambda."""

    @property
    def known(self) -> dict[float, Cell]:
        """The points that have runs."""
        return {weight: point for weight, point in self.points.items() if point.count}

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds behind each of its points."""
        return next((tuple(point.by_seed) for point in self.known.values()), ())

    @property
    def complete(self) -> bool:
        return len(self.known) == len(self.points) and len(self.seeds) >= PAPER_SEEDS

    @property
    def title(self) -> str:
        shown = {} if self.alpha is None else {"alpha": self.alpha}
        return f"{Variant(self.method, shown=shown).title} on {heading(self.task)}"


def parameter_figure(context: PaperContext, folder: Path) -> PaperItem:
    """The figure of lambda and alpha, drawn into `folder`; the paper prints no numbers with it."""
    curves = parameter_curves(context)
    drawn = [curve for curve in curves if curve.known]
    remarks = ["The paper's figure has no numbers; the paper says that accuracy is stable."]
    for curve in drawn:
        means = [point.mean for point in curve.known.values() if point.mean is not None]
        if len(means) > 1:
            spread = f"{min(means):.1f} to {max(means):.1f}"
            count = seed_phrase(len(curve.seeds), len(curve.seeds))
            remarks.append(f"{curve.title}: {spread} % over lambda, each point over {count}.")
    counts = [len(curve.seeds) for curve in drawn]
    return PaperItem(
        "fig:par",
        "Figure 4. Accuracy over lambda and alpha, r = 0.5",
        sum(len(curve.known) for curve in curves),
        sum(len(curve.points) for curve in curves),
        "\n".join(_commands(curves, context)),
        figures=tuple(draw_curves(drawn, folder) if drawn else ()),
        remarks=tuple(remarks),
        seeds=(min(counts), max(counts)) if counts else None,
        data={"curves": [_curve_json(curve) for curve in curves]},
    )


def _commands(curves: Sequence[Curve], context: PaperContext) -> list[str]:
    """What makes the missing points, for each data set that lacks some."""
    sweeps = ("trade_off=0.5:2.5:0.5", "alpha=1:2.5:0.5")
    return [
        context.command(benchmark, methods="cwsm,nsm", tasks=task, sweeps=sweeps)
        for benchmark, task in PARAMETER_TASKS.items()
        if any(curve.benchmark == benchmark and not curve.complete for curve in curves)
    ]


def parameter_curves(context: PaperContext) -> list[Curve]:
    """Every curve of the figure, points without runs included.

    All points of a panel (a method on a task) are over the same seeds: means over different ones
    would differ by more than lambda does.
    """
    curves = []
    for method, alphas in (("cwsm", (None,)), ("nsm", ALPHAS)):
        for benchmark, task in PARAMETER_TASKS.items():
            panel = []
            for alpha in alphas:
                points = {
                    weight: _point(context, method, benchmark, task, weight, alpha)
                    for weight in LAMBDAS
                }
                panel.append(Curve(method, benchmark, task, alpha, points))
            curves += _with_same_seeds(panel)
    return curves


def _point(
    context: PaperContext,
    method: str,
    benchmark: str,
    task: str,
    weight: float,
    alpha: float | None,
) -> Cell:
    group = context.groups.get(benchmark)
    if group is None:
        return Cell()
    values = {"trade_off": weight} | ({} if alpha is None else {"alpha": alpha})
    entries = group.of([make_variant(method, values, benchmark)])
    mine = [entry for entry in entries if entry.task == task]
    return row_cells(mine, BENCHMARKS[benchmark], (task,), context.select)[task]


def _with_same_seeds(panel: Sequence[Curve]) -> list[Curve]:
    """The curves over the seeds that all points with runs have, or else the seed that most have."""
    each = [set(point.by_seed) for curve in panel for point in curve.known.values()]
    seeds = set.intersection(*each) if each else set()
    if each and not seeds:
        listed = sorted(seed for some in each for seed in some)
        seeds = {max(listed, key=listed.count)}
    return [
        dataclasses.replace(
            curve,
            points={
                weight: Cell({s: v for s, v in point.by_seed.items() if s in seeds}, point.failed)
                for weight, point in curve.points.items()
            },
        )
        for curve in panel
    ]


def draw_curves(curves: Sequence[Curve], folder: Path) -> list[str]:
    """Draw accuracy over lambda, a panel for each method and task; the names of the files."""
    panels: dict[tuple[str, str, str], list[Curve]] = {}
    for curve in curves:
        panels.setdefault((curve.method, curve.benchmark, curve.task), []).append(curve)
    with figure_style(**{"axes.spines.top": False, "axes.spines.right": False}):
        figure = new_figure(3.6 * len(panels), 3.2)
        axes = figure.subplots(1, len(panels), squeeze=False)[0]
        for axis, ((method, benchmark, task), lines) in zip(axes, panels.items(), strict=True):
            for number, curve in enumerate(lines):
                _draw_curve(axis, curve, number)
            count = seed_phrase(len(lines[0].seeds), len(lines[0].seeds))
            data = f"{BENCHMARKS[benchmark].title} {heading(task)}"
            axis.set(title=f"{method_title(method)}, {data}, {count}")
            axis.set(xlabel="λ", ylabel="accuracy (%)", xticks=LAMBDAS)
            axis.grid(alpha=0.3)
            _keep_height(axis)
            if any(curve.alpha is not None for curve in lines):
                axis.legend(fontsize=8)
        return save_figure(figure, folder, "parameters")


def _draw_curve(axis: Any, curve: Curve, number: int) -> None:
    axis.errorbar(
        list(curve.known),
        [point.mean for point in curve.known.values()],
        [point.deviation or 0.0 for point in curve.known.values()],
        label=None if curve.alpha is None else f"α = {curve.alpha:g}",
        color=COLOURS[number % len(COLOURS)],
        marker=MARKERS[number % len(MARKERS)],
        markersize=4,
        linewidth=1.3,
        capsize=2,
    )


def _keep_height(axis: Any) -> None:
    low, high = axis.get_ylim()
    if high - low < LEAST_HEIGHT:
        middle = (low + high) / 2
        axis.set_ylim(middle - LEAST_HEIGHT / 2, middle + LEAST_HEIGHT / 2)


def _curve_json(curve: Curve) -> dict[str, Any]:
    points = {
        str(weight): {"mean": point.mean, "std": point.deviation, "seeds": point.count}
        for weight, point in curve.points.items()
    }
    return {
        "method": curve.method,
        "benchmark": curve.benchmark,
        "task": curve.task,
        "alpha": curve.alpha,
        "accuracy_by_lambda": points,
    }
