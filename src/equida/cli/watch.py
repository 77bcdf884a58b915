"""Progress of a run: a bar on the terminal, and curves for TensorBoard."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from equida.errors import InputError
from equida.training.config import RunConfig


class Watch:
    """Shows losses, target equity and discriminability as they move, and the time left."""

    def __init__(self, config: RunConfig, folder: Path, tensorboard: bool, quiet: bool) -> None:
        self.writer = _writer(folder) if tensorboard else None
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[terms]} {task.fields[figures]}"),
            console=Console(stderr=True, quiet=quiet),
            transient=True,
            disable=quiet,
        )
        self.bar = self.progress.add_task(
            config.method, total=config.recipe.iterations, terms="", figures=""
        )
        self.total = config.recipe.iterations
        self.progress.start()

    def logged(self, step: int, terms: Mapping[str, float]) -> None:
        shown = " ".join(f"{name} {value:.3f}" for name, value in terms.items())
        self.progress.update(self.bar, completed=step, terms=shown)
        if self.writer:
            for name, value in terms.items():
                self.writer.add_scalar(f"loss/{name}", value, step)

    def evaluated(self, step: int, figures: Mapping[str, float]) -> None:
        shown = [f"equity {figures['equity']:.2f}", f"discr {figures['discriminability']:.2f}"]
        if "accuracy" in figures:
            shown.append(f"accuracy {100 * figures['accuracy']:.1f}")
        self.progress.update(self.bar, figures="| " + " ".join(shown))
        if self.writer:
            for name, value in figures.items():
                self.writer.add_scalar(f"evaluation/{name}", value, step)
            self.writer.flush()
        if step == self.total:
            self.progress.stop()


def watch(config: RunConfig, *, folder: Path, tensorboard: bool, quiet: bool) -> Watch:
    """What shows the progress of a run."""
    return Watch(config, folder, tensorboard, quiet)


def _writer(folder: Path) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise InputError("TensorBoard is missing: pip install 'equida[tensorboard]'") from error
    return SummaryWriter(str(folder / "tensorboard"))
