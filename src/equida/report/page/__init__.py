"""The page of all runs: `write_page(Path("runs"), Path("report.html"))`."""

from equida.report.page.build import write_page

__all__ = ["write_page"]
