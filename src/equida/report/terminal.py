"""A comparison on the terminal, as wide as the terminal allows."""

from collections.abc import Sequence

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from equida.report.formats import MISSING, beside, ours
from equida.report.tables import Cell, Comparison

STYLES = {"b": "bold green", "u": "underline"}


def rich_table(table: Comparison, width: int, *, notes: bool = True) -> RenderableType:
    """The table; where it is wider than `width`, its columns in several blocks."""
    parts: list[RenderableType] = [Text(table.caption, style="bold")]
    parts += [_block(table, keys) for keys in _blocks(table, width)]
    if notes:
        parts += [Text(f"· {note}", style="dim") for note in table.notes]
    parts += [
        Text(f"failed: {run}: {reason}", style="red") for run, reason in table.failures.items()
    ]
    return Group(*parts)


def _blocks(table: Comparison, width: int) -> list[list[str]]:
    """The columns, evenly spread over as few blocks as possible."""
    keys = list(table.columns)
    title = max((len(line.title) for line in table.lines), default=6)
    room = width - max(title, len("paper, diff.")) - 4
    needed = max(
        (_width(line.cells[key], table) for line in table.lines for key in keys), default=8
    )
    each = max(1, room // (needed + 2))
    count = -(-len(keys) // each)
    size = -(-len(keys) // count)
    return [keys[start : start + size] for start in range(0, len(keys), size)]


def _width(cell: Cell, table: Comparison) -> int:
    return max(len(_own(cell, table)), len(beside(cell)), 6)


def _own(cell: Cell, table: Comparison) -> str:
    return ours(cell, len(table.seeds)).replace(" ± ", " ±")


def _block(table: Comparison, keys: Sequence[str]) -> Table:
    drawn = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    drawn.add_column("Method", no_wrap=True)
    for key in keys:
        drawn.add_column(table.columns[key], justify="right", no_wrap=True)
    for line in table.lines:
        cells = [_shown(line.cells[key], table) for key in keys]
        title = Text(line.title)
        if line.paper:
            title.append("\n paper, diff.", style="dim")
        drawn.add_row(title, *cells)
    return drawn


def _shown(cell: Cell, table: Comparison) -> Text:
    own = _own(cell, table)
    style = STYLES.get(cell.mark, "red" if own == "failed" else "dim" if own == MISSING else "")
    text = Text(own, style=style)
    printed = beside(cell)
    if printed:
        text.append("\n")
        text.append(printed, style="not bold not underline dim default")
    return text


def print_table(table: Comparison, console: Console) -> None:
    """Print the table; into a file or a pipe without wrapping."""
    width = console.width if console.is_terminal else 240
    if not console.is_terminal:
        console = Console(file=console.file, width=width)
    console.print(rich_table(table, width))
