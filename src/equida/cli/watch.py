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

REFRESH_SECONDS = 0.25


class Watch:
    """Shows losses, target equity and discriminability as they move, and the time left."""

    def __init__(self, config: RunConfig, folder: Path, tensorboard: bool, quiet: bool) -> None:
        self.writer = _writer(folder) if tensorboard else None
        figures = Column(no_wrap=True, overflow="ellipsis", ratio=1)
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=10),
            MofNCompleteColumn(),
            TimeRemainingColumn(compact=True),
            TextColumn("{task.fields[figures]}{task.fields[terms]}", table_column=figures),
            console=Console(stderr=True, quiet=quiet),
            transient=True,
            disable=quiet,
            expand=True,
            refresh_per_second=1 / REFRESH_SECONDS,
        )
        self.bar = self.progress.add_task(
            config.method, total=config.recipe.iterations, terms="", figures=""
        )
        self.shown = 0.0

    def stepped(self, step: int) -> None:
        now = time.monotonic()
        if now - self.shown > REFRESH_SECONDS:
            self.shown = now
            self.progress.update(self.bar, completed=step)

    def logged(self, step: int, terms: Mapping[str, float]) -> None:
        shown = " ".join(f"{SHORT.get(name, name)} {value:.2f}" for name, value in terms.items())
        self.progress.update(self.bar, completed=step, terms=shown)
        if self.writer:
            for name, value in terms.items():
                self.writer.add_scalar(f"loss/{name}", value, step)

    def evaluated(self, step: int, figures: Mapping[str, float]) -> None:
        shown = [f"eq {figures['equity']:.2f}", f"disc {figures['discriminability']:.2f}"]
        if "accuracy" in figures:
            shown.append(f"acc {100 * figures['accuracy']:.1f}")
        self.progress.update(self.bar, figures=" ".join(shown) + " | ")
        if self.writer:
            for name, value in figures.items():
                self.writer.add_scalar(f"evaluation/{name}", value, step)


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
