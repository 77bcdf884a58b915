"""The paper's tables and figures, each from the runs there are, and how to make what is missing."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from equida.bench.paper_tables import (
    ALPHAS,
    EQUITY_TABLE,
    EQUITY_TASK,
    LAMBDAS,
    PARAMETER_TASKS,
    R_TABLES,
    RESULTS,
    TSNE_METHODS,
    TSNE_TASK,
    PaperTable,
)
from equida.bench.results import MEASURES, Figures, Record, by_column
from equida.bench.settings import Setting
from equida.bench.sweep import Variant, make_variant
from equida.data.benchmarks import BENCHMARKS
from equida.report.commands import bench_command
from equida.report.tables import Cell, Comparison, Line, comparison, heading

PAPER_SEEDS = 3


@dataclass(frozen=True)
class Exhibit:
    """One table or figure of the paper."""

    name: str
    title: str
    have: int
    """Cells or panels that the runs give."""
    need: int
    """Cells or panels of the paper."""
    command: str = ""
    """What makes it, or what is missing of it."""
    tables: tuple[Comparison, ...] = ()
    figures: tuple[str, ...] = ()
    """Files, beside the document."""
    remarks: tuple[str, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    """Further numbers, for programs."""

    @property
    def status(self) -> str:
        if self.have >= self.need:
            return "complete"
        return f"{self.have} of {self.need}" if self.have else "missing"


@dataclass(frozen=True)
class Material:
    """What exhibits are made from."""

    settings: Mapping[str, Setting]
    """By benchmark, the runs to use."""
    root: Path
    """The folder of runs that a command for a new data set names."""
    select: str = "last"

    def command(self, benchmark: str, **asked: Any) -> str:
        return bench_command(benchmark, self.settings.get(benchmark), self.root, **asked)


def result_tables(material: Material) -> list[Exhibit]:
    """Tables 4 to 6: every method on every task."""
    return [
        _table_exhibit(
            material,
            table,
            [Variant(row.method) for row in table.rows],
            methods="all" if len(table.rows) == 11 else ",".join(r.method for r in table.rows),
        )
        for table in RESULTS.values()
    ]


def r_tables(material: Material) -> list[Exhibit]:
    """Tables 8 to 10: accuracy for r = 0.5 and 1."""
    return [
        _table_exhibit(material, table, _r_variants(name), methods="cwsm,nsm", sweeps=("r=0.5,1",))
        for name, table in R_TABLES.items()
    ]


def _r_variants(benchmark: str) -> list[Variant]:
    return [make_variant(m, {"r": r}, benchmark) for m in ("cwsm", "nsm") for r in (0.5, 1.0)]


def _table_exhibit(
    material: Material, table: PaperTable, variants: Sequence[Variant], **asked: Any
) -> Exhibit:
    setting = material.settings.get(table.benchmark)
    records = setting.records(variants) if setting else []
    shown = _compared(table.benchmark, setting, records, variants, material.select)
    cells = [cell for line in shown.lines for cell in line.cells.values()]
    need, have = len(cells), sum(cell.ours.mean is not None for cell in cells)
    seeds = min(cell.ours.count for cell in cells)
    return Exhibit(
        table.label,
        table.heading,
        have,
        need,
        ""
        if have >= need and seeds >= PAPER_SEEDS
        else material.command(table.benchmark, seeds=PAPER_SEEDS, **asked),
        (shown,),
        remarks=(f"Here every cell has {seeds} seed(s); the paper's have three.",)
        if have >= need and seeds < PAPER_SEEDS
        else (),
    )


def _compared(
    benchmark: str,
    setting: Setting | None,
    records: Sequence[Record],
    variants: Sequence[Variant],
    select: str,
) -> Comparison:
    """The table, with a row for every variant, those without runs too."""
    seeds = sorted({record.seed for record in records if record.result is not None})
    tasks = BENCHMARKS[benchmark].tasks
    rows = [Record(variant, task, -1) for variant in variants for task in tasks]
    network = setting.network if setting else ""
    return comparison([*rows, *records], benchmark, tasks, seeds, select=select, network=network)


def equity_table(material: Material) -> Exhibit:
    """Table 7: equity and discriminability for r = 0.5 and 1, on Ar→Cl and on other data."""
    made, have = [], 0
    for name, setting in material.settings.items():
        data_set = BENCHMARKS[name]
        variants = _r_variants(name)
        records = setting.records(variants)
        own = name == EQUITY_TABLE.benchmark
        tasks = [EQUITY_TASK] if own else list(data_set.tasks)
        tasks = [t for t in tasks if any(r.task == t and r.result for r in records)]
        if not tasks:
            continue
        table = _measures_table(setting, records, variants, tasks, material.select)
        made.append(table)
        if own:
            cells = [cell for line in table.lines for cell in line.cells.values()]
            have = sum(cell.ours.mean is not None for cell in cells)
    need = len(EQUITY_TABLE.rows) * len(EQUITY_TABLE.columns)
    command = material.command(
        EQUITY_TABLE.benchmark, methods="cwsm,nsm", tasks=EQUITY_TASK, sweeps=("r=0.5,1",)
    )
    return Exhibit(
        EQUITY_TABLE.label,
        EQUITY_TABLE.heading,
        have,
        need,
        "" if have >= need else command,
        tuple(made),
        remarks=tuple(note.text for note in EQUITY_TABLE.notes)
        + (
            () if have or not made else ("Below: the same figures on other data than the paper's.",)
        ),
    )


def _measures_table(
    setting: Setting,
    records: Sequence[Record],
    variants: Sequence[Variant],
    tasks: Sequence[str],
    select: str,
) -> Comparison:
    own = setting.benchmark == EQUITY_TABLE.benchmark
    lines = []
    for variant in variants:
        mine = [r for r in records if r.variant.key() == variant.key() and r.task in tasks]
        columns = by_column(mine, BENCHMARKS[setting.benchmark], tasks, select)
        printed = EQUITY_TABLE.row(variant.method, variant.shown) if own else None
        cells = {
            key: Cell(columns[key], printed.entries[key].value if printed else None, digits=3)
            for key in MEASURES
        }
        lines.append(Line(variant, cells, printed))
    where = ", ".join(heading(task) for task in tasks)
    over = f"the mean of {where}" if len(tasks) > 1 else where
    return Comparison(
        f"Equity and discriminability on {BENCHMARKS[setting.benchmark].title}, {over},"
        f" {setting.network}",
        setting.benchmark,
        {key: key for key in MEASURES},
        tuple(lines),
        tuple(sorted({r.seed for r in records if r.result is not None})),
        select,
    )


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


def parameter_curves(material: Material) -> list[Curve]:
    """What the figure of lambda and alpha needs, empty points included."""
    curves = []
    for method, alphas in (("cwsm", (None,)), ("nsm", ALPHAS)):
        for benchmark, task in PARAMETER_TASKS.items():
            setting = material.settings.get(benchmark)
            for alpha in alphas:
                points = {
                    weight: _point(setting, method, benchmark, task, weight, alpha, material.select)
                    for weight in LAMBDAS
                }
                curves.append(Curve(method, benchmark, task, alpha, points))
    return curves


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
        if any(c.benchmark == benchmark and c.drawn < len(c.points) for c in curves):
            sweeps = ("trade_off=0.5:2.5:0.5", "alpha=1:2.5:0.5")
            commands.append(
                material.command(benchmark, methods="cwsm,nsm", tasks=task, sweeps=sweeps)
            )
    remarks = ["The paper's figure has no numbers; it says that accuracy is stable."]
    for curve in curves:
        means = [point.mean for point in curve.points.values() if point.mean is not None]
        if len(means) > 1:
            name = Variant(
                curve.method, shown={} if curve.alpha is None else {"alpha": curve.alpha}
            )
            spread = f"{min(means):.1f} to {max(means):.1f}"
            remarks.append(f"{name.title} on {heading(curve.task)}: {spread} % over lambda.")
    return Exhibit(
        "fig:par",
        "Figure 4. Accuracy over lambda and alpha, r = 0.5",
        have,
        need,
        "\n".join(commands),
        figures=tuple(draw(curves) if have else ()),
        remarks=tuple(remarks),
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


def tsne_place(material: Material) -> tuple[Setting, str, int] | None:
    """The task and seed that all four methods have: the paper's, or the first there is."""
    order = sorted(material.settings, key=lambda name: name != TSNE_TASK[0])
    for name in order:
        setting = material.settings[name]
        tasks = sorted(BENCHMARKS[name].tasks, key=lambda task: (name, task) != TSNE_TASK)
        for task in tasks:
            each = [set(setting.seeds(Variant(method), task)) for method in TSNE_METHODS]
            seeds = set.intersection(*each)
            if seeds:
                return setting, task, min(seeds)
    return None


def tsne_figure(material: Material, draw: Callable[[Setting, str, int], list[str]]) -> Exhibit:
    """t-SNE of target predictions, on the paper's task or on another that there is."""
    place = tsne_place(material)
    exact = place is not None and (place[0].benchmark, place[1]) == TSNE_TASK
    benchmark, task = TSNE_TASK
    command = material.command(benchmark, methods=",".join(TSNE_METHODS), tasks=task, seeds=1)
    remarks: tuple[str, ...] = ()
    if place is not None:
        setting, shown, seed = place
        title = BENCHMARKS[setting.benchmark].title
        what = f"Drawn: {title} {heading(shown)}, seed {seed}, {setting.network}."
        remarks = (what,) if exact else (f"{what} The paper's is Office-Home Ar→Cl.",)
    return Exhibit(
        "fig:tsne",
        "Figure 3. t-SNE of target predictions by MaxSquare, BNM, CWSM and NSM",
        4 if exact else 0,
        4,
        "" if exact else command,
        figures=tuple(draw(*place)) if place else (),
        remarks=remarks,
    )
