"""Progress of a run: a bar on the terminal, and curves for TensorBoard."""

import contextlib
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column

from equida.errors import InputError
from equida.training.config import RunConfig
from equida.training.estimate import duration

REFRESH_SECONDS = 0.25


class Watch:
    """Shows losses, target equity and discriminability as they move, and the time left: as a bar on
    a terminal, and elsewhere (a log file) as a line for each evaluation.
    """

    def __init__(self, config: RunConfig, folder: Path, tensorboard: bool, quiet: bool) -> None:
        self.writer = _writer(folder) if tensorboard else None
        self.iterations, self.terms = config.recipe.iterations, ""
        self.first: tuple[int, float] | None = None
        console = Console(stderr=True, quiet=quiet)
        self.lines = None if quiet or console.is_terminal else console
        figures = Column(no_wrap=True, overflow="ellipsis", ratio=1)
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=10),
            MofNCompleteColumn(),
            TimeRemainingColumn(compact=True),
            TextColumn("{task.fields[figures]}{task.fields[terms]}", table_column=figures),
            console=console,
            transient=True,
            disable=quiet or not console.is_terminal,
            expand=True,
            refresh_per_second=1 / REFRESH_SECONDS,
        )
        self.bar = self.progress.add_task(
            config.method, total=self.iterations, terms="", figures=""
        )
        self.shown = 0.0

    def stepped(self, step: int) -> None:
        now = time.monotonic()
        self.first = self.first or (step, now)
        if now - self.shown > REFRESH_SECONDS:
            self.shown = now
            self.progress.update(self.bar, completed=step)

    def logged(self, step: int, terms: Mapping[str, float]) -> None:
        shown = " ".join(f"{SHORT.get(name, name)} {value:.2f}" for name, value in terms.items())
        self.terms = shown
        self.progress.update(self.bar, completed=step, terms=shown)
        if self.writer:
            for name, value in terms.items():
                self.writer.add_scalar(f"loss/{name}", value, step)

    def evaluated(self, step: int, figures: Mapping[str, float]) -> None:
        shown = [f"eq {figures['equity']:.2f}", f"disc {figures['discriminability']:.2f}"]
        if "accuracy" in figures:
            shown.append(f"acc {100 * figures['accuracy']:.1f}")
        self.progress.update(self.bar, figures=" ".join(shown) + " | ")
        if self.lines:
            parts = [f"step {step} of {self.iterations}: {' '.join(shown)}", self.terms]
            said = " | ".join([*parts, *self._left(step)])
            self.lines.print(said, markup=False, highlight=False, soft_wrap=True)
        if self.writer:
            for name, value in figures.items():
                self.writer.add_scalar(f"evaluation/{name}", value, step)

    def _left(self, step: int) -> list[str]:
        """The time left by the pace of this process, once there is one."""
        if self.first is None or not self.first[0] < step < self.iterations:
            return []
        before, then = self.first
        pace = (time.monotonic() - then) / (step - before)
        return [f"{duration(pace * (self.iterations - step))} left"]


SHORT = {"cross_entropy": "ce"}
"""So that the figures fit beside the bar in 80 columns."""


@contextlib.contextmanager
def watch(config: RunConfig, *, folder: Path, tensorboard: bool, quiet: bool) -> Iterator[Watch]:
    """What shows the progress of a run; the terminal is put right however the run ends."""
    shown = Watch(config, folder, tensorboard, quiet)
    with shown.progress:
        try:
            yield shown
        finally:
            if shown.writer:
                shown.writer.close()


def _writer(folder: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise InputError("TensorBoard is missing: pip install 'equida[tensorboard]'") from error
    return SummaryWriter(str(folder / "tensorboard"))
