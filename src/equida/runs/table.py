"""The one table of results: rows are variants, columns are tasks or classes, cells have every seed.

Terminal, Markdown, LaTeX, CSV, JSON, the page and `equida paper` are drawn from it.
"""

import dataclasses
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from equida.data.benchmarks import BENCHMARKS, Benchmark
from equida.evaluation import figures
from equida.evaluation.validators import VALIDATORS
from equida.runs import formats, terminal
from equida.runs.entry import Entry, check_selection, selection_phrase
from equida.runs.variant import Variant, rank

AVERAGE = "Avg"
OWN_DATA = "own data"
BEST, SECOND = 1, 2
ACCURACIES = ("accuracy", "mean_class_accuracy")


@dataclass(frozen=True)
class Column:
    """What a column holds."""

    key: str
    title: str
    accuracy: bool = True
    """Whether it holds accuracies in percent, of which the best and the second are marked."""
    entries: str = ""
    """The task whose runs its cells are of; "" for means and classes."""
    figure: str = ""
    """The figure whose mean over tasks it holds; "" for accuracies by task or class."""
    score: bool = False
    """Whether it holds a label-free score, of which the best is marked too: higher is better."""

    @property
    def digits(self) -> int:
        return 1 if self.accuracy else 3


@dataclass(frozen=True)
class Printed:
    """A published number that stands below ours."""

    value: float
    rank: int = 0
    """How it is set where it was published: 1 for the best of its column, 2 for the second."""
    comparable: bool = True
    """Whether it is of the same data, so that a difference means something."""


@dataclass(frozen=True)
class PrintedRow:
    """A published row."""

    title: str
    cells: Mapping[str, Printed]
    """By column."""


class Reference(Protocol):
    """Published numbers to stand beside ours."""

    @property
    def methods(self) -> Sequence[str]:
        """The published rows, in their order."""

    def row(self, variant: Variant) -> PrintedRow | None:
        """The row of a variant, if there is one."""

    def notes(self, variants: Sequence[Variant]) -> list[str]:
        """What a reader must know before comparing."""


@dataclass(frozen=True)
class Cell:
    """One figure by seed, with its rank in the column and the published number."""

    by_seed: Mapping[int, float] = field(default_factory=dict)
    failed: bool = False
    """Whether a run behind it failed."""
    rank: int = 0
    """1 for the best of its column by the printed digits, 2 for the second; 0 for others."""
    printed: Printed | None = None
    entries: tuple[Entry, ...] = ()
    """The finished runs behind it."""

    @property
    def count(self) -> int:
        return len(self.by_seed)

    @cached_property
    def mean(self) -> float | None:
        return statistics.fmean(self.by_seed.values()) if self.by_seed else None

    @cached_property
    def deviation(self) -> float | None:
        """The sample standard deviation over seeds; None for fewer than two."""
        return statistics.stdev(self.by_seed.values()) if self.count > 1 else None

    @property
    def difference(self) -> float | None:
        """Ours minus the published number, where they are of the same data."""
        if self.mean is None or self.printed is None or not self.printed.comparable:
            return None
        return self.mean - self.printed.value


@dataclass(frozen=True)
class Row:
    """One variant."""

    variant: Variant
    cells: Mapping[str, Cell]
    """By the key of their column."""
    printed: PrintedRow | None = None

    @property
    def title(self) -> str:
        return self.variant.title


