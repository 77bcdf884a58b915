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
    """The columns, evenly spread over as few blocks as fit."""
    keys = list(table.columns)
    titles = [len(line.title) for line in table.lines]
    title = max([*titles, len(" paper, diff.") if any(x.paper for x in table.lines) else 6])
    needed = {key: _width(key, table) for key in keys}

    def blocks(size: int) -> list[list[str]]:
        return [keys[start : start + size] for start in range(0, len(keys), size)]

    def fits(block: list[str]) -> bool:
        # Each column has a blank on both sides and one between it and the next.
        return title + 2 + sum(needed[key] + 3 for key in block) <= width

    sizes = dict.fromkeys(-(-len(keys) // count) for count in range(1, len(keys) + 1))
    return next((blocks(size) for size in sizes if all(map(fits, blocks(size)))), blocks(1))


def _width(key: str, table: Comparison) -> int:
    """How many letters the widest cell of a column has, its heading among them."""
    cells = [line.cells[key] for line in table.lines]
    texts = [text for cell in cells for text in (_own(cell, table), beside(cell))]
    return max(len(text) for text in (table.columns[key], *texts))


def _own(cell: Cell, table: Comparison) -> str:
    return ours(cell, len(table.seeds)).replace(" ± ", " ±")


def _block(table: Comparison, keys: Sequence[str]) -> Table:
    drawn = Table(box=box.SIMPLE_HEAD, padding=(0, 1), pad_edge=False)
    # Where not even one column fits, names wrap and numbers stay whole.
    drawn.add_column("Method", overflow="fold")
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
