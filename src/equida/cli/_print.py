"""What several verbs print: a table of results, a search, and where a run is."""

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from equida.runs.read import Run
    from equida.runs.search import Search
    from equida.runs.table import Table

MOST_ROWS = 12
"""Where there are more settings, the table shows the best ones."""


def print_lines(*lines: str) -> None:
    """Print lines as they are: without markup or colours, and not wrapped."""
    from equida.progress import safe_console

    console = safe_console(markup=False, highlight=False, soft_wrap=True)
    for line in lines:
        console.print(line)


def print_results(table: "Table", form: str) -> None:
    """Print a table of results.

    Args:
        table: the table.
        form: "rich", or a key of `FORMATS`.
    """
    from equida.progress import emit, safe_console
    from equida.runs.formats import FORMATS
    from equida.runs.terminal import print_table

    if form == "rich":
        print_table(table, safe_console())
    else:
        emit(FORMATS[form](table).rstrip("\n"))


def print_search(search: "Search", task: str) -> None:
    """Print the settings that were tried, best first, and which one was chosen.

    Args:
        search: what was tried.
        task: what it was tried on.
    """
    from rich.markup import escape
    from rich.table import Table

    from equida.progress import safe_console
    from equida.runs.search import rows

    table = Table(title=escape(f"{task}, {search.count}"))
    for name, justify in (("trial", "right"), ("setting", "left"), (search.chosen_by, "right")):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    table.add_column("")
    for row in rows(search)[:MOST_ROWS]:
        table.add_row(*map(escape, row))
    safe_console().print(table)
    more = len(search.tried) - MOST_ROWS
    print_lines(*([f"and {more} more in search.json"] if more > 0 else []), search.summary)


def run_line(done: "Run") -> str:
    """Where a run is, and how to use it."""
    from equida.training.trust import named_code

    folder = shlex.quote(str(done.path))
    trust = " --trust" if named_code(done.config) else ""
    what, given = ("images", "IMAGES") if done.config.takes_images else ("rows", "FILE")
    return f"run: {folder}   labels for new {what}: equida predict {folder} {given}{trust}"
