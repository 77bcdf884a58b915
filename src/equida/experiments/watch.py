"""How a grid goes on: the table that fills, runs done, running and failed, and the time left."""

import time
from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from equida.errors import counted
from equida.experiments.cost import relative_cost, seconds_left
from equida.experiments.execute import Ended, Workers
from equida.experiments.grid import PlannedRun
from equida.progress import LiveHtml, Mode, duration, safe_console, say
from equida.runs.entry import Entry
from equida.runs.table import Table
from equida.runs.terminal import rich_table

REFRESH_SECONDS = 0.5


class GridWatch:
    """Shows a line and the table below it in a terminal or a notebook, both kept up to date; in the
    mode "lines" it prints a line for each run that ends.

    Args:
        total: how many runs the grid has.
        todo: those that will be done now.
        workers: where they are done.
        table: gives the table as it is by now.
        mode: how progress is shown.
        before: runs that ended in earlier calls; the first guess of the time left is by them.
    """

    def __init__(
        self,
        total: int,
        todo: Sequence[PlannedRun],
        workers: Workers,
        table: Callable[[], Table],
        mode: Mode,
        before: Sequence[Entry] = (),
    ) -> None:
        self.known = list(before)
        self.costs = {run.config.method: relative_cost(run.config) for run in todo}
        self.total, self.workers, self.table, self.mode = total, workers, table, mode
        self.left = {str(run.folder): run for run in todo}
        self.before = total - len(todo)
        self.failed = self.finished = 0
        self.started = time.monotonic()
        self.console = safe_console(stderr=True)
        self.live: Live | None = None
        self.notebook: LiveHtml | None = None
        self.shown: RenderableType = Text("")

    def __enter__(self) -> "GridWatch":
        if not self.left:
            return self
        if self.mode == "terminal":
            self.shown = self._table()
            self.live = Live(
                get_renderable=self._render,
                console=self.console,
                refresh_per_second=1 / REFRESH_SECONDS,
                transient=True,
                vertical_overflow="crop",
            )
            self.live.start()
        elif self.mode == "notebook":
            self.notebook = LiveHtml(self._html())
        elif self.mode == "lines":
            where = self.workers.cluster or f"{self.workers.jobs} at once"
            say(f"{len(self.left)} of {counted(self.total, 'run')} to do, {where}")
        return self

    def __exit__(self, *reason: Any) -> None:
        if self.live:
            self.live.stop()
        if self.notebook:
            self.notebook.update("" if reason[0] is None else self._html())
        ended = self.finished + self.failed
        if ended and self.mode in ("terminal", "lines"):
            say(f"{counted(ended, 'run')} in {duration(time.monotonic() - self.started)}")

    def ended(self, entry: Entry, ended: Ended) -> None:
        """Show that a run has ended."""
        del self.left[ended.folder]
        self.known.append(entry)
        if ended.failure is None:
            self.finished += 1
        else:
            self.failed += 1
        if self.live:
            self.shown = self._table()
        elif self.notebook:
            self.notebook.update(self._html())
        elif self.mode == "lines":
            done = self.before + self.finished + self.failed
            say(f"{done}/{self.total} {entry.name}: {_outcome(entry, ended)}; {self.time_left()}")

    def line(self) -> str:
        """Runs done, running and failed, and the time left."""
        running = [run for run in self.left.values() if (run.folder / "running.json").exists()]
        names = [run.entry().name for run in running]
        at_work = f"{len(names)} running" + (f" ({', '.join(names[:4])})" if names else "")
        failed = f", {self.failed} failed" if self.failed else ""
        done = self.before + self.finished
        return f"{done}/{counted(self.total, 'run')} done, {at_work}{failed}; {self.time_left()}"

    def time_left(self) -> str:
        """The time left, by what runs of each method took and cost."""
        if not self.left:
            return "done"
        seconds = seconds_left(self.left.values(), self.known, self.workers.jobs, self.costs)
        if seconds is None:
            return f"{duration(time.monotonic() - self.started)} so far"
        return f"about {duration(seconds)} left"

    def _table(self) -> RenderableType:
        return rich_table(self.table(), self.console.width, notes=False)

    def _render(self) -> RenderableType:
        # On top: a table that is longer than the terminal is cut off below.
        return Group(Text(self.line(), style="cyan"), self.shown)

    def _html(self) -> str:
        return f"<p>{self.line()}</p>{self.table()._repr_html_()}"


def _outcome(entry: Entry, ended: Ended) -> str:
    if ended.failure is not None or entry.result is None:
        return f"failed: {ended.failure}"
    accuracy = entry.accuracy("last")
    shown = "no target labels" if accuracy is None else f"{accuracy:.1f} %"
    return f"{shown} in {entry.result['seconds']:.1f} s"
