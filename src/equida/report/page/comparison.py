"""The tables: systems by tasks for each way to select a step, and the selections side by side."""

import dataclasses
import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from equida.bench.results import Figures, average
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
    """One table for each benchmark: accuracy by task, then the means over several tasks."""
    tables = []
    for benchmark in dict.fromkeys(task.benchmark for task in grid.tasks):
        tasks = [task for task in grid.tasks if task.benchmark == benchmark]
        rows = [
            Row(system, _row(grid, system, tasks, selection))
            for system in grid.systems
            if any(e.system == system and e.task in tasks for e in grid.finished)
        ]
        means = ("accuracy",) if len(tasks) > 1 else ()
        columns = (*(task.name for task in tasks), *means, "equity", "discriminability")
        tables.append(
            Table(
                f"{benchmark}: target accuracy in %, {SELECTIONS[selection]}, "
                f"{_seeds(grid, tasks)}",
                columns,
                _ranked(rows, range(len(tasks) + len(means))),
                selection,
                (("accuracy by task", len(tasks)), ("mean over tasks", 3))
                if means
                else (("accuracy", 1), ("predictions", 2)),
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
        # A system that lacks a task has no mean, and nothing to compare here.
        rows = [row for row in rows if any(cell.value is not None for cell in row.cells)]
        columns = tuple(SELECTIONS[n].removesuffix(" (uses target labels)") for n in names)
        caption = f"{benchmark}: accuracy in %, mean over tasks and seeds"
        tables += [Table(caption, columns, rows)] if rows else []
    return tables


def headline(grid: Grid) -> list[str]:
    """A sentence for each benchmark: what adaptation gains, and what the seeds allow to say."""
    return [text for table in comparison(grid, "last") if (text := _verdict(table))]


def _verdict(table: Table) -> str | None:
    # The accuracy over all tasks; the one task's where there is one.
    place = len(table.columns) - 3
    rows = [(row.cells[place], row.system) for row in table.rows]
    complete = [(cell, system) for cell, system in rows if cell.value is not None]
    if len(complete) < 2:
        return None
    where = f"over {place} tasks" if place else f"on {table.columns[0]}"
    best, system = max(complete, key=lambda pair: (pair[0].value or 0.0, -pair[1].rank))
    others = [(cell, other) for cell, other in complete if other != system]
    base = [cell.value for cell, other in others if other.method == "source_only" and cell.value]
    gain = f"{100 * ((best.value or 0.0) - max(base)):.1f} points" if base else ""
    tell = _of_one_seed if best.spread is None else _of_seeds
    return f"{table.caption.split(':')[0]}: {tell(best, system, others, where, gain)}"


def _of_one_seed(
    best: Cell, system: System, others: Sequence[tuple[Cell, System]], where: str, gain: str
) -> str:
    """What one seed shows; it ranks nothing."""
    if system.method == "source_only":
        text = f"no adaptation does better than source only, {best.text} % {where}"
    elif gain:
        text = f"adaptation gains up to {gain} over source only {where} ({system.label}, "
        text += f"{best.text} %)"
    else:
        least = min((cell for cell, _ in others), key=lambda cell: cell.value or 0.0)
        text = f"accuracies from {least.text} to {best.text} % {where}"
    return f"{text}, last step; one seed does not rank systems."


def _of_seeds(
    best: Cell, system: System, others: Sequence[tuple[Cell, System]], where: str, gain: str
) -> str:
    """The best mean, and which others are as good as far as the seeds tell."""
    text = f"{system.label} has the highest mean accuracy, {best.text} ± {best.spread_text} % "
    text += f"{where}, last step"
    if gain:
        text += f", {gain} above source only"
    alike = [other.label for cell, other in others if _within_noise(best, cell)]
    if not alike:
        return f"{text}, and is ahead of all others by more than seed noise."
    if len(alike) > 4:
        alike = [*alike[:3], f"{len(alike) - 3} others"]
    listed = " and ".join([", ".join(alike[:-1]), alike[-1]] if len(alike) > 1 else alike)
    return f"{text}; within seed noise of {listed}."


def _within_noise(best: Cell, other: Cell) -> bool:
    """Whether two means differ by no more than two single seeds of them are expected to."""
    assert best.value is not None
    assert other.value is not None
    assert best.spread is not None
    noise = math.hypot(best.spread, best.spread if other.spread is None else other.spread)
    return best.value - other.value <= noise


def _seeds(grid: Grid, tasks: Sequence[TaskKey]) -> str:
    """How many runs stand behind a number: "3 seeds", or "1 to 3 seeds" in an uneven grid."""
    counts = Counter((e.system, e.task) for e in grid.finished if e.task in tasks).values()
    few, many = min(counts), max(counts)
    if few == many:
        return f"{many} {'seed' if many == 1 else 'seeds'}"
    return f"{few} to {many} seeds"


def _row(grid: Grid, system: System, tasks: Sequence[TaskKey], selection: str) -> tuple[Cell, ...]:
    groups = [[e for e in grid.finished if e.system == system and e.task == t] for t in tasks]
    cells = [
        _cell(
            Figures(_by_seed(runs, lambda e: e.score(selection))),
            tuple(_line(e, selection) for e in runs),
            run=runs[0].number if runs else None,
        )
        for runs in groups
    ]
    if len(tasks) > 1:
        cells.append(_mean(groups, lambda e: e.score(selection), percent=True))
    measures = (_measure(name, selection) for name in ("equity", "discriminability"))
    return (*cells, *(_mean(groups, of, percent=False) for of in measures))


def _measure(name: str, selection: str) -> Callable[[Entry], float | None]:
    return lambda entry: (entry.figures(selection) or {}).get(name)


def _line(entry: Entry, selection: str) -> str:
    figures, score = entry.figures(selection), entry.score(selection)
    if figures is None:
        return f"seed {entry.seed}: no pick"
    told = "no target labels" if score is None else f"{100 * score:.2f} %"
    return (
        f"seed {entry.seed}: {told}, equity {figures['equity']:.3f}, "
        f"discriminability {figures['discriminability']:.3f}, step {figures['step']:.0f}"
    )


def _by_seed(runs: Sequence[Entry], of: Callable[[Entry], float | None]) -> dict[int, float]:
    """The figure of each seed that has one; the mean where a seed was run more than once."""
    found: dict[int, list[float]] = defaultdict(list)
    for entry in runs:
        if (value := of(entry)) is not None:
            found[entry.seed].append(value)
    return {seed: statistics.fmean(values) for seed, values in sorted(found.items())}


def _cell(
    figures: Figures, lines: tuple[str, ...], *, percent: bool = True, run: int | None = None
) -> Cell:
    return Cell(figures.mean, figures.deviation, percent, lines=lines, run=run)


def _mean(
    groups: Sequence[Sequence[Entry]], of: Callable[[Entry], float | None], percent: bool
) -> Cell:
    """The mean over tasks of every seed that has all of them, as the tables of a grid have it."""
    columns = [Figures(_by_seed(runs, of)) for runs in groups]
    mean = average(columns)
    over = f", mean of {len(columns)} tasks" if len(columns) > 1 else ""
    lines = []
    for seed in sorted({entry.seed for runs in groups for entry in runs}):
        if seed in mean.by_seed:
            value = mean.by_seed[seed]
            lines.append(f"seed {seed}: {_percent(value) if percent else f'{value:.3f}'}{over}")
        else:
            done = sum(seed in column.by_seed for column in columns)
            lines.append(f"seed {seed}: {done} of {len(columns)} tasks have this figure")
    return _cell(mean, tuple(lines), percent=percent)


def _selected(grid: Grid, system: System, tasks: Sequence[TaskKey], selection: str) -> Cell:
    groups = [[e for e in grid.finished if e.system == system and e.task == t] for t in tasks]
    return _mean(groups, lambda e: e.score(selection), percent=True)


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
