"""Progress of a grid: the table that fills, runs done, running and failed, the time left."""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from equida.bench.grid import Planned
from equida.bench.schedule import Workers
from equida.bench.work import Outcome
from equida.report.terminal import rich_table
from equida.training.folder import RunFolder

if TYPE_CHECKING:
    from equida.report.tables import Comparison

REFRESH = 0.5


class GridProgress:
    """On a terminal a line and the table below it, both kept up to date; otherwise a line for each
    run that ends. All of it on standard error.
    """

    def __init__(
        self,
        planned: Sequence[Planned],
        todo: Sequence[Planned],
        workers: Workers,
        table: Callable[[], "Comparison"],
        *,
        quiet: bool = False,
    ) -> None:
        self.planned, self.workers, self.table, self.quiet = planned, workers, table, quiet
        self.left = {str(run.folder): run for run in todo}
        self.total = len(planned)
        self.before = self.total - len(todo)
        self.failed = self.finished = 0
        self.started = time.monotonic()
        self.console = Console(stderr=True)
        self.live: Live | None = None
        self.shown: RenderableType = Text("")

    def __enter__(self) -> "GridProgress":
        if self.quiet or not self.left:
            return self
        if self.console.is_terminal:
            self.shown = self._table()
            self.live = Live(
                get_renderable=self._render,
                console=self.console,
                refresh_per_second=1 / REFRESH,
                transient=True,
                vertical_overflow="crop",
            )
            self.live.start()
        else:
            where = self.workers.cluster or f"{self.workers.jobs} at once"
            self._say(f"{len(self.left)} of {self.total} runs to do, {where}")
        return self

    def __exit__(self, *reason: object) -> None:
        if self.live:
            self.live.stop()
        if not self.quiet and (ended := self.finished + self.failed):
            self._say(f"{ended} runs in {clock(time.monotonic() - self.started)}")

    def ended(self, outcome: Outcome) -> None:
        """A run has ended."""
        run = self.left.pop(outcome.folder)
        if outcome.failure is None:
            self.finished += 1
        else:
            self.failed += 1
        if self.live:
            self.shown = self._table()
        elif not self.quiet:
            done = self.before + self.finished + self.failed
            self._say(f"{done}/{self.total} {run.name}: {self._said(run, outcome)}; {self.time()}")

    def _said(self, run: Planned, outcome: Outcome) -> str:
        if outcome.failure is not None:
            return f"failed: {outcome.failure}"
        result = RunFolder(run.folder).read_json("result.json")
        score = result["last"].get(result["metric"])
        accuracy = "no target labels" if score is None else f"{100 * score:.1f} %"
        return f"{accuracy} in {result['seconds']:.1f} s"

    def _table(self) -> RenderableType:
        return rich_table(self.table(), self.console.width, notes=False)

    def _render(self) -> RenderableType:
        # On top: a table that is longer than the terminal is cut off below.
        return Group(Text(self.line(), style="cyan"), self.shown)

    def line(self) -> str:
        """Runs done, running and failed, and the time left."""
        names = [run.name for run in self.left.values() if (run.folder / "running.json").exists()]
        at_work = f"{len(names)} running" + (f" ({', '.join(names[:4])})" if names else "")
        failed = f", {self.failed} failed" if self.failed else ""
        done = self.before + self.finished
        return f"{done}/{self.total} runs done, {at_work}{failed}; {self.time()}"

    def time(self) -> str:
        """The time left, by the pace so far."""
        ended, spent = self.finished + self.failed, time.monotonic() - self.started
        if not ended:
            return f"{clock(spent)} so far"
        return f"about {clock(spent / ended * len(self.left))} left" if self.left else "done"

    def _say(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)


def clock(seconds: float) -> str:
    """A duration in words.

    >>> clock(42), clock(600), clock(7260)
    ('42 s', '10 min', '2 h 1 min')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
