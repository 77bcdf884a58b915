"""What watches a run: progress on the screen, and curves for TensorBoard."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from equida.errors import InputError
from equida.progress import Mode, RunProgress
from equida.training.config import RunConfig


class Watcher:
    """An observer that shows progress and, where asked to, writes curves."""

    def __init__(self, shown: RunProgress, writer: Any = None) -> None:
        self.shown, self.writer = shown, writer

    def announced(self, what: str) -> None:
        self.shown.announced(what)

    def stepped(self, step: int) -> None:
        self.shown.stepped(step)

    def logged(self, step: int, terms: Mapping[str, float]) -> None:
        self.shown.logged(step, terms)
        self._write("loss", step, terms)

    def evaluated(self, step: int, figures: Mapping[str, float]) -> None:
        self.shown.evaluated(step, figures)
        self._write("evaluation", step, figures)

    def _write(self, group: str, step: int, values: Mapping[str, float]) -> None:
        if self.writer:
            for name, value in values.items():
                self.writer.add_scalar(f"{group}/{name}", value, step)


@contextlib.contextmanager
def watch(
    config: RunConfig, *, mode: Mode, folder: Path | None = None, tensorboard: bool = False
) -> Iterator[Watcher]:
    """The observer of a run; the terminal is put right however the run ends.

    With `tensorboard`, curves are written into the run's folder.
    """
    writer = _writer(folder) if tensorboard and folder else None
    try:
        with RunProgress(mode, config.method, config.recipe.iterations) as shown:
            yield Watcher(shown, writer)
    finally:
        if writer:
            writer.close()


def _writer(folder: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise InputError("TensorBoard is missing: pip install 'equida[tensorboard]'") from error
    return SummaryWriter(str(folder / "tensorboard"))
