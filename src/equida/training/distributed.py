"""The global batch under data parallelism.

Losses such as BNM, CWSM, NSM, MCC or MMD are functions of the whole batch: their mean over the
shares of N processes is another function with another gradient. So every process gathers what the
others predict and computes the loss of the global batch.
"""

import contextlib
import os
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from lightning_fabric import Fabric
from lightning_fabric.plugins.environments.lightning import LightningEnvironment
from torch import Tensor, nn

from equida.errors import InputError
from equida.training.recipe import Precision

T = TypeVar("T")


def started_outside(processes: int, num_nodes: int = 1) -> bool:
    """Whether the processes of a run are started by others: on each machine, by torchrun or srun.

    Args:
        processes: of the run, on all machines.
        num_nodes: how many machines.
    """
    by_srun = os.environ.get("SLURM_STEP_NUM_TASKS") == str(processes)
    return processes > 1 and (num_nodes > 1 or by_srun or "TORCHELASTIC_RUN_ID" in os.environ)


def make_fabric(
    accelerator: str = "auto",
    devices: int | list[int] = 1,
    num_nodes: int = 1,
    *,
    precision: Precision = "32-true",
) -> Fabric:
    """Device, precision and processes, or an InputError that says what this machine lacks.

    Args:
        accelerator: "cpu", "gpu", "mps" or "auto".
        devices: how many on each machine, or which ones.
        num_nodes: machines.
        precision: as in `Recipe`.
    """
    count = devices if isinstance(devices, int) else len(devices)
    outside = started_outside(count * num_nodes, num_nodes)
    # Processes that are started here, or this one alone, have nothing to do with the numbers of a
    # SLURM job or of torchrun that it may be part of.
    own = None if outside else LightningEnvironment()
    strategy = "auto" if count * num_nodes == 1 else "ddp"
    try:
        with warnings.catch_warnings():
            # Where a precision is replaced by another, training refuses, and says it better.
            warnings.filterwarnings("ignore", "You passed .*precision")
            return Fabric(
                accelerator=accelerator,
                devices=devices,
                num_nodes=num_nodes,
                strategy=strategy,
                precision=precision,
                plugins=own,
            )
    except Exception as error:  # Fabric raises types of its own
        reason = " ".join(str(error).split())
        raise InputError(
            f"{count} x {accelerator} at precision {precision} is not possible here: {reason}"
        ) from error


def on_first(fabric: Fabric, what: Callable[[], T]) -> T:
    """What the function gives on the first process, on all of them; its InputError, too."""
    said: tuple[Any, str] = None, ""
    if fabric.is_global_zero:
        try:
            said = what(), ""
        except InputError as error:
            said = None, str(error)
    value, error_text = fabric.broadcast(said)
    if error_text:
        raise InputError(error_text)
    return value  # type: ignore[no-any-return]


def gather(tensor: Tensor) -> Tensor:
    """The shares of all processes, stacked in the order of their ranks; gradients flow back.

    Data parallelism averages the gradients of N processes, each of which has the gradient of the
    whole loss by its own share. Backward adds up N equal gradients, so that the average is right.
    """
    gathered: Tensor = _Gather.apply(tensor)  # type: ignore[no-untyped-call]
    return gathered


def mean_over_processes(fabric: Fabric, tensor: Tensor) -> Tensor:
    """What all of them have on average; gradients do not flow through it."""
    mean: Any = tensor if fabric.world_size == 1 else fabric.all_reduce(tensor, reduce_op="mean")
    return mean  # type: ignore[no-any-return]


def prepare(fabric: Fabric, module: nn.Module, optimizer: torch.optim.Optimizer) -> tuple[Any, Any]:
    """Both on the device, wrapped by Fabric for many processes and for other precisions.

    One process in plain precision needs no wrappers, which would cost a small step several percent
    of its time.
    """
    if fabric.world_size == 1 and fabric.strategy.precision.precision == "32-true":
        return module.to(fabric.device), optimizer
    return fabric.setup(module, optimizer)  # type: ignore[no-any-return]


def processes(fabric: Fabric) -> dict[str, Any]:
    """What a run is done by: with other numbers the same config rounds otherwise."""
    nodes = int(getattr(fabric.strategy, "num_nodes", 1))
    return {
        "devices": fabric.world_size // nodes,
        "num_nodes": nodes,
        "accelerator": fabric.device.type,
        "threads": torch.get_num_threads(),
    }


def without_exchange(
    fabric: Fabric, module: Any, skip: bool
) -> contextlib.AbstractContextManager[Any]:
    """Inside, backward keeps gradients to its process where `skip` says so: more will be added."""
    if not skip or fabric.world_size == 1:
        return contextlib.nullcontext()
    return fabric.no_backward_sync(module)


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:
        tensor = tensor.contiguous()
        shares = [torch.empty_like(tensor) for _ in range(dist.get_world_size())]
        dist.all_gather(shares, tensor)
        ctx.rows = len(tensor)
        return torch.cat(shares)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        # A copy: the same tensor may be the gradient of something else, too.
        gradient = gradient.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(gradient)
        start = dist.get_rank() * ctx.rows
        return gradient[start : start + ctx.rows]
