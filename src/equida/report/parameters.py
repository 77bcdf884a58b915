"""The paper's Figure 4: accuracy over lambda and alpha."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from equida.bench.paper_tables import ALPHAS, LAMBDAS, PARAMETER_TASKS
from equida.bench.results import Figures, by_column
from equida.bench.settings import Setting
from equida.bench.sweep import Variant, make_variant
from equida.data.benchmarks import BENCHMARKS
from equida.report.exhibit import PAPER_SEEDS, Exhibit, Material, seed_count
from equida.report.tables import heading


@dataclass(frozen=True)
class Curve:
    """Accuracy over lambda, at one alpha where the method has one."""

    method: str
    benchmark: str
    task: str
    alpha: float | None
    points: Mapping[float, Figures]

    @property
    def drawn(self) -> int:
        return sum(point.mean is not None for point in self.points.values())

    @property
    def seeds(self) -> tuple[int, ...]:
        """Those behind each of its points."""
        return next((tuple(point.by_seed) for point in self.points.values() if point.count), ())

    @property
    def complete(self) -> bool:
        return self.drawn == len(self.points) and len(self.seeds) >= PAPER_SEEDS


def parameter_curves(material: Material) -> list[Curve]:
    """What the figure of lambda and alpha needs, empty points included.

    All points of a panel (a method on a task) are over the same seeds: means over different ones
    would differ by more than lambda does.
    """
    curves = []
    for method, alphas in (("cwsm", (None,)), ("nsm", ALPHAS)):
        for benchmark, task in PARAMETER_TASKS.items():
            setting = material.settings.get(benchmark)
            panel = []
            for alpha in alphas:
                points = {
                    weight: _point(setting, method, benchmark, task, weight, alpha, material.select)
                    for weight in LAMBDAS
                }
                panel.append(Curve(method, benchmark, task, alpha, points))
            curves += _same_seeds(panel)
    return curves


def _same_seeds(panel: Sequence[Curve]) -> list[Curve]:
    """The curves over the seeds that all points with runs have, or else the seed that most have."""
    each = [set(p.by_seed) for curve in panel for p in curve.points.values() if p.count]
    seeds = set.intersection(*each) if each else set()
    if each and not seeds:
        listed = sorted(seed for some in each for seed in some)
        seeds = {max(listed, key=listed.count)}
    return [
        dataclasses.replace(
            curve,
            points={
                weight: Figures({s: v for s, v in p.by_seed.items() if s in seeds}, p.failed)
                for weight, p in curve.points.items()
            },
        )
        for curve in panel
    ]


def _point(
    setting: Setting | None,
    method: str,
    benchmark: str,
    task: str,
    weight: float,
    alpha: float | None,
    select: str,
) -> Figures:
    if setting is None:
        return Figures()
    chosen = {"trade_off": weight} | ({} if alpha is None else {"alpha": alpha})
    records = setting.records([make_variant(method, chosen, benchmark)])
    mine = [record for record in records if record.task == task]
    return by_column(mine, BENCHMARKS[benchmark], (task,), select)[task]


def parameter_figure(material: Material, draw: Callable[[list[Curve]], list[str]]) -> Exhibit:
    """The figure of lambda and alpha; the paper prints no numbers with it."""
    curves = parameter_curves(material)
    have, need = sum(curve.drawn for curve in curves), sum(len(curve.points) for curve in curves)
    commands = []
    for benchmark, task in PARAMETER_TASKS.items():
        if any(c.benchmark == benchmark and not c.complete for c in curves):
            sweeps = ("trade_off=0.5:2.5:0.5", "alpha=1:2.5:0.5")
            commands.append(
                material.command(benchmark, methods="cwsm,nsm", tasks=task, sweeps=sweeps)
            )
    counts = [len(curve.seeds) for curve in curves if curve.drawn]
    remarks = ["The paper's figure has no numbers; it says that accuracy is stable."]
    for curve in curves:
        means = [point.mean for point in curve.points.values() if point.mean is not None]
        if len(means) > 1:
            name = Variant(
                curve.method, shown={} if curve.alpha is None else {"alpha": curve.alpha}
            )
            spread = f"{min(means):.1f} to {max(means):.1f}"
            count = seed_count(len(curve.seeds), len(curve.seeds))
            where = f"{name.title} on {heading(curve.task)}"
            remarks.append(f"{where}: {spread} % over lambda, each point over {count}.")
    return Exhibit(
        "fig:par",
        "Figure 4. Accuracy over lambda and alpha, r = 0.5",
        have,
        need,
        "\n".join(commands),
        figures=tuple(draw(curves) if have else ()),
        remarks=tuple(remarks),
        seeds=(min(counts), max(counts)) if counts else None,
        data={"curves": [_curve_json(curve) for curve in curves]},
    )


def _curve_json(curve: Curve) -> dict[str, Any]:
    points = {
        str(weight): {"mean": p.mean, "std": p.deviation, "seeds": p.count}
        for weight, p in curve.points.items()
    }
    return {
        "method": curve.method,
        "benchmark": curve.benchmark,
        "task": curve.task,
        "alpha": curve.alpha,
        "accuracy_by_lambda": points,
    }
