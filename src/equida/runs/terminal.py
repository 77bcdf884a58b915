"""A table of results on the terminal, as wide as the terminal allows."""

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from equida.errors import printable
from equida.progress import safe_console
from equida.runs.formats import MISSING, beside, ours

if TYPE_CHECKING:
    from equida.runs.table import Cell, Column
    from equida.runs.table import Table as ResultTable

STYLES = {1: "bold green", 2: "underline"}
PLAIN_WIDTH = 240
"""Letters in a line where there is no terminal to fit into."""


def rich_table(table: "ResultTable", width: int, *, notes: bool = True) -> RenderableType:
    """The table; where it is wider than `width`, its columns in several blocks."""
    parts: list[RenderableType] = [Text(printable(table.caption), style="bold")]
    parts += [_block(table, columns) for columns in _blocks(table, width)]
    if notes:
        parts += [Text(f"· {note}", style="dim") for note in table.notes]
    parts += [
        Text(printable(f"failed: {run}: {reason}"), style="red")
        for run, reason in table.failures.items()
    ]
    return Group(*parts)


def _blocks(table: "ResultTable", width: int) -> list[Sequence["Column"]]:
    """The columns, evenly spread over as few blocks as fit."""
    columns = table.columns
    titles = [len(row.title) for row in table.rows]
    title = max([*titles, len(" paper, diff.") if any(x.printed for x in table.rows) else 6])
    needed = {column.key: _width(column, table) for column in columns}

    def blocks(size: int) -> list[Sequence["Column"]]:
        return [columns[start : start + size] for start in range(0, len(columns), size)]

    def fits(block: Sequence["Column"]) -> bool:
        # Each column has a blank on both sides and one between it and the next.
        return title + 2 + sum(needed[column.key] + 3 for column in block) <= width

    sizes = dict.fromkeys(-(-len(columns) // count) for count in range(1, len(columns) + 1))
    return next((blocks(size) for size in sizes if all(map(fits, blocks(size)))), blocks(1))


def _width(column: "Column", table: "ResultTable") -> int:
    """How many letters the widest cell of a column has, its heading among them."""
    cells = [row.cells[column.key] for row in table.rows]
    texts = [t for cell in cells for t in (_own(cell, column, table), beside(cell, column))]
    return max(len(text) for text in (column.title, *texts))


def _own(cell: "Cell", column: "Column", table: "ResultTable") -> str:
    return ours(cell, column, len(table.seeds)).replace(" ± ", " ±")


def _block(table: "ResultTable", columns: Sequence["Column"]) -> Table:
    drawn = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    # Where not even one column fits, names wrap and numbers stay whole.
    drawn.add_column("Method", overflow="fold")
    for column in columns:
        drawn.add_column(Text(printable(column.title)), justify="right", no_wrap=True)
    for row in table.rows:
        cells = [_shown(row.cells[column.key], column, table) for column in columns]
        title = Text(printable(row.title))
        if row.printed:
            title.append("\n paper, diff.", style="dim")
        drawn.add_row(title, *cells)
    return drawn


def _shown(cell: "Cell", column: "Column", table: "ResultTable") -> Text:
    own = _own(cell, column, table)
    style = STYLES.get(cell.rank, "red" if own == "failed" else "dim" if own == MISSING else "")
    text = Text(own, style=style)
    printed = beside(cell, column)
    if printed:
        text.append("\n")
        text.append(printed, style="not bold not underline dim default")
    return text


def print_table(table: "ResultTable", console: Console) -> None:
    """Print the table; into a file or a pipe without wrapping."""
    width = console.width if console.is_terminal else PLAIN_WIDTH
    if not console.is_terminal:
        console = safe_console(file=console.file, width=width)
    console.print(rich_table(table, width))


def as_text(table: "ResultTable") -> str:
    """The table as plain text."""
    file = io.StringIO()
    print_table(table, safe_console(file=file, width=PLAIN_WIDTH))
    return file.getvalue()
