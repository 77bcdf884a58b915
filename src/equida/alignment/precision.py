"""Full precision for what is computed between two domains, whatever the training runs in."""

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor

from equida.torch_modes import autocasts

P = ParamSpec("P")
R = TypeVar("R")


def full_precision(function: Callable[P, R]) -> Callable[P, R]:
    """The function with half-precision tensor arguments as float32, and with autocast switched off.

    Distances and logarithms cancel: 8 bits of mantissa are not enough for them.
    """

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        raised: Any = [_raised(argument) for argument in args]
        named: Any = {name: _raised(argument) for name, argument in kwargs.items()}
        device = next(
            (a.device.type for a in [*raised, *named.values()] if isinstance(a, Tensor)), "cpu"
        )
        if not autocasts(device):
            return function(*raised, **named)
        with torch.autocast(device, enabled=False):
            return function(*raised, **named)

    return wrapped


def _raised(argument: object) -> object:
    if isinstance(argument, Tensor) and argument.dtype in (torch.float16, torch.bfloat16):
        return argument.float()
    return argument


def same_width(source: Tensor, target: Tensor) -> None:
    """A ValueError unless both are matrices with rows, of one width."""
    shapes = tuple(source.shape), tuple(target.shape)
    if source.ndim != 2 or target.ndim != 2 or 0 in (*source.shape, *target.shape):
        raise ValueError(f"shapes are {shapes[0]} and {shapes[1]}; both must be (batch, width)")
    if source.shape[1] != target.shape[1]:
        raise ValueError(f"shapes are {shapes[0]} and {shapes[1]}; the widths must be equal")
