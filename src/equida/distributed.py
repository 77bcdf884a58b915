"""The global batch under data parallelism, for the training loop here and for anybody else's.

Losses such as BNM, CWSM, NSM, MCC or MMD are functions of the whole batch: their mean over the
shares of N processes is another function with another gradient. So every process gathers what the
others predict and computes the loss of the global batch.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


def gather(tensor: Tensor) -> Tensor:
    """The shares of all processes, stacked in the order of their ranks; gradients flow back.

    Data parallelism averages the gradients of N processes, each of which has the gradient of the
    whole loss by its own share. Backward adds up N equal gradients, so that the average is right.
    """
    gathered: Tensor = _Gather.apply(tensor)  # type: ignore[no-untyped-call]
    return gathered


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


def global_batch(loss: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The loss of the global batch, for a training loop under data parallelism.

    With one process, or without `torch.distributed`, the loss is called as it is. With N processes
    every tensor among its arguments is gathered first, so that each process computes the loss of
    the whole batch; DistributedDataParallel's average of the gradients is then the gradient that
    one process would have had. The shares of all processes must be of the same size.

    Args:
        loss: a function of logits, or of several tensors whose rows are samples.

    >>> from equida.losses import nsm
    >>> logits = torch.tensor([[2.0, 0.0], [0.0, 2.0]])
    >>> global_batch(nsm)(logits) == nsm(logits)
    tensor(True)
    """

    @functools.wraps(loss)
    def of_global_batch(*arguments: Any, **options: Any) -> Tensor:
        if not (dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1):
            return loss(*arguments, **options)
        gathered = [gather(each) if _has_rows(each) else each for each in arguments]
        named = {name: gather(each) if _has_rows(each) else each for name, each in options.items()}
        return loss(*gathered, **named)

    return of_global_batch


def _has_rows(value: object) -> bool:
    return isinstance(value, Tensor) and value.ndim > 0
