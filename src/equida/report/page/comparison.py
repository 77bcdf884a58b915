"""The tables: systems by tasks for each way to select a step, and the selections side by side."""

import dataclasses
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from equida.report.page.grid import SELECTIONS, Entry, Grid, System, TaskKey


@dataclass(frozen=True)
class Cell:
    """One number of a table, with what a reader sees on a closer look."""

    value: float | None = None
    spread: float | None = None
    """Standard deviation over seeds; None for a single one."""
    percent: bool = True
    rank: int = 0
    """1 for the best of its column, 2 for the second."""
    lines: tuple[str, ...] = ()
    """What hovering shows: one line for each seed."""
    run: int | None = None
    """A run that the cell leads to."""

    @property
    def text(self) -> str:
        if self.value is None:
            return "–"
        return f"{100 * self.value:.1f}" if self.percent else f"{self.value:.3f}"

    @property
    def spread_text(self) -> str:
        if self.spread is None:
            return ""
        return f"{100 * self.spread:.1f}" if self.percent else f"{self.spread:.3f}"


@dataclass(frozen=True)
class Row:
    system: System
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Table:
    """A table of systems; the best and the second of each column are marked."""

    caption: str
    columns: tuple[str, ...]
    rows: list[Row] = field(default_factory=list)
    selection: str = "last"
    groups: tuple[tuple[str, int], ...] = ()
    """Heads over several columns."""


def comparison(grid: Grid, selection: str) -> list[Table]:
    """One table for each benchmark: accuracy by task, then the means over the tasks."""
    tables = []
    for benchmark in dict.fromkeys(task.benchmark for task in grid.tasks):
        tasks = [task for task in grid.tasks if task.benchmark == benchmark]
        rows = [
            Row(system, _row(grid, system, tasks, selection))
            for system in grid.systems
            if any(e.system == system and e.task in tasks for e in grid.finished)
        ]
        columns = (*(task.name for task in tasks), "accuracy", "equity", "discriminability")
        tables.append(
            Table(
                f"{benchmark}: target accuracy in %, {SELECTIONS[selection]}, "
                f"{_seeds(grid, tasks)}",
                columns,
                _ranked(rows, range(len(tasks) + 1)),
                selection,
                (("accuracy by task", len(tasks)), ("mean over tasks", 3)),
            )
        )
    return tables


def selection_tables(grid: Grid) -> list[Table]:
    """One table for each benchmark: mean accuracy by last step, validators' picks and oracle's."""
    tables = []
    for benchmark in dict.fromkeys(task.benchmark for task in grid.tasks):
        tasks = [task for task in grid.tasks if task.benchmark == benchmark]
        runs = [e for e in grid.finished if e.task in tasks and e.score("last") is not None]
        names = [n for n in grid.selections if any(e.score(n) is not None for e in runs)]
        rows = [
            Row(system, tuple(_selected(grid, system, tasks, name) for name in names))
            for system in sorted({e.system for e in runs})
        ]
        columns = tuple(SELECTIONS[n].removesuffix(" (uses target labels)") for n in names)
        caption = f"{benchmark}: accuracy in %, mean over tasks and seeds"
        tables += [Table(caption, columns, rows)] if rows else []
    return tables


def headline(grid: Grid) -> list[str]:
    """A sentence for each benchmark: which system is best, and what it gains."""
    return [text for table in comparison(grid, "last") if (text := _best(table))]


def _best(table: Table) -> str | None:
    place = len(table.columns) - 3
    scores = [(row.cells[place].value, row.system) for row in table.rows]
    complete = [(value, system) for value, system in scores if value is not None]
    if len(complete) < 2:
        return None
    best, system = max(complete, key=lambda pair: (pair[0], -pair[1].rank))
    over = f" over {place} tasks" if place > 1 else f" on {table.columns[0]}"
    text = (
        f"{table.caption.split(':')[0]}: {system.label} has the best accuracy, {100 * best:.1f} %"
    )
    base = [value for value, other in complete if other.method == "source_only"]
    gain = f", {100 * (best - base[0]):.1f} points above source only" if base else ""
    if system.method == "source_only":
        gain = ", and no adaptation does better"
    return f"{text}{over}{gain} (last step)."


