"""A run from its config alone: on one process, or on many that share each batch."""

import logging
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import torch.distributed
from lightning_fabric import Fabric

from equida.errors import InputError
from equida.torch_modes import torch_threads
from equida.training.config import RunConfig
from equida.training.distributed import on_first
from equida.training.fabric import make_fabric, started_outside
from equida.training.folder import RunFolder
from equida.training.loop import Observer, train
from equida.training.recipe import Precision
from equida.training.restore import classes_of
from equida.training.spawn import in_processes
from equida.training.tasks import open_task

# Its banners would come between the lines that the user asked for. Here, because every process that
# is started imports this before Fabric says anything.
logging.getLogger("lightning_fabric").setLevel(logging.WARNING)

Watching = Callable[[RunConfig], AbstractContextManager[Observer]]


def launch(
    config: RunConfig,
    folder: Path,
    *,
    devices: int = 1,
    num_nodes: int = 1,
    accelerator: str = "auto",
    threads: int = 0,
    watch: Watching | None = None,
    before: Callable[[], dict[str, Any] | None] = lambda: None,
) -> dict[str, Any] | None:
    """Do a run and return its result; None where another process started from outside has it.

    Args:
        config: the run; it names its data.
        folder: where the run is written.
        devices: processes on this machine, each with a GPU if there are any.
        num_nodes: machines; each must start the same command, with MASTER_ADDR, MASTER_PORT and
            NODE_RANK in its environment, by SLURM or by torchrun.
        accelerator: "cpu", "gpu", or "auto".
        threads: of torch in each process; 0: one for rows of features, whose steps are too small
            to be shared (beside other work two took 8 to 24 times as long, waiting for each other);
            otherwise as many as torch has.
        watch: makes what shows progress, on the first process.
        before: asked on the first process whether there is a result already, once all of them are
            there: what one machine finds on its disk, another one may not.
    """
    check_shares(config.recipe.batch_size, devices, num_nodes)
    if threads < 0:
        raise InputError(f"--threads is {threads}; it must be 0 (as suits the data) or more")
    threads = threads or (1 if config.backbone == "none" else 0)
    if num_nodes > 1 and not {"MASTER_ADDR", "SLURM_NTASKS"} & set(os.environ):
        raise InputError(
            f"--num-nodes is {num_nodes}, but nothing says where the others are; on each set"
            " MASTER_ADDR, MASTER_PORT and NODE_RANK (0, 1, ...), or start it by srun or torchrun"
        )
    fabric = make_fabric(accelerator, devices, num_nodes, precision=config.recipe.precision)
    job = partial(work, config=config, folder=folder, watch=watch, threads=threads)
    if devices * num_nodes == 1:
        return job(fabric)
    if started_outside(devices * num_nodes, num_nodes):
        fabric.launch()
        done = on_first(fabric, before) or job(fabric)
        _leave()
        return done if fabric.is_global_zero else None
    in_processes(partial(_started, job, accelerator, devices, config.recipe.precision), devices)
    result: dict[str, Any] = RunFolder(folder).read_json("result.json")
    return result


def _started(
    job: Callable[[Fabric], object], accelerator: str, devices: int, precision: Precision
) -> None:
    fabric = make_fabric(accelerator, devices, precision=precision)
    fabric.launch()
    job(fabric)
    _leave()


def _leave() -> None:
    """End the exchange between processes, whose threads sometimes abort the interpreter's end."""
    torch.distributed.destroy_process_group()


def check_shares(batch_size: int, devices: int, num_nodes: int) -> None:
    """Raise InputError where the processes cannot share batches equally."""
    if devices < 1 or num_nodes < 1 or batch_size % (devices * num_nodes):
        raise InputError(
            f"{devices} devices on {num_nodes} machines cannot share batches of "
            f"{batch_size} equally; choose numbers that divide it"
        )
    if batch_size == devices * num_nodes > 1:
        raise InputError(
            f"each of {batch_size} processes would have one sample of a batch of {batch_size}; they"
            " need at least two: use fewer --devices or a larger --batch-size"
        )


def work(
    fabric: Fabric,
    config: RunConfig,
    folder: Path,
    watch: Watching | None,
    threads: int = 0,
) -> dict[str, Any]:
    """What each process does."""
    assert config.task is not None, "a run that is launched names its data"
    classes = classes_of(Path(config.initial)) if config.initial else None
    task, _ = open_task(config.task, classes)
    with torch_threads(threads):
        if not watch or not fabric.is_global_zero:
            return train(config, task, folder=folder, fabric=fabric).result
        with watch(config) as observer:
            return train(config, task, folder=folder, fabric=fabric, observers=(observer,)).result
