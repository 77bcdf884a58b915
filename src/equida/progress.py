"""Showing progress: a bar in a terminal, a live line in a notebook, lines in a log file.

Everything here goes to standard error (or into the notebook's cell), so that standard output holds
results only.
"""

import html
import sys
import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

from equida.errors import InputError, printable, printable_lines

if TYPE_CHECKING:
    from rich.console import Console

Mode = Literal["terminal", "notebook", "lines", "silent"]

REFRESH_SECONDS = 0.25
SHORT_NAMES = {"cross_entropy": "ce"}
"""Loss terms with a shorter name beside the bar, so that the figures fit into 80 columns."""


def display_mode(progress: bool | None) -> Mode:
    """How progress is shown here.

    Args:
        progress: None shows it in a terminal and in a notebook and nowhere else; True writes lines
            (into a log file) where there is neither; False shows nothing.
    """
    if progress not in (None, True, False):
        raise InputError(f"progress is {progress!r}; it must be True, False or None")
    if progress is False:
        return "silent"
    if in_notebook():
        return "notebook"
    if sys.stderr is not None and sys.stderr.isatty():
        return "terminal"
    return "lines" if progress else "silent"


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook, which shows HTML."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and hasattr(shell, "kernel")


def say(text: str) -> None:
    """Print a remark beside the result, which alone goes to standard output."""
    _print(_console(), text)


def safe_console(**settings: Any) -> "Console":
    """A console of rich that shows names as they are, and control characters as escape sequences.

    Args:
        settings: those of `rich.console.Console`.
    """
    from rich.console import Console
    from rich.segment import Segment
    from rich.text import Text

    class SafeConsole(Console):
        def on_broken_pipe(self) -> None:
            raise  # noqa: PLE0704: rich would end the process; the command line has its own code

        def render_str(self, text: str, **options: Any) -> Text:
            return super().render_str(safe_text(text), **options)

        def render(self, *given: Any, **options: Any) -> Iterator[Segment]:
            # Text objects and the cells of tables do not pass through `render_str`.
            for text, style, control in super().render(*given, **options):
                yield Segment(text if control else safe_text(text), style, control)

    return SafeConsole(emoji=False, **settings)


def safe_text(text: str) -> str:
    """Text of several lines without anything else that a terminal obeys.

    >>> safe_text("a\\x1b[2J\\nb")
    'a\\\\x1b[2J\\nb'
    """
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in text.split("\n"))


def emit(text: str) -> None:
    """Print a result on standard output; a terminal gets nothing in it that it would obey."""
    print(safe_text(text) if sys.stdout.isatty() else text)


def duration(seconds: float) -> str:
    """A length of time in the units that a person would use.

    >>> duration(0.2), duration(42), duration(600), duration(7260)
    ('1 s', '42 s', '10 min', '2 h 1 min')
    >>> duration(50_000), duration(400_000)
    ('14 h', '4.6 days')
    """
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{max(seconds, 1):.0f} s"
    if minutes < 90:
        return f"{minutes} min"
    if minutes < 10 * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{seconds / 3600:.0f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"


class Bar:
    """Shows how much of some work is done; a context manager that leaves the terminal as it was.

    Args:
        mode: where to show it; nothing is shown in the modes "lines" and "silent".
        label: what is being done.
        total: how much there is to do; None where that is not known.
        unit: what is counted, such as "images"; with it the rate is shown.
    """

    def __init__(
        self, mode: Mode, label: str = "", total: int | None = None, unit: str = ""
    ) -> None:
        self.label, self.total, self.unit = label, total, unit
        self.completed, self.note = 0, ""
        self._shown = 0.0
        self.began = time.monotonic()
        self._origin: tuple[int, float] | None = None
        self._view: _View | None = None
        if mode == "terminal":
            self._view = _TerminalView()
        elif mode == "notebook" and in_notebook():  # a spawned process has no cell to show it in
            self._view = _NotebookView()

    def __enter__(self) -> Self:
        if self._view:
            self._view.open(self)
        return self

    def __exit__(self, *raised: object) -> None:
        if self._view:
            self._view.close(self)

    def start(self, label: str, total: int | None) -> None:
        """Begin the next piece of work."""
        self.label, self.total, self.completed, self.note = label, total, 0, ""
        self.began, self._origin = time.monotonic(), None
        self._refresh(now=True)

    def advance(self, count: int) -> None:
        """Count some more as done."""
        self.update(self.completed + count)

    def update(self, completed: int | None = None, note: str | None = None) -> None:
        """Set how much is done and what is written beside the bar."""
        self.completed = self.completed if completed is None else completed
        if self._origin is None and completed:
            # The first step is often slow; the pace is measured from there.
            self._origin = completed, time.monotonic()
        self.note = self.note if note is None else note
        self._refresh(now=note is not None)

    def say(self, text: str) -> None:
        """Print a remark on standard error; the bar stays below it."""
        if isinstance(self._view, _TerminalView):
            _print(self._view.console, text)
        else:
            say(text)

    @property
    def seconds_left(self) -> float | None:
        """The time left by the pace so far; None while there is none."""
        if self._origin is None or self.total is None:
            return None
        origin, then = self._origin
        if not origin < self.completed < self.total:
            return None
        pace = (time.monotonic() - then) / (self.completed - origin)
        return pace * (self.total - self.completed)

    @property
    def text(self) -> str:
        """What is written beside the bar: the rate where there is one, and the note."""
        spent = time.monotonic() - self.began
        rate = f"{self.completed / spent:.1f} {self.unit}/s" if self.unit and spent > 0 else ""
        return " ".join(part for part in (rate if self.completed else "", self.note) if part)

    def _refresh(self, *, now: bool = False) -> None:
        if self._view is None:
            return
        moment = time.monotonic()
        if now or moment - self._shown > REFRESH_SECONDS or self.completed == self.total:
            self._shown = moment
            self._view.show(self)


class _View(Protocol):
    def open(self, bar: Bar) -> None: ...
    def show(self, bar: Bar) -> None: ...
    def close(self, bar: Bar) -> None: ...


class _TerminalView:
    def __init__(self) -> None:
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )
        from rich.table import Column

        self.console = _console()
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=10),
            MofNCompleteColumn(),
            TimeRemainingColumn(compact=True),
            TextColumn(
                "{task.fields[text]}",
                markup=False,
                table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1),
            ),
            console=self.console,
            transient=True,
            expand=True,
            refresh_per_second=1 / REFRESH_SECONDS,
        )

    def open(self, bar: Bar) -> None:
        self._task = self._progress.add_task(bar.label, total=bar.total, text="")
        self._began = bar.began
        self._progress.start()

    def show(self, bar: Bar) -> None:
        if bar.began != self._began:
            self._began = bar.began
            self._progress.reset(self._task, total=bar.total, description=bar.label, text="")
        self._progress.update(self._task, completed=bar.completed, text=bar.text)

    def close(self, bar: Bar) -> None:
        self._progress.stop()


