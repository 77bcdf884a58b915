"""What torch may use and is set to: cores, threads, autocast."""

import contextlib
import os
from collections.abc import Iterator

import torch


def cores() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def threads_asked_for() -> int:
    """The number in OMP_NUM_THREADS; 0 where there is none."""
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(first) if first.isdecimal() else 0


@contextlib.contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """That many threads for torch inside, as many as before outside; 0 or less changes nothing.

    >>> with torch_threads(1):
    ...     torch.get_num_threads()
    1
    """
    before = torch.get_num_threads()
    if count > 0:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def autocasts(device: str) -> bool:
    """Whether autocast is on there; it is unknown to some devices, such as "meta".

    >>> autocasts("meta")
    False
    """
    return torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)
