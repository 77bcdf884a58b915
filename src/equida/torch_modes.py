"""What torch may use and is set to: cores, threads, autocast.

torch is imported where it is used: the command line shows its help without it.
"""

import contextlib
import numbers
import os
import threading
from collections.abc import Iterator
from typing import Any

from equida.fields import FieldError

MOST_PROCESSES = 4096
"""Threads or processes; no machine has so many cores, and torch's own check is a crash."""


_SEEDING = threading.RLock()


@contextlib.contextmanager
def own_torch_state() -> Iterator[None]:
    """Inside, torch's generators are seeded, and its modes are those of a new process; the caller's
    go on as if nothing had happened.

    All threads have the same generators, so that other threads wait for their turn.
    """
    import torch

    with _SEEDING, torch.random.fork_rng(range(torch.cuda.device_count())), plain_modes():
        yield


@contextlib.contextmanager
def plain_modes() -> Iterator[None]:
    """Inside, torch computes as in a new process, whatever modes the caller has switched on.

    Autocast, another default type or device, and modes without gradients would change what is
    computed, or stop it.
    """
    import torch

    with contextlib.ExitStack() as modes:
        modes.enter_context(torch.inference_mode(False))
        modes.enter_context(torch.enable_grad())
        for device in ("cpu", "cuda", "mps"):
            if autocasts(device):
                modes.enter_context(torch.autocast(device, enabled=False))
        if torch.get_default_device().type != "cpu":
            modes.enter_context(torch.device("cpu"))
        modes.enter_context(_SINGLE)
        yield


class _SinglePrecision:
    """float32 as torch's default type, which is one for all threads: the first that comes in sets
    it, and the last that leaves puts back what was there."""

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0
        self._before: Any = None

    def __enter__(self) -> None:
        import torch

        with self._lock:
            if not self._inside:
                self._before = torch.get_default_dtype()
                torch.set_default_dtype(torch.float32)
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        import torch

        with self._lock:
            self._inside -= 1
            if not self._inside:
                torch.set_default_dtype(self._before)


_SINGLE = _SinglePrecision()


@contextlib.contextmanager
def own_draws() -> Iterator[None]:
    """Inside, networks that are made draw from a generator of their own, not from torch's.

    Their weights are loaded afterwards. Unlike `own_torch_state`, it waits for no other thread.
    """
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    generator = torch.Generator()

    class Own(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            given = dict(kwargs or {})
            if torch.Tag.nondeterministic_seeded in func.tags:
                if not _takes_generator(func):  # torch.rand has a second form that does
                    form = func._overloadname
                    name = "generator" if form == "default" else f"{form}_generator"
                    func = getattr(func.overloadpacket, name, func)
                if _takes_generator(func):
                    given["generator"] = generator
            return func(*args, **given)

    with Own():  # type: ignore[no-untyped-call]
        yield


def _takes_generator(operation: Any) -> bool:
    return any(each.name == "generator" for each in operation._schema.arguments)


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def decoding_threads() -> int:
    """Threads that decode images while a network works: half as many as there are cores.

    Decoding takes about a fifth of the time that EfficientNet-Lite0 takes, so that neither these
    nor the network's own threads, one for each core, wait long for the others.
    """
    return max(1, cores() // 2)


def threads_asked_for() -> int:
    """The number in OMP_NUM_THREADS; 0 where there is none."""
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(first) if first.isdecimal() else 0


def threads_for(asked: int, *, on_rows: bool, otherwise: int = 0) -> int:
    """Threads of torch for a run: as asked for, else OMP_NUM_THREADS, else one on rows of features,
    whose steps are too small to be shared.

    Args:
        asked: 0 asks for nothing.
        on_rows: whether the run trains on rows of features.
        otherwise: the number on images; 0: as many as torch has.
    """
    return asked or threads_asked_for() or (1 if on_rows else otherwise)


def check_count(name: str, value: Any, expected: str, minimum: int = 0) -> int:
    """A number of threads or processes that a machine can have.

    Raises:
        FieldError: it is not a whole number, or not one from `minimum` to `MOST_PROCESSES`.

    >>> check_count("jobs", float("inf"), "a whole number of at least 0")
    Traceback (most recent call last):
    equida.fields.FieldError: jobs is inf; it must be a whole number of at least 0
    """
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not whole or not minimum <= value <= MOST_PROCESSES:
        raise FieldError(name, value, expected)
    return int(value)


@contextlib.contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """That many threads for torch inside, as many as before outside; 0 or less changes nothing.

    >>> import torch
    >>> with torch_threads(1):
    ...     torch.get_num_threads()
    1
    """
    import torch

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
    import torch

    return torch.amp.is_autocast_available(device) and torch.is_autocast_enabled(device)
