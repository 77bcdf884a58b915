"""What a loss says, once in a process, of logits that are probably not what was meant."""

import itertools
import warnings

import torch
from torch import Tensor

from equida.distributed import in_whole_batches, warn_of_share

_calls = itertools.count(1)
_told: set[str] = set()


def notice(logits: Tensor, per_row: bool, stacklevel: int) -> None:
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
