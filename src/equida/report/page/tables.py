"""The tables of the page: how the one table of results is drawn in HTML."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from equida.evaluation import figures
from equida.report.page.content import PageContent, ShownGroup
from equida.runs.entry import Entry, selection_titles
from equida.runs.formats import MISSING
from equida.runs.table import AVERAGE, Cell, Column, Table
from equida.runs.variant import Variant, method_title


@dataclass(frozen=True)
class CellView:
    """One number as it is drawn, with what a reader sees on a closer look."""

    text: str
    sort_by: float | None
    spread: str = ""
    rank: int = 0
    lines: tuple[str, ...] = ()
    """What hovering shows: one line for each seed."""
    run: int | None = None
    """The number of a run that the cell leads to."""


@dataclass(frozen=True)
class RowView:
    """One system as it is drawn."""

    system: int
    title: str
    settings: str
    cells: tuple[CellView, ...]


@dataclass(frozen=True)
class TableView:
    """A table as it is drawn."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[RowView, ...]
    select: str = ""
    heads: tuple[tuple[str, int], ...] = ()
    """What stands above several columns, and above how many."""
    notes: tuple[str, ...] = ()


def page_tables(content: PageContent, select: str) -> list[TableView]:
    """One table for each group that has finished runs."""
    return [_result_table(content, group, select) for group in content.groups if group.tasks]


def selection_tables(content: PageContent) -> list[TableView]:
    """For each group, the accuracy of the last step beside those of the validators' picks."""
    tables = [_selection_table(content, group) for group in content.groups]
    return [table for table in tables if table.rows]


def _result_table(content: PageContent, group: ShownGroup, select: str) -> TableView:
    table = group.table(select)
    rows = [
        _row(
            content,
            group,
            row.variant,
            [_cell(content, group, row.cells[c.key], c, table) for c in table.columns],
        )
        for row in table.rows
    ]
    return TableView(
        table.caption,
        tuple(column.title for column in table.columns),
        tuple(rows),
        select,
        _heads(table, len(group.tasks)),
        table.notes,
    )


def _selection_table(content: PageContent, group: ShownGroup) -> TableView:
    rows = []
    names = [
        name
        for name in group.runs.selections
        if any(entry.accuracy(name) is not None for entry in group.runs.finished)
    ]
    for variant in group.variants:
        cells = {name: group.mean_accuracy(variant, name) for name in names}
        # A system that lacks a task has no mean, and nothing can be compared.
        if any(cell.mean is not None for cell in cells.values()):
            views = [_selection_cell(cell, name, len(group.tasks)) for name, cell in cells.items()]
            rows.append(_row(content, group, variant, views))
    return TableView(
        f"Accuracy (%) on {group.title}, mean over tasks and seeds.",
        tuple(selection_titles()[name] for name in names),
        tuple(rows),
    )


def _row(
    content: PageContent, group: ShownGroup, variant: Variant, cells: Sequence[CellView]
) -> RowView:
    system, title = content.system(group, variant), method_title(variant.method)
    return RowView(system, title, group.settings[variant.key()], tuple(cells))


def _heads(table: Table, tasks: int) -> tuple[tuple[str, int], ...]:
    measures = sum(bool(column.figure) for column in table.columns)
    accuracies = len(table.columns) - measures
    if not any(column.entries for column in table.columns):
        return ("accuracy by class", accuracies), ("target predictions", measures)
    if tasks > 1:
        return ("accuracy by task", accuracies - 1), ("mean over tasks", measures + 1)
    return ("accuracy", accuracies), ("target predictions", measures)


def _cell(
    content: PageContent, group: ShownGroup, cell: Cell, column: Column, table: Table
) -> CellView:
    run = None
    if column.entries:
        lines = tuple(_run_line(entry, table.select) for entry in cell.entries)
        paths = [entry.run.path for entry in cell.entries if entry.run is not None]
        run = content.numbers[paths[0]] if paths else None
    elif column.figure or column.key == AVERAGE:
        lines = _mean_lines(cell, column, _value_of(column, table.select), len(group.tasks))
    else:
        lines = _class_lines(cell)
    return _view(cell, column, lines, run, len(table.seeds))


def _selection_cell(cell: Cell, select: str, tasks: int) -> CellView:
    column = Column(AVERAGE, AVERAGE)
    return _view(cell, column, _mean_lines(cell, column, _value_of(column, select), tasks))


def _view(
    cell: Cell, column: Column, lines: tuple[str, ...], run: int | None = None, seeds: int = 0
) -> CellView:
    if cell.mean is None:
        return CellView("failed" if cell.failed else MISSING, None, lines=lines, run=run)
    spread = "" if cell.deviation is None else f"± {cell.deviation:.{column.digits}f}"
    if cell.count < seeds:
        spread += f" ({cell.count}/{seeds})"
    text = f"{cell.mean:.{column.digits}f}"
    return CellView(text, cell.mean, spread.strip(), cell.rank, lines, run)


def _run_line(entry: Entry, select: str) -> str:
    """The seed of a run, and all that a table shows of it."""
    chosen, accuracy = entry.figures(select), entry.accuracy(select)
    if chosen is None:
        return f"seed {entry.seed}: no step was picked"
    parts = ["no target labels" if accuracy is None else f"{accuracy:.2f} %"]
    for figure in figures.columns():
        value = chosen.get(figure.name)
        if value is not None:
            parts.append(f"{figure_name(figure)} {_figure_text(figure, value)}")
    return f"seed {entry.seed}: {', '.join(parts)}, step {chosen['step']:.0f}"


def _mean_lines(
    cell: Cell, column: Column, value_of: Callable[[Entry], float | None], tasks: int
) -> tuple[str, ...]:
    """For each seed the mean over tasks, or how many of them are there."""
    over = f", mean of {tasks} tasks" if tasks > 1 else ""
    lines = []
    for seed in sorted({entry.seed for entry in cell.entries}):
        if seed in cell.by_seed:
            lines.append(f"seed {seed}: {_precise(cell.by_seed[seed], column)}{over}")
        else:
            mine = [entry for entry in cell.entries if entry.seed == seed]
            done = sum(value_of(entry) is not None for entry in mine)
            lines.append(f"seed {seed}: known for {done} of {tasks} tasks")
    return tuple(lines)


def _class_lines(cell: Cell) -> tuple[str, ...]:
    seeds = sorted({entry.seed for entry in cell.entries})
    return tuple(
        f"seed {seed}: {cell.by_seed[seed]:.2f} %"
        if seed in cell.by_seed
        else f"seed {seed}: unknown for this step"
        for seed in seeds
    )


def _value_of(column: Column, select: str) -> Callable[[Entry], float | None]:
    if column.figure:
        return lambda entry: entry.figure(column.figure, select)
    return lambda entry: entry.accuracy(select)


def _precise(value: float, column: Column) -> str:
    return f"{value:.2f} %" if column.accuracy else f"{value:.3f}"


def _figure_text(figure: figures.Figure, value: float) -> str:
    return f"{100 * value:.2f} %" if figure.percent else f"{value:.{figure.digits}f}"


def figure_name(figure: figures.Figure) -> str:
    """The figure's title inside a sentence.

    >>> figure_name(figures.FIGURES["equity_soft"])
    'soft equity'
    """
    first, rest = figure.title[:1], figure.title[1:]
    return figure.title if rest[:1].isupper() else first.lower() + rest