def _seeds(grid: Grid, tasks: Sequence[TaskKey]) -> str:
    """How many runs stand behind a number: "3 seeds", or "1 to 3 seeds" in an uneven grid."""
    counts = Counter((e.system, e.task) for e in grid.finished if e.task in tasks).values()
    few, many = min(counts), max(counts)
    if few == many:
        return f"{many} {'seed' if many == 1 else 'seeds'}"
    return f"{few} to {many} seeds"


def _row(grid: Grid, system: System, tasks: Sequence[TaskKey], selection: str) -> tuple[Cell, ...]:
    cells, groups = [], []
    for task in tasks:
        runs = [e for e in grid.finished if e.system == system and e.task == task]
        groups.append(runs)
        lines = tuple(_line(e, selection) for e in runs)
        scores = [e.score(selection) for e in runs]
        cells.append(_cell(scores, lines, runs[0].number if runs else None))
    return (
        *cells,
        _mean(groups, lambda e: e.score(selection), percent=True),
        _mean(groups, lambda e: (e.figures(selection) or {}).get("equity"), percent=False),
        _mean(groups, lambda e: (e.figures(selection) or {}).get("discriminability"), False),
    )


def _line(entry: Entry, selection: str) -> str:
    figures, score = entry.figures(selection), entry.score(selection)
    if figures is None:
        return f"seed {entry.seed}: no pick"
    told = "no target labels" if score is None else f"{100 * score:.2f} %"
    return (
        f"seed {entry.seed}: {told}, equity {figures['equity']:.3f}, "
        f"discriminability {figures['discriminability']:.3f}, step {figures['step']:.0f}"
    )


def _cell(values: Sequence[float | None], lines: tuple[str, ...], run: int | None) -> Cell:
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return Cell(lines=lines, run=run)
    spread = statistics.stdev(known) if len(known) > 1 else None
    return Cell(statistics.fmean(known), spread, lines=lines, run=run)


def _mean(
    groups: Sequence[Sequence[Entry]], of: Callable[[Entry], float | None], percent: bool
) -> Cell:
    """The mean over tasks of the means over seeds; empty unless every task has all of them."""
    values = [[of(entry) for entry in runs] for runs in groups]
    means = [
        statistics.fmean(known)
        for one in values
        if one and len(known := [value for value in one if value is not None]) == len(one)
    ]
    if len(means) < len(groups):
        done = f"{len(means)} of {len(groups)} tasks have this figure"
        return Cell(percent=percent, lines=(done,))
    return Cell(statistics.fmean(means), percent=percent)


def _selected(grid: Grid, system: System, tasks: Sequence[TaskKey], selection: str) -> Cell:
    groups = [[e for e in grid.finished if e.system == system and e.task == t] for t in tasks]
    cell = _mean(groups, lambda e: e.score(selection), percent=True)
    lines = tuple(
        f"{e.task.name}, seed {e.seed}: {_percent(e.score(selection))}" for g in groups for e in g
    )
    return dataclasses.replace(cell, lines=(*cell.lines, *lines))


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.2f} %"


def _ranked(rows: list[Row], columns: Sequence[int]) -> list[Row]:
    """The rows with best and second of each column marked; ties share a rank."""
    cells = [list(row.cells) for row in rows]
    for column in columns:
        shown = {line[column].text for line in cells if line[column].value is not None}
        best = sorted(shown, key=float, reverse=True)[:2]
        for line in cells:
            cell = line[column]
            if len(rows) > 1 and cell.text in best:
                rank = best.index(cell.text) + 1
                line[column] = dataclasses.replace(cell, rank=rank)
    return [Row(row.system, tuple(line)) for row, line in zip(rows, cells, strict=True)]
