"""What the losses share: checked, full-precision logits, and gradients in closed form."""

import itertools
import math
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal, NoReturn, Protocol, get_args

import torch
from torch import Tensor

from equida.distributed import in_whole_batches, warn_of_share
from equida.torch_modes import autocasts

ValueAndGradient = Callable[..., tuple[Tensor, Tensor]]

SMALLEST_RELATIVE_SHARE = 1e-6
"""A class counts as at least a millionth of its uniform share: that is absent in every real target,
and its weights, 1e6 at most, stay far inside the range of float32."""

Scale = Literal["paper", "transfer", "optimum"]
"""The scale of a loss: the paper's formula; the same at batches of 36, and at others such that the
weight of the loss carries over; or divided by what its value is at most, so that the minimum is -1
where the number of classes divides the batch, and up to a ninth above it elsewhere (NSM at
alpha = 1). Bounds are those for equal class sizes: with a prior a loss can be lower."""

PAPER_BATCH = 36
"""Target rows in a batch of the paper, for which its weights of the losses are meant."""

_calls = itertools.count(1)
_told: set[str] = set()


class HasLogits(Protocol):
    """What a model of Hugging Face returns, for example."""

    @property
    def logits(self) -> Any: ...


Logits = Tensor | HasLogits


def checked(logits: Logits, *, per_row: bool = False) -> Tensor:
    """The logits as float32 (float64 stays), or a ValueError if they are no prediction matrix.

    Warns once where they are probabilities, and where they are the share of one of several
    processes.

    Args:
        logits: a tensor, or an object that has it as `.logits`.
        per_row: whether the loss is a mean over rows, which processes may average.
    """
    if not isinstance(logits, Tensor):
        inside = getattr(logits, "logits", None)
        if not isinstance(inside, Tensor):
            kind = type(logits).__name__
            raise ValueError(f"logits are a {kind}; they must be a tensor, or have one as .logits")
        logits = inside
    if logits.ndim != 2:
        raise ValueError(
            f"logits have shape {tuple(logits.shape)}; they must be 2-D (batch, classes)"
        )
    if logits.shape[0] == 0 or logits.shape[1] == 0:
        raise ValueError(f"logits have shape {tuple(logits.shape)}; no axis may be empty")
    if not logits.is_floating_point():
        raise ValueError(f"logits are {logits.dtype}; they must be floating point, before softmax")
    if not torch.compiler.is_compiling():
        _notice(logits, per_row, stacklevel=3)
    return logits if logits.dtype in (torch.float32, torch.float64) else logits.float()


def _notice(logits: Tensor, per_row: bool, stacklevel: int) -> None:
    """Warn of probabilities, and of the share of one process where the whole batch is meant.

    Whether logits are probabilities is looked at in calls number 1, 2, 4, 8, ... of a process, as a
    look waits for the device.

    Args:
        logits: what a loss was given.
        per_row: whether the loss is a mean over rows, which processes may average.
        stacklevel: as of `warnings.warn`, counted from the caller.
    """
    if in_whole_batches():
        return
    if not per_row:
        warn_of_share(logits, stacklevel + 1)
    call = next(_calls)
    if call & (call - 1) == 0 and "probabilities" not in _told and _are_probabilities(logits):
        _told.add("probabilities")
        warnings.warn(
            "logits look like probabilities: all rows are in [0, 1] and sum to 1; losses take the "
            "output of the last layer and apply the softmax themselves",
            stacklevel=stacklevel + 1,
        )


def _are_probabilities(logits: Tensor) -> bool:
    if logits.shape[1] < 2 or not _can_be_read(logits):
        return False
    probs = logits.detach().float()
    tolerance = 1e-4 if logits.dtype in (torch.float32, torch.float64) else 2e-2
    return bool(
        ((probs >= 0.0) & (probs <= 1.0)).all() & ((probs.sum(1) - 1.0).abs() <= tolerance).all()
    )


def _can_be_read(tensor: Tensor) -> bool:
    """Whether a value may be asked for: not while something is traced, vectorised or recorded."""
    return (
        type(tensor) in (Tensor, torch.nn.Parameter)
        and tensor.device.type != "meta"
        and not torch._C._are_functorch_transforms_active()
        and torch._C._len_torch_dispatch_stack() == 0
        and not torch._C._is_tracing()
        and not (tensor.is_cuda and torch.cuda.is_current_stream_capturing())
    )


def log_probabilities(logits: Tensor) -> Tensor:
    """The log-softmax of `logits`, finite wherever they are.

    The difference of two finite logits can be larger than any number of their dtype, and 0 times
    the infinity that it becomes is not a number. An eighth of the range leaves room for a sum of
    two such logarithms and a prior.
    """
    return logits.log_softmax(1).clamp_min(torch.finfo(logits.dtype).min / 8)


def in_range(name: str, value: Any, low: float, high: float) -> None:
    """A ValueError unless low <= value <= high; NaN is outside every range."""
    if value is None or isinstance(value, str) or not low <= value <= high:
        raise ValueError(f"{name} is {value!r}; it must be in [{low:g}, {high:g}]")


def positive(name: str, value: Any) -> None:
    """A ValueError unless the value is finite and above 0."""
    if value is None or isinstance(value, str) or not 0 < value < math.inf:
        raise ValueError(f"{name} is {value!r}; it must be finite and above 0")


