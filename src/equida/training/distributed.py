"""The global batch under data parallelism.

Losses such as BNM, CWSM, NSM, MCC or MMD are functions of the whole batch: their mean over the
shares of N processes is another function with another gradient. So every process gathers what the
others predict and computes the loss of the global batch.
"""

import contextlib
from collections.abc import Callable
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from lightning_fabric import Fabric
from torch import Tensor, nn

from equida.errors import InputError

T = TypeVar("T")


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
