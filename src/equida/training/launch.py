"""A run from its config alone: on one process, or on many that share each batch."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from lightning_fabric import Fabric

from equida.training.config import RunConfig
from equida.training.loop import Observer, train
from equida.training.restore import classes_of
from equida.training.tasks import open_task


def launch(
    config: RunConfig,
    folder: Path,
    *,
    devices: int = 1,
    num_nodes: int = 1,
    accelerator: str = "auto",
    watch: Callable[[RunConfig], Observer] | None = None,
) -> dict[str, Any]:
    """Do a run and return its result.

    Args:
        config: the run; it names its data.
        folder: where the run is written.
        devices: processes on this machine, each with a GPU if there are any.
        num_nodes: machines; each must start the same command (torchrun, SLURM).
        accelerator: "cpu", "gpu", or "auto".
        watch: makes what shows progress, on the first process.
    """
    alone = devices * num_nodes == 1
    # One machine starts its processes by itself; several are started from outside.
    strategy = "auto" if alone else "ddp_spawn" if num_nodes == 1 else "ddp"
    fabric = Fabric(
        accelerator=accelerator,
        devices=devices,
        num_nodes=num_nodes,
        strategy=strategy,
        precision=config.recipe.precision,
    )
    if alone:
        return work(fabric, config, folder, watch)
    result: dict[str, Any] = fabric.launch(work, config, folder, watch)  # type: ignore[arg-type]
    return result


def work(
    fabric: Fabric,
    config: RunConfig,
    folder: Path,
    watch: Callable[[RunConfig], Observer] | None,
) -> dict[str, Any]:
    """What each process does."""
    assert config.task is not None, "a run that is launched names its data"
    classes = classes_of(Path(config.initial)) if config.initial else None
    task, _ = open_task(config.task, classes)
    observers = (watch(config),) if watch and fabric.is_global_zero else ()
    return train(config, task, folder=folder, fabric=fabric, observers=observers).result
