"""The processes of a run on one machine."""

import contextlib
import logging
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from typing import Any

from lightning_fabric.plugins.environments.lightning import find_free_network_port
from torch.multiprocessing.spawn import (
    ProcessExitedException,
    ProcessRaisedException,
    spawn,
)

from equida.errors import InputError
from equida.training.parent import end_with

GRACE_SECONDS = 10.0

# That it ends the others when one has failed is not what the user has to know.
logging.getLogger("torch.multiprocessing.spawn").setLevel(logging.ERROR)


def in_processes(work: Callable[[], object], count: int) -> None:
    """Call `work` in that many processes, which Fabric's "ddp" finds numbered, and wait for them.

    However this ends, also by Ctrl-C or SIGTERM, they have ended before.

    Raises:
        InputError: one of them did.
    """
    complaints = multiprocessing.get_context("spawn").SimpleQueue()
    arguments = (work, count, find_free_network_port(), os.getpid(), complaints)
    others = set(multiprocessing.active_children())
    try:
        with _undisturbed():
            context: Any = spawn(_process, arguments, count, join=False)
        while not context.join():
            pass
    except (ProcessExitedException, ProcessRaisedException):
        if complaints.empty():
            raise
        raise InputError(complaints.get()) from None
    finally:
        mine = set(multiprocessing.active_children()) - others
        for process in mine:
            process.terminate()
        for process in mine:
            process.join(GRACE_SECONDS)
            process.kill()


def _process(
    rank: int, work: Callable[[], object], count: int, port: int, parent: int, complaints: Any
) -> None:
    end_with(parent)
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "NODE_RANK": 0}
    place |= {"LOCAL_RANK": rank, "WORLD_SIZE": count}
    os.environ.update({name: str(value) for name, value in place.items()})
    try:
        work()
    except InputError as error:
        complaints.put(str(error))
        raise SystemExit(2) from None


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    """Inside, processes are started whole, and such that Ctrl-C does not concern them.

    It reaches every process of a terminal, and only this one has to do something about it. Here it
    waits, as SIGTERM does, until they are started: one that is half started would complain.
    """
    waiting: list[int] = []
    ends = (signal.SIGINT, signal.SIGTERM)
    try:
        before = [signal.signal(number, lambda n, _: waiting.append(n)) for number in ends]
    except ValueError:  # in another thread than the main one, which handles no signals
        yield
        return
    # Processes that are started have the same signals blocked, and their own handlers.
    blocks = hasattr(signal, "pthread_sigmask")
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ends[:1]) if blocks else set()
    try:
        yield
    finally:
        for number, handler in zip(ends, before, strict=True):
            signal.signal(number, handler or signal.SIG_DFL)
        if blocks:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for arrived in waiting[:1]:
            signal.raise_signal(arrived)
