"""The paper's tables and figures, each from the runs there are, and how to make what is missing."""

import dataclasses
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
    texts: tuple[str, ...] = ()
    """Further tables, as Markdown."""
    figures: tuple[str, ...] = ()
    """Files, beside the document."""
    remarks: tuple[str, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    """Further numbers, for programs."""
    seeds: tuple[int, int] | None = None
    """The fewest and the most seeds behind what there is, where it is a mean over seeds."""

    @property
    def complete(self) -> bool:
        """Whether everything is there, over as many seeds as in the paper."""
        fewest = PAPER_SEEDS if self.seeds is None else self.seeds[0]
        return self.have >= self.need and fewest >= PAPER_SEEDS

    @property
    def status(self) -> str:
        if not self.have:
            return "missing"
        text = "complete" if self.complete else f"{self.have} of {self.need}"
        return text if self.seeds is None else f"{text}, {seed_count(*self.seeds)}"


def seed_count(fewest: int, most: int) -> str:
    """How many seeds, in words.

    >>> seed_count(1, 3), seed_count(1, 1)
    ('1 to 3 seeds', '1 seed')
    """
    number = str(most) if fewest == most else f"{fewest} to {most}"
    return f"{number} seed{'s' if most != 1 else ''}"


def _counts(cells: Sequence[Cell]) -> tuple[int, int] | None:
    """The fewest and the most seeds of the cells that have any."""
    counts = [cell.ours.count for cell in cells if cell.ours.count]
    return (min(counts), max(counts)) if counts else None


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
    shown = _compared(table, setting, records, variants, material.select)
    cells = [cell for line in shown.lines for cell in line.cells.values()]
    have, seeds = sum(cell.ours.count > 0 for cell in cells), _counts(cells)
    exhibit = Exhibit(table.label, table.heading, have, len(cells), tables=(shown,), seeds=seeds)
    if exhibit.complete:
        return exhibit
    few = seeds is not None and seeds[0] < PAPER_SEEDS
    return dataclasses.replace(
        exhibit,
        command=material.command(table.benchmark, seeds=PAPER_SEEDS, **asked),
        remarks=("The paper's figures are means of three seeds.",) if few else (),
    )


def _compared(
    table: PaperTable,
    setting: Setting | None,
    records: Sequence[Record],
    variants: Sequence[Variant],
    select: str,
) -> Comparison:
    """The table, with a row for every variant, those without runs too."""
    benchmark = table.benchmark
    seeds = sorted({record.seed for record in records if record.result is not None})
    tasks = BENCHMARKS[benchmark].tasks
    rows = [Record(variant, task, -1) for variant in variants for task in tasks]
    network = setting.network if setting else ""
    return comparison(
        [*rows, *records],
        benchmark,
        tasks,
        seeds,
        select=select,
        network=network,
        pairs=table in R_TABLES.values(),
    )


def equity_table(material: Material) -> Exhibit:
    """Table 7: equity and discriminability for r = 0.5 and 1, on Ar→Cl and on other data."""
    made = {}
    for name, setting in material.settings.items():
        found = [r for r in setting.records(_r_variants(name)) if r.result is not None]
        if name == EQUITY_TABLE.benchmark:
            found = [record for record in found if record.task == EQUITY_TASK]
        if found:
            made[name] = _measures_table(name, setting.network, found, material.select)
    own = made.get(EQUITY_TABLE.benchmark)
    cells = [cell for line in own.lines for cell in line.cells.values()] if own else []
    exhibit = Exhibit(
        EQUITY_TABLE.label,
        EQUITY_TABLE.heading,
        sum(cell.ours.count > 0 for cell in cells),
        len(EQUITY_TABLE.rows) * len(EQUITY_TABLE.columns),
        tables=tuple(made.values())
        or (_measures_table(EQUITY_TABLE.benchmark, "", [], material.select),),
        remarks=tuple(note.text for note in EQUITY_TABLE.notes)
        + (
            ("Below: the same figures on other data than the paper's.",) if made and not own else ()
        ),
        seeds=_counts(cells),
    )
    command = material.command(
        EQUITY_TABLE.benchmark, methods="cwsm,nsm", tasks=EQUITY_TASK, sweeps=("r=0.5,1",)
    )
    return exhibit if exhibit.complete else dataclasses.replace(exhibit, command=command)


def _measures_table(
    benchmark: str, network: str, records: Sequence[Record], select: str
) -> Comparison:
    """Equity and discriminability of each r, over the tasks and seeds that all of them have."""
    data_set, own = BENCHMARKS[benchmark], benchmark == EQUITY_TABLE.benchmark
    tasks, seeds = shared_places(records, data_set.tasks)
    lines = []
    for variant in _r_variants(benchmark):
        mine = [
            r
            for r in records
            if r.variant.key() == variant.key() and r.task in tasks and r.seed in seeds
        ]
        columns = by_column(mine, data_set, tasks, select)
        printed = EQUITY_TABLE.row(variant.method, variant.shown)
        assert printed is not None
        cells = {
            key: Cell(columns[key], printed.entries[key].value, digits=3, comparable=own)
            for key in MEASURES
        }
        lines.append(Line(variant, cells, printed))
    where = ", ".join(heading(task) for task in tasks) or heading(EQUITY_TASK)
    over = f"the mean of {where}" if len(tasks) > 1 else where
    notes = []
    if tasks:
        listed = ", ".join(map(str, seeds))
        notes.append(f"Over what all rows with runs have: {where}; seed(s) {listed}.")
    elif records:
        notes.append("The rows have no task and seed in common, so that none can be compared.")
    if not own:
        notes.append(
            "The paper's figures are of Office-Home, Ar→Cl, with ResNet-50: another data set and"
            " network, so that no difference is given."
        )
    return Comparison(
        f"Equity and discriminability on {data_set.title}"
        + (f", {over}" if tasks or not records else "")
        + (f", {network}" if network else ""),
        benchmark,
        {key: key for key in MEASURES},
        tuple(lines),
        seeds,
        select,
        tuple(notes),
    )


def shared_places(
    records: Sequence[Record], order: Sequence[str]
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The tasks, in this order, and the seeds that all variants with runs have; most runs win."""
    places: dict[Any, set[tuple[str, int]]] = {}
    for record in records:
        places.setdefault(record.variant.key(), set()).add((record.task, record.seed))
    common = set.intersection(*places.values()) if places else set()
    by_task = {task: {s for t, s in common if t == task} for task in order}
    options = [
        (tuple(t for t in order if seeds <= by_task[t]), tuple(sorted(seeds)))
        for seeds in by_task.values()
        if seeds
    ]
    return max(options, key=lambda option: len(option[0]) * len(option[1]), default=((), ()))


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
