"""Threads that read files ahead of whoever needs them; a wait for them has an end."""

import concurrent.futures
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Thread
from typing import TypeVar

from equida.errors import InputError

T = TypeVar("T")
R = TypeVar("R")

PATIENCE_SECONDS = 600.0
"""How long one piece may take before the command stops and names the files that it waits for."""
GRACE_SECONDS = 5.0
"""How long a thread may take to end when its work is no longer needed."""


class FilesBeingRead:
    """The file that each thread is reading, for the message of a wait that takes too long."""

    def __init__(self) -> None:
        self._files: dict[int, str] = {}
        self.begun = 0
        """How many files have been begun by now, about: threads count at once."""

    @contextmanager
    def reading(self, file: object) -> Iterator[None]:
        thread = threading.get_ident()
        self._files[thread] = str(file)
        self.begun += 1
        try:
            yield
        finally:
            self._files.pop(thread, None)

    def __str__(self) -> str:
        return ", ".join(sorted(self._files.values())) or "nothing: no thread has started"


def read_ahead(
    read: Callable[[T], R],
    items: Iterable[T],
    workers: int,
    *,
    ahead: int,
    what: str,
    at_work: FilesBeingRead,
    prepare: Callable[[], None] = lambda: None,
) -> Iterator[R]:
    """What `read` makes of each item, in order; threads call it while the caller is at work.

    Args:
        read: reads one piece; what it raises is raised here.
        items: asked for as they are needed.
        workers: how many threads there are.
        ahead: how many pieces are read, or being read, before they are asked for.
        what: what the caller waits for, as it follows "no" in the message.
        at_work: what the threads are reading.
        prepare: called in each thread first.

    Raises:
        InputError: a piece has not come for a very long time.
    """
    left = iter(items)
    tasks: SimpleQueue[tuple[T, Future[R]] | None] = SimpleQueue()
    # Daemon threads: one that waits for a dead disk must not keep the process alive.
    threads = [
        Thread(target=_work, args=(read, tasks, prepare), daemon=True) for _ in range(workers)
    ]
    for thread in threads:
        thread.start()
    waiting: deque[Future[R]] = deque()
    try:
        while True:
            for item in left:
                waiting.append(Future())
                tasks.put((item, waiting[-1]))
                if len(waiting) >= ahead:
                    break
            if not waiting:
                return
            yield _patiently(waiting.popleft(), what, at_work)
    finally:
        for piece in waiting:
            piece.cancel()
        for _ in threads:
            tasks.put(None)
        for thread in threads:
            thread.join(GRACE_SECONDS)


def _work(
    read: Callable[[T], R],
    tasks: "SimpleQueue[tuple[T, Future[R]] | None]",
    prepare: Callable[[], None],
) -> None:
    """Read pieces in a thread until None comes out of the queue."""
    prepare()
    while (task := tasks.get()) is not None:
        item, piece = task
        if not piece.set_running_or_notify_cancel():
            continue
        try:
            piece.set_result(read(item))
        except BaseException as error:
            piece.set_exception(error)


def _patiently(piece: "Future[R]", what: str, at_work: FilesBeingRead) -> R:
    """Wait for a piece, but not for ever: a disk or a network share may not answer."""
    while True:
        begun = at_work.begun
        try:
            return piece.result(PATIENCE_SECONDS)
        except concurrent.futures.TimeoutError:
            if piece.done():  # just now, or reading it raised this error
                return piece.result()
            if begun == at_work.begun:
                break
    raise InputError(
        f"no {what} came for {PATIENCE_SECONDS:.0f} s; its threads are reading {at_work};"
        " check that the disk answers, then start the same command again"
    )
