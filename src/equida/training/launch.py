"""Doing a run: on one process, or on many that share each batch."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import torch.distributed

from equida import plugins
from equida.data import Task
from equida.data.spec import open_task
from equida.errors import InputError, require
from equida.progress import Mode, RunProgress
from equida.torch_modes import MOST_PROCESSES, check_count, threads_for, torch_threads
from equida.training.build import SeededBackbone
from equida.training.config import RunConfig
from equida.training.folder import RunFolder
from equida.training.loop import train
from equida.training.predictor import classes_of
from equida.training.processes import (
    AnyFabric,
    lost_processes,
    make_fabric,
    on_rank_zero,
    spawn_ranks,
    started_outside,
)
from equida.training.recipe import Precision


def launch(
    config: RunConfig,
    folder: Path,
    *,
    devices: int = 1,
    num_nodes: int = 1,
    accelerator: str = "auto",
    threads: int = 0,
    task: Task | None = None,
    backbone: SeededBackbone | None = None,
    mode: Mode = "silent",
    tensorboard: bool = False,
    existing_result: Callable[[], dict[str, Any] | None] = lambda: None,
) -> dict[str, Any] | None:
    """Do a run and return its result; None where another process started from outside has it.

    Args:
        config: the run.
        folder: where the run is written.
        devices: processes on this machine, each with a GPU if there are any.
        num_nodes: machines; each must start the same command, with MASTER_ADDR, MASTER_PORT and
            NODE_RANK in its environment, by SLURM or by torchrun.
        accelerator: "cpu", "gpu", or "auto".
        threads: of torch in each process; 0: OMP_NUM_THREADS if that is set, else one for rows of
            features, whose steps are too small to be shared (beside other work two took 8 to 24
            times as long, waiting for each other), and for images as many as torch has.
        task: the data, where they are open already; None: those that the config names are opened.
        backbone: the config's backbone, where it has been loaded already.
        mode: how rank zero shows progress.
        tensorboard: write curves for TensorBoard into the folder.
        existing_result: asked on rank zero whether there is a result already, once all processes
            are there: what one machine finds on its disk, another one may not.
    """
    check_processes(config.recipe.batch_size, devices, num_nodes, threads)
    threads = threads_for(threads, on_rows=config.backbone == "none")
    if num_nodes > 1 and not {"MASTER_ADDR", "SLURM_NTASKS"} & set(os.environ):
        raise InputError(
            f"--num-nodes is {num_nodes}, but nothing says where the others are; on each set"
            " MASTER_ADDR, MASTER_PORT and NODE_RANK (0, 1, ...), or start it by srun or torchrun"
        )
    fabric = make_fabric(accelerator, devices, num_nodes, precision=config.recipe.precision)
    job = partial(
        work, config=config, folder=folder, mode=mode, tensorboard=tensorboard, threads=threads
    )
    if devices * num_nodes == 1:
        return job(fabric, task=task, backbone=backbone)
    if started_outside(devices * num_nodes, num_nodes):
        with lost_processes():
            fabric.launch()
            done = on_rank_zero(fabric, existing_result) or job(fabric, task=task)
            _leave()
        return done if fabric.is_global_zero else None
    # Only data that no path leads to are sent to the processes; others they open themselves.
    job = partial(job, task=task if config.task is None else None)
    plugins.require_importable([config.backbone, *(each.name for each in config.plugins)])
    code = plugins.permission()
    started = partial(_started, job, accelerator, devices, config.recipe.precision, code)
    spawn_ranks(started, devices)
    return RunFolder(folder).read_result()


def _started(
    job: Callable[[AnyFabric], object],
    accelerator: str,
    devices: int,
    precision: Precision,
    code: plugins.Permission,
) -> None:
    plugins.grant(code)
    fabric = make_fabric(accelerator, devices, precision=precision)
    with lost_processes():
        fabric.launch()
        job(fabric)
        _leave()


def _leave() -> None:
    """End the exchange between processes; its threads can abort the interpreter at exit."""
    torch.distributed.destroy_process_group()


def check_processes(batch_size: int, devices: int, num_nodes: int, threads: int) -> None:
    """Raise InputError for numbers that cannot be, or that cannot share batches equally."""
    check_count(
        "--threads", threads, f"0 (as suits the data) or a whole number up to {MOST_PROCESSES}"
    )
    check_count("--devices", devices, f"a whole number from 1 to {MOST_PROCESSES}", 1)
    check_count("--num-nodes", num_nodes, f"a whole number from 1 to {MOST_PROCESSES}", 1)
    if batch_size % (devices * num_nodes):
        raise InputError(
            f"{devices} devices on {num_nodes} machines cannot share batches of {batch_size}"
            " equally; the batch size must be a multiple of devices times machines"
        )
    if batch_size == devices * num_nodes > 1:
        raise InputError(
            f"each of {batch_size} processes would have one sample of a batch of {batch_size}; they"
            " need at least two: use fewer --devices or a larger --batch-size"
        )


def work(
    fabric: AnyFabric,
    config: RunConfig,
    folder: Path,
    mode: Mode,
    tensorboard: bool,
    threads: int,
    task: Task | None = None,
    backbone: SeededBackbone | None = None,
) -> dict[str, Any]:
    """What each process of a run does; the arguments are those of `launch`."""
    if task is None:
        assert config.task is not None, "a run that names no data is given them"
        classes = classes_of(Path(config.from_run)) if config.from_run else None
        task = open_task(config.task, classes).task
    curves = folder if tensorboard else None
    shown = watch(config, mode, curves) if fabric.is_global_zero else nullcontext()
    with torch_threads(threads), shown as observer:
        trained = train(
            config,
            task,
            folder=folder,
            fabric=fabric,
            observers=(observer,) if observer else (),
            backbone=backbone,
            look_at_target=True,
            calibrate_confidences=True,
        )
    return trained.result


@contextmanager
def watch(config: RunConfig, mode: Mode, curves: Path | None = None) -> Iterator[RunProgress]:
    """The observer that shows a run's progress; the terminal is put right however the run ends.

    Args:
        config: the run.
        mode: how progress is shown.
        curves: the folder in which curves for TensorBoard are written; None: there are none.
    """
    writer = None
    if curves:
        tensorboard = require(
            "torch.utils.tensorboard", "curves need TensorBoard", "equida[tensorboard]"
        )
        writer = tensorboard.SummaryWriter(str(curves / "tensorboard"))
    try:
        with RunProgress(mode, config.method, config.recipe.iterations, writer) as shown:
            yield shown
    finally:
        if writer:
            writer.close()