def one_of(name: str, value: object, allowed: Any) -> None:
    """A ValueError unless the value is one of those that the Literal `allowed` has."""
    if value not in get_args(allowed):
        raise ValueError(f"{name} is {value!r}; it must be one of {', '.join(get_args(allowed))}")


def rescale(loss: Tensor, normalize: Scale, batch: int, largest: Callable[[int], float]) -> Tensor:
    """A loss of the paper in another scale.

    Args:
        loss: in the paper's scale.
        normalize: the scale.
        batch: rows of the batch.
        largest: the bound of minus the loss, by the rows of a batch.
    """
    if normalize == "optimum":
        return loss / largest(batch)
    if normalize == "paper" or batch == PAPER_BATCH:
        return loss
    return loss * (largest(PAPER_BATCH) / largest(batch))


def relative_prior(prior: Tensor | Sequence[float], logits: Tensor) -> Tensor:
    """C q_c for every class: how much larger than in a uniform target class c is aimed to be.

    No class is below `SMALLEST_RELATIVE_SHARE`, so that shares of 0 are welcome.
    """
    classes = logits.shape[1]
    try:
        shares = torch.as_tensor(prior, dtype=logits.dtype, device=logits.device).detach()
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(
            f"prior is {prior!r}; a loss takes one share for each of the {classes} classes, in"
            " their order: names, such as 'estimate', belong to equida.adapt"
        ) from None
    if shares.shape != (classes,):
        raise ValueError(
            f"prior has shape {tuple(shares.shape)}; it needs one share for each of the "
            f"{classes} classes"
        )
    if not torch.compiler.is_compiling() and _can_be_read(shares):
        total, least = float(shares.sum()), float(shares.min())
        half = isinstance(prior, Tensor) and prior.dtype in (torch.float16, torch.bfloat16)
        if not abs(total - 1.0) <= (1e-2 if half else 1e-3):
            raise ValueError(f"prior sums to {total:g}; the shares of the classes must sum to 1")
        if not least >= 0.0:
            raise ValueError(f"prior has a share of {least:g}; shares must not be below 0")
    return (shares * classes).clamp_min(SMALLEST_RELATIVE_SHARE)


def refuse_prior_without_equity(r: float, prior: Any) -> None:
    """A ValueError where a loss whose pressure `r` is 0 is given shares to aim at."""
    if r == 0.0 and prior is not None:
        raise ValueError(
            "prior is given with r = 0, where the sizes of the classes do not count; "
            "leave it out, or choose r above 0"
        )


def from_closed_form(compute: ValueAndGradient, logits: Tensor, *arguments: Any) -> Tensor:
    """The scalar loss whose value and gradient `compute(logits, *arguments)` gives.

    The gradient is computed with the value, where all that it needs is at hand; backward is then
    one multiplication. Where a gradient of the gradient is asked for, backward computes it again
    from the logits, as differentiable operations.
    """
    if autocasts(logits.device.type):
        with torch.autocast(logits.device.type, enabled=False):
            return from_closed_form(compute, logits, *arguments)
    value: Tensor
    if torch.compiler.is_compiling() and not logits.requires_grad:
        value, _ = compute(logits, *arguments)  # a Function without a gradient does not compile
    elif torch._C._are_functorch_transforms_active():
        value, _ = _Transformable.apply(compute, logits, *arguments)  # type: ignore[no-untyped-call]
    else:
        value = _ClosedForm.apply(compute, logits, *arguments)  # type: ignore[no-untyped-call]
    return value


class _ClosedForm(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, compute: ValueAndGradient, logits: Tensor, *arguments: Any) -> Tensor:
        value, gradient = compute(logits, *arguments)
        ctx.compute, ctx.arguments = compute, arguments
        ctx.gradient = gradient
        ctx.save_for_backward(logits)
        return value

    @staticmethod
    def backward(ctx: Any, grad_value: Tensor) -> Any:
        gradient = ctx.gradient
        if torch.is_grad_enabled():
            _, gradient = ctx.compute(*ctx.saved_tensors, *ctx.arguments)
        return None, gradient * grad_value, *(None,) * len(ctx.arguments)


class _Transformable(torch.autograd.Function):
    """The same for `vmap` and `torch.func`, which want the context apart; costs more per call."""

    generate_vmap_rule = True

    @staticmethod
    def forward(compute: ValueAndGradient, logits: Tensor, *arguments: Any) -> Any:
        return compute(logits, *arguments)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        ctx.compute, logits, *ctx.arguments = inputs
        ctx.save_for_backward(logits, output[1])
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx: Any, grad_value: Tensor, _: Tensor) -> Any:
        logits, gradient = ctx.saved_tensors
        if torch.is_grad_enabled():
            _, gradient = ctx.compute(logits, *ctx.arguments)
        return None, gradient * grad_value, *(None,) * len(ctx.arguments)

    @staticmethod
    def jvp(*_: Any) -> NoReturn:
        # A derivative of the closed form in forward mode would be right once, but not twice.
        raise NotImplementedError(
            "this loss has no derivatives in forward mode (jvp, jacfwd, hessian of torch.func); use"
            " torch.func.jacrev, twice for a Hessian, or torch.autograd.functional.hessian"
        )


def through_softmax(by_probs: Tensor, probs: Tensor) -> Tensor:
    """The gradient by the logits of what has the gradient `by_probs` by their softmax."""
    gradient: Tensor = torch._softmax_backward_data(by_probs, probs, 1, probs.dtype)
    return gradient