@dataclass(frozen=True)
class Table:
    """A table that says what it shows: which step of each run, over how many seeds.

    It prints itself in a terminal and in a notebook; `to_frame`, `to_latex`, `to_markdown`,
    `to_csv` and `to_json` give it in other forms.

    >>> print(Table("Accuracy (%) on Office-31", columns=(), rows=(), seeds=()).caption)
    Accuracy (%) on Office-31; no runs yet.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    seeds: tuple[int, ...]
    select: str = "last"
    benchmark: str | None = None
    notes: tuple[str, ...] = ()
    failures: Mapping[str, str] = field(default_factory=dict)
    """By run, why it failed."""

    @property
    def caption(self) -> str:
        count = len(self.seeds)
        if not count:
            return f"{self.title}; no runs yet."
        over = f"mean ± standard deviation over {count} seeds" if count > 1 else "one seed"
        return f"{self.title}; {over}; {selection_phrase(self.select)}."

    @property
    def cells(self) -> list[Cell]:
        """All cells, row by row."""
        return [cell for row in self.rows for cell in row.cells.values()]

    def __str__(self) -> str:
        return terminal.as_text(self)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return formats.html(self)

    def to_frame(self) -> Any:
        """A pandas DataFrame: a row for each variant, and for each column its mean and deviation.

        Raises:
            InputError: pandas is not installed.
        """
        return formats.frame(self)

    def to_markdown(self, file: str | Path | None = None) -> str:
        return formats.written(formats.markdown(self), file)

    def to_latex(self, file: str | Path | None = None) -> str:
        """The table for a paper; it needs the LaTeX packages booktabs and graphicx."""
        return formats.written(formats.latex(self), file)

    def to_csv(self, file: str | Path | None = None) -> str:
        """One line for each figure."""
        return formats.written(formats.csv_text(self), file)

    def to_json(self, file: str | Path | None = None) -> str:
        """Everything that the table knows, with the figure of every seed."""
        return formats.written(formats.json_text(self), file)


def make_table(
    entries: Sequence[Entry],
    *,
    benchmark: str | Benchmark | None,
    tasks: Sequence[str],
    seeds: Sequence[int],
    select: str = "last",
    measures: bool = False,
    network: str = "",
    protocol: str = "",
    data_title: str = "",
    reference: Reference | None = None,
    rank_within_methods: bool = False,
    scores: bool = False,
    labelled: bool = True,
) -> Table:
    """The table of some runs.

    Args:
        entries: the runs, and plans of runs, whose variants are the rows.
        benchmark: whose metric, classes and order of tasks are used, by its registered name or
            itself; None for two paths.
        tasks: the columns, unless the benchmark is judged by classes.
        seeds: those that were asked for.
        select: which evaluation of a run counts.
        measures: whether equity, discriminability and the like follow.
        network: what was trained, for the title.
        protocol: what was made of the data, for the title (see `DataSpec.protocol`). Class shares
            then differ, so that both accuracies are shown.
        data_title: what the data are called; the benchmark's title by default.
        reference: published numbers to stand below ours.
        rank_within_methods: mark the best among the variants of each method by themselves.
        scores: whether the label-free scores of the validators follow; costly ones where a run
            has them.
        labelled: False leaves out the accuracies, where the target has no labels.
    """
    check_selection(select)
    data_set = benchmark if isinstance(benchmark, Benchmark) else BENCHMARKS.get(benchmark)
    second = _second_accuracy(data_set, bool(protocol))
    columns = _columns(data_set, tasks, second, measures) if labelled else []
    columns += [
        Column(name, name.replace("_", " "), False, figure=name, score=True)
        for name in VALIDATORS
        if scores
        and (
            not VALIDATORS[name].costly
            or any(entry.figure(name, select) is not None for entry in entries)
        )
    ]
    by_variant: dict[Any, list[Entry]] = defaultdict(list)
    for entry in entries:
        by_variant[entry.variant.key()].append(entry)
    # Of equal variants the last one names the row.
    variants = _ordered({key: mine[-1].variant for key, mine in by_variant.items()}, reference)
    rows = []
    for variant in variants:
        mine = by_variant[variant.key()]
        printed = reference.row(variant) if reference else None
        cells = row_cells(mine, data_set, tasks, select)
        shown = {
            column.key: dataclasses.replace(
                cells[column.key], printed=_printed(printed, column, columns)
            )
            for column in columns
        }
        rows.append(Row(variant, shown, printed))
    title = data_title or (data_set.title if data_set else str(benchmark or OWN_DATA))
    title += f", {protocol}" if protocol and not data_title else ""
    by_task = data_set is not None and data_set.metric != "accuracy" and not _by_class(data_set)
    measured = "Mean class accuracy" if by_task else "Accuracy"
    failed = (entry for entry in entries if entry.failure is not None)
    return Table(
        (f"{measured} (%) on {title}" if labelled else f"Label-free scores on {title}")
        + (f", {network}" if network else ""),
        tuple(columns),
        ranked(rows, columns, within_methods=rank_within_methods),
        tuple(seeds),
        select,
        data_set.name if data_set else benchmark if isinstance(benchmark, str) else None,
        tuple(_notes(rows, data_set, tasks, second, select, reference, rank_within_methods)),
        {entry.name: str(entry.failure) for entry in failed},
    )


def row_cells(
    entries: Sequence[Entry], data_set: Benchmark | None, tasks: Sequence[str], select: str
) -> dict[str, Cell]:
    """The cells of one row: by task or by class, then the average and the figures.

    The average of a seed is there once all its tasks are.
    """
    failed = {entry.task for entry in entries if entry.failure is not None}
    done = {task: [e for e in entries if e.task == task and e.result is not None] for task in tasks}

    def by_task(score: Callable[[Entry], float | None]) -> list[Cell]:
        return [_cell({e.seed: score(e) for e in done[t]}, done[t], t in failed) for t in tasks]

    def mean_figure(name: str, factor: float = 1.0) -> Cell:
        def score(entry: Entry) -> float | None:
            value = entry.figure(name, select)
            return None if value is None else factor * value

        return average(by_task(score))

    accuracies = by_task(lambda entry: entry.accuracy(select))
    if data_set is not None and _by_class(data_set):
        everything = [entry for task in tasks for entry in done[task]]
        cells = _class_cells(everything, data_set, select, bool(failed))
    else:
        cells = dict(zip(tasks, accuracies, strict=True))
    cells[AVERAGE] = average(accuracies)
    for figure in (*figures.columns(), *map(figures.FIGURES.__getitem__, ACCURACIES)):
        cells[figure.title] = mean_figure(figure.name, 100.0 if figure.percent else 1.0)
    for name in VALIDATORS:
        cells.setdefault(name, mean_figure(name))
    return cells


def average(cells: Sequence[Cell]) -> Cell:
    """The mean over columns, for every seed that has all of them."""
    seeds = set.intersection(*(set(cell.by_seed) for cell in cells)) if cells else set()
    return Cell(
        {s: statistics.fmean(cell.by_seed[s] for cell in cells) for s in sorted(seeds)},
        any(cell.failed for cell in cells),
        entries=tuple(entry for cell in cells for entry in cell.entries),
    )


def ranked(
    rows: Sequence[Row], columns: Sequence[Column], *, within_methods: bool = False
) -> tuple[Row, ...]:
    """The rows with best and second of each accuracy column marked, as printed: ties share.

    With `within_methods`, only the best, and among the rows of each method by themselves.
    """
    if not within_methods:
        return _ranked(rows, columns, (BEST, SECOND))
    methods = dict.fromkeys(row.variant.method for row in rows)
    groups = [[row for row in rows if row.variant.method == name] for name in methods]
    return tuple(row for group in groups for row in _ranked(group, columns, (BEST,)))


def _ranked(
    rows: Sequence[Row], columns: Sequence[Column], ranks: Sequence[int]
) -> tuple[Row, ...]:
    cells = [dict(row.cells) for row in rows]
    for column in (column for column in columns if column.accuracy or column.score):
        values = [_rounded(row[column.key], column) for row in cells]
        known = [value for value in values if value is not None]
        best = dict(zip(sorted(set(known), reverse=True), ranks, strict=False))
        for row, value in zip(cells, values, strict=True):
            if value is not None and len(known) > 1:
                row[column.key] = dataclasses.replace(row[column.key], rank=best.get(value, 0))
    return tuple(
        dataclasses.replace(row, cells=mine) for row, mine in zip(rows, cells, strict=True)
    )


def _rounded(cell: Cell, column: Column) -> float | None:
    return None if cell.mean is None else round(cell.mean, column.digits)


def heading(task: str, data_set: Benchmark | None = None) -> str:
    """A data set's task as papers print it; any other by its name.

    >>> heading("Ar2Cl"), heading("mp2k2photos")
    ('Ar→Cl', 'mp2k2photos')
    """
    known = [data_set] if data_set else [BENCHMARKS[name] for name in BENCHMARKS]
    for each in known:
        if task in each.tasks:
            return "→".join(domain.key for domain in each.task(task))
    return task


def _by_class(data_set: Benchmark | None) -> bool:
    """Whether the columns are classes."""
    return data_set is not None and data_set.judged_by_class


def _second_accuracy(data_set: Benchmark | None, uneven: bool) -> figures.Figure | None:
    """The accuracy that a table shows beside its metric where classes are of uneven sizes."""
    metric = data_set.metric if data_set else "accuracy"
    if _by_class(data_set) or not (uneven or metric != "accuracy"):
        return None
    return figures.FIGURES[next(name for name in ACCURACIES if name != metric)]


def _columns(
    data_set: Benchmark | None,
    tasks: Sequence[str],
    second: figures.Figure | None,
    measures: bool,
) -> list[Column]:
    if data_set is not None and _by_class(data_set):
        made = [Column(name, name) for name in (*data_set.display_classes, AVERAGE)]
    else:
        made = [Column(task, heading(task, data_set), entries=task) for task in tasks]
        made += [Column(AVERAGE, AVERAGE)] if len(tasks) > 1 else []
    if second is not None:
        made.append(Column(second.title, second.title, figure=second.name))
    if measures:
        made += [
            Column(f.title, f.title, accuracy=f.percent, figure=f.name) for f in figures.columns()
        ]
    return made


def _class_cells(
    done: Sequence[Entry], data_set: Benchmark, select: str, failed: bool
) -> dict[str, Cell]:
    found: dict[str, dict[int, float]] = {name: {} for name in data_set.display_classes}
    titles = dict(zip(data_set.classes, data_set.display_classes, strict=True))
    for entry in done:
        names = (entry.result or {}).get("classes", data_set.classes)
        if not set(names) <= set(titles):  # a record of before the classes had these names
            names = data_set.classes
        for name, value in zip(names, entry.class_accuracies(select) or (), strict=False):
            found[titles[name]][entry.seed] = value
    return {name: Cell(values, failed, entries=tuple(done)) for name, values in found.items()}


def _cell(values: Mapping[int, float | None], entries: Iterable[Entry], failed: bool) -> Cell:
    known = {seed: value for seed, value in sorted(values.items()) if value is not None}
    return Cell(known, failed, entries=tuple(entries))


def _ordered(variants: Mapping[Any, Variant], reference: Reference | None) -> list[Variant]:
    """The published rows in their order, then the others in the order of methods."""
    order = {method: number for number, method in enumerate(reference.methods if reference else ())}
    return sorted(
        variants.values(),
        key=lambda variant: (order.get(variant.method, len(order)), rank(variant.method)),
    )


def _printed(row: PrintedRow | None, column: Column, columns: Sequence[Column]) -> Printed | None:
    """The published number of a column; an average over the columns that are shown."""
    if row is None:
        return None
    keys = {each.key for each in columns}
    if column.key != AVERAGE or (AVERAGE in row.cells and set(row.cells) <= keys):
        return row.cells.get(column.key)
    shown = [cell.value for name, cell in row.cells.items() if name in keys and name != AVERAGE]
    return Printed(statistics.fmean(shown)) if shown else None


def _notes(
    rows: Sequence[Row],
    data_set: Benchmark | None,
    tasks: Sequence[str],
    second: figures.Figure | None,
    select: str,
    reference: Reference | None,
    within_methods: bool,
) -> list[str]:
    notes = [
        "Bold: the best of each method, by the printed digits."
        if within_methods
        else "Bold: best of a column; underlined: second; both by the printed digits."
    ]
    printed = [row.variant for row in rows if row.printed is not None]
    if reference is not None and printed:
        notes += reference.notes(printed)
        all_tasks = data_set.tasks if data_set and data_set.metric == "accuracy" else ()
        if 1 < len(tasks) < len(all_tasks):
            notes.append("The average, the published one too, is over the tasks shown.")
    if second is not None:
        notes.append(f"{second.title}: {second.meaning}; mean over tasks.")
    if _by_class(data_set) and select != "last":
        notes.append("Figures by class are known for the weights that were kept, not for others.")
    return notes