class LiveHtml:
    """HTML in a notebook's cell that is replaced as the work proceeds; it needs no widgets."""

    def __init__(self, text: str) -> None:
        from IPython.display import HTML, display

        self._handle: Any = display(HTML(text), display_id=True)

    def update(self, text: str) -> None:
        from IPython.display import HTML

        self._handle.update(HTML(text))


class _NotebookView:
    def open(self, bar: Bar) -> None:
        self._cell = LiveHtml(_html(bar))

    def show(self, bar: Bar) -> None:
        self._cell.update(_html(bar))

    def close(self, bar: Bar) -> None:
        self.show(bar)


def _html(bar: Bar) -> str:
    of = f" of {bar.total:,}" if bar.total is not None else ""
    left = f"{duration(bar.seconds_left)} left" if bar.seconds_left is not None else ""
    texts = [bar.label, f"{bar.completed:,}{of}", bar.text, left]
    words = " &middot; ".join(html.escape(text) for text in texts if text)
    gauge = f'<progress value="{bar.completed}" max="{bar.total}"></progress> ' if of else ""
    return f"<div>{gauge}{words}</div>"


class RunProgress(Bar):
    """Shows the losses of a run, its equity and discriminability on the target, and the time left.

    It is an observer of training: a bar in a terminal or notebook, and in the mode "lines" a line
    for each evaluation.

    Args:
        mode: where to show it.
        label: what is trained.
        iterations: how many steps the run has.
        writer: a writer of curves for TensorBoard, if they are wanted.
    """

    def __init__(self, mode: Mode, label: str, iterations: int, writer: Any = None) -> None:
        super().__init__(mode, label, iterations)
        self.writer = writer
        self._lines = mode == "lines"
        self._terms = self._figures = ""

    def announced(self, what: str) -> None:
        self.update(note=what)
        if self._lines:
            say(what)

    def stepped(self, step: int) -> None:
        self.update(step)

    def logged(self, step: int, terms: Mapping[str, float]) -> None:
        self._terms = " ".join(
            f"{SHORT_NAMES.get(name, name)} {value:.2f}" for name, value in terms.items()
        )
        self.update(note=self._note())
        self._write("loss", step, terms)

    def evaluated(self, step: int, figures: Mapping[str, float]) -> None:
        shown = [f"eq {figures['equity']:.2f}", f"disc {figures['discriminability']:.2f}"]
        if "accuracy" in figures:
            shown.append(f"acc {100 * figures['accuracy']:.1f}")
        self._figures = " ".join(shown)
        self.update(step, self._note())
        if self._lines:
            left = self.seconds_left
            parts = [f"step {step} of {self.total}: {self._figures}", self._terms]
            say(" | ".join([*parts, *([f"{duration(left)} left"] if left is not None else [])]))
        self._write("evaluation", step, figures)

    def _note(self) -> str:
        return " | ".join(part for part in (self._figures, self._terms) if part)

    def _write(self, group: str, step: int, values: Mapping[str, float]) -> None:
        if self.writer:
            for name, value in values.items():
                self.writer.add_scalar(f"{group}/{name}", value, step)


def _console() -> "Console":
    return safe_console(stderr=True, soft_wrap=True, markup=False, highlight=False)


def _print(console: "Console", text: str) -> None:
    console.print(printable_lines(text), markup=False, highlight=False, soft_wrap=True)
