"""The global batch under data parallelism, for the training loop here and for anybody else's.

Losses such as BNM, CWSM, NSM, MCC or MMD are functions of the whole batch: their mean over the
shares of N processes is another function with another gradient. So every process gathers what the
others predict and computes the loss of the global batch.
"""

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd.function import once_differentiable

_whole: ContextVar[bool] = ContextVar("whole_batches", default=False)
_told: set[str] = set()
DTYPES = (
    torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64, torch.int32,
    torch.int16, torch.int8, torch.uint8, torch.bool, torch.complex64, torch.complex128,
)  # fmt: skip
"""What shares may consist of; processes tell each other the place in this list."""


def gather(
    tensor: Tensor, sizes: Sequence[int] | None = None, group: dist.ProcessGroup | None = None
) -> Tensor:
    """The shares of all processes, stacked in the order of their ranks; gradients flow back.

    Data parallelism averages the gradients of N processes, each of which has the gradient of the
    whole loss by its own share. Backward adds up N equal gradients, so that the average is right.

    Args:
        tensor: the share of this process.
        sizes: the number of rows of each process; None: as many as here.
        group: the processes that share the batch; None: all.

    >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    >>> gather(torch.ones(2, 3)).shape  # with N processes: (2 * N, 3)
    torch.Size([2, 3])
    >>> dist.destroy_process_group()
    """
    if sizes is None:
        sizes = [len(tensor)] * dist.get_world_size(group)
    gathered: Tensor = _Gather.apply(tensor, sizes, group)  # type: ignore[no-untyped-call]
    return gathered


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, tensor: Tensor, sizes: Sequence[int], group: dist.ProcessGroup | None
    ) -> Tensor:
        ctx.sizes, ctx.group = sizes, group
        # Shares of one size are all that every backend can gather: the smaller ones are filled up.
        largest = max(sizes)
        share = tensor.contiguous()
        if len(share) < largest:
            share = torch.cat([share, share.new_zeros(largest - len(share), *share.shape[1:])])
        shares = [torch.empty_like(share) for _ in sizes]
        dist.all_gather(shares, share, group=group)
        return torch.cat([each[:rows] for each, rows in zip(shares, sizes, strict=True)])

    @staticmethod
    @once_differentiable  # a gradient of the gradient would need another gather
    def backward(ctx: Any, gradient: Tensor) -> Any:
        # A copy: the same tensor may be the gradient of something else, too.
        gradient = gradient.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(gradient, group=ctx.group)
        rank = dist.get_rank(ctx.group)
        return gradient.split(list(ctx.sizes))[rank], None, None


def global_batch(
    loss: Callable[..., Tensor], *, group: dist.ProcessGroup | None = None
) -> Callable[..., Tensor]:
    """The loss of the global batch, for a training loop under data parallelism.

        loss = F.cross_entropy(z_s, y) + 2.0 * global_batch(nsm)(z_t)

    With N processes the positional arguments are gathered first, and each process computes the
    loss of the whole batch. Backward multiplies by N, because DistributedDataParallel (like FSDP,
    Lightning and Accelerate) divides by N when it averages gradients; so the parameters get the
    gradient that one process with the whole batch would have given them. The cross-entropy above
    needs no gathering: the average of the processes' means is the mean of the batch, as long as
    their shares of the source are of one size. Where they are not, write
    `global_batch(F.cross_entropy)(z_s, y)`.

    Shares may differ in size and may be empty, but every process has to call. With one process, or
    without `torch.distributed`, the loss is called as it is.

    Args:
        loss: a function of logits, or of several tensors whose rows are samples, such as
            `equida.alignment.mmd`. It is called with the positional arguments gathered (of an
            object with `.logits`, these), and with keyword arguments as they are: pass what has no
            rows of samples, such as `prior=` or the `weight=` of the classes, by keyword.
        group: the processes that share the batch; None: all.

    >>> from equida.losses import nsm
    >>> logits = torch.tensor([[2.0, 0.0], [0.0, 2.0]])
    >>> global_batch(nsm)(logits) == nsm(logits)
    tensor(True)
    """

    return _GlobalBatch(loss, group)


