"""A search on the terminal: the settings that were tried, best first."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from equida.runs.search import Search

MOST_ROWS = 12
"""Of more settings than this, the table shows the best ones."""


def print_search(search: "Search", title: str) -> None:
    """Print the settings that were tried, best first, and which one was chosen.

    Args:
        search: what was tried.
        title: of the table.
    """
    from rich.markup import escape
    from rich.table import Table

    from equida.progress import safe_console
    from equida.runs.search import rows

    table = Table(title=escape(title))
    for name, justify in (("trial", "right"), ("setting", "left"), (search.chosen_by, "right")):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    table.add_column("")
    for row in rows(search)[:MOST_ROWS]:
        table.add_row(*map(escape, row))
    console = safe_console()
    console.print(table)
    if (more := len(search.tried) - MOST_ROWS) > 0:
        console.print(f"and {more} more in search.json", highlight=False)
    console.print(search.summary, markup=False, highlight=False, soft_wrap=True)