class _GlobalBatch:
    """A class rather than a function in a function, so that a module that has it can be pickled."""

    def __init__(self, loss: Callable[..., Tensor], group: dist.ProcessGroup | None) -> None:
        if not callable(loss):
            raise ValueError(
                f"loss is {loss!r}; it must be a function of logits, such as equida.losses.nsm"
            )
        functools.update_wrapper(self, loss)
        self.loss, self.group = loss, group

    def __repr__(self) -> str:
        return f"global_batch({getattr(self.loss, '__name__', self.loss)})"

    def __call__(self, *arguments: Any, **options: Any) -> Tensor:
        for name, value in options.items():
            if isinstance(value, Tensor) and value.requires_grad:
                raise ValueError(
                    f"{name} is passed by keyword and needs a gradient; global_batch gathers "
                    "positional arguments only: pass it by position"
                )
        if _processes(self.group) == 1:
            return self.loss(*arguments, **options)
        tensors = [_rows_of(argument) for argument in arguments]
        shares = [each for each in tensors if each is not None]
        gathered = iter(_gather_all(shares, self.group))
        whole = [
            argument if rows is None else next(gathered)
            for argument, rows in zip(arguments, tensors, strict=True)
        ]
        with whole_batches():
            return self.loss(*whole, **options)


@contextlib.contextmanager
def whole_batches() -> Iterator[None]:
    """Inside, losses are computed of whole batches, and nothing is said about shares."""
    token = _whole.set(True)
    try:
        yield
    finally:
        _whole.reset(token)


def in_whole_batches() -> bool:
    """Whether the caller is inside `whole_batches`."""
    return _whole.get()


def warn_of_share(rows: Tensor, stacklevel: int) -> None:
    """Warn, once in a process, where a loss of the whole batch is given the share of a process.

    Only a loss that is trained with is looked at: one process alone may well evaluate something,
    and would wait forever for the others if it gathered.
    """
    if torch.compiler.is_compiling() or _whole.get() or "share" in _told:
        return
    if not (rows.requires_grad and torch.is_grad_enabled()):
        return
    processes = _processes(None)
    if processes > 1:
        _told.add("share")
        warnings.warn(
            f"a loss of the whole batch is given the {len(rows)} rows of one of {processes} "
            "processes, and its gradient is not the one of the batch; write "
            "global_batch(loss)(logits) instead (from equida import global_batch)",
            stacklevel=stacklevel + 1,
        )


def _processes(group: dist.ProcessGroup | None) -> int:
    if dist.is_available() and dist.is_initialized():
        return dist.get_world_size(group)
    return 1


def _rows_of(argument: object) -> Tensor | None:
    """The tensor with a row for each sample that an argument is or has."""
    value = argument if isinstance(argument, Tensor) else getattr(argument, "logits", None)
    return value if isinstance(value, Tensor) and value.ndim > 0 else None


def _gather_all(tensors: Sequence[Tensor], group: dist.ProcessGroup | None) -> list[Tensor]:
    """Every tensor gathered, after the processes have told each other what they have."""
    if not tensors:
        raise ValueError("global_batch has nothing to gather; pass the logits by position")
    for number, each in enumerate(tensors):
        if each.dtype not in DTYPES:
            raise ValueError(
                f"argument {number} is {each.dtype}; expected one of {', '.join(map(str, DTYPES))}"
            )
    learns = [each.requires_grad and torch.is_grad_enabled() for each in tensors]
    mine = [
        [len(each), each.shape[1:].numel(), wants, DTYPES.index(each.dtype)]
        for each, wants in zip(tensors, learns, strict=True)
    ]
    device = tensors[0].device
    told = torch.tensor(mine, dtype=torch.int64, device=device)
    answers = [torch.empty_like(told) for _ in range(_processes(group))]
    dist.all_gather(answers, told, group=group)
    gathered = []
    columns = torch.stack(answers, 1).tolist()
    for number, (tensor, learned, of_processes) in enumerate(
        zip(tensors, learns, columns, strict=True)
    ):
        sizes, widths, wanted, dtypes = zip(*of_processes, strict=True)
        if len(set(widths)) > 1:
            raise ValueError(
                f"argument {number} has {', '.join(map(str, widths))} values in a row in the "
                "processes; every process must pass rows of one width, also with an empty share"
            )
        if len(set(dtypes)) > 1:
            raise ValueError(
                f"argument {number} is {', '.join(str(DTYPES[each]) for each in dtypes)} in the"
                " processes; every process must pass rows of one dtype, also with an empty share"
            )
        if any(wanted) and not learned:
            # Backward must be reached here as well: the others wait for it.
            tensor = tensor.detach().requires_grad_()
        gathered.append(gather(tensor, sizes, group))
    return gathered
