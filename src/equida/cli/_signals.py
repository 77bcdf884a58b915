"""Ctrl-C and SIGTERM: the command ends at once, with one line and the exit code 130 or 143.

An exception that is raised wherever the signal happens to arrive cannot promise that: an import or
a destructor turns it into something else or swallows it, and a call that waits in C does not see
it. So a thread waits for the signals and ends the process. Nothing is lost by it, because
everything is written such that even a kill loses nothing.
"""

import contextlib
import os
import signal
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import NoReturn

from equida.files import remove_unfinished

SHOW_CURSOR = "\r\x1b[J\x1b[?25h"
"""Removes what a progress bar has drawn on its line, and shows the cursor again."""

_ending_by: list[int] = []
"""The signal that is ending this process. Setting an event could be interrupted, a list cannot."""


def wait_if_ending() -> None:
    """Do not return if a signal is ending this process: what fails now fails because of that."""
    if _ending_by:
        threading.Event().wait()


def exit_on_signals(line: str) -> None:
    """From now on, Ctrl-C and SIGTERM end this process and those that it has started.

    Args:
        line: what is printed then, on standard error.
    """
    # Who ignores Ctrl-C, as a shell does for its background jobs, has a reason.
    ends = {n for n in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(n) != signal.SIG_IGN}
    once = threading.RLock()

    def end(number: int) -> None:
        if not once.acquire(blocking=False):
            threading.Event().wait()  # the other thread ends the process
        # A second signal may interrupt the thread that is ending the process: `timeout` sends one
        # to the command and one to its group.
        if not _ending_by:
            _ending_by.append(number)
            _end(number, line)

    def handle(number: int, frame: FrameType | None) -> None:
        end(number)

    def wait() -> None:
        end(signal.sigwait(ends))

    # The signals are blocked, also in the processes that are started from here, which this one
    # ends. The handlers are for libraries that unblock them, such as multiprocessing.
    for number in ends:
        signal.signal(number, handle)
    if ends and hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_BLOCK, ends)
        threading.Thread(target=wait, name="signals", daemon=True).start()
    # A process that ends like this leaves semaphores to multiprocessing's tracker, which removes
    # them but would complain about it.
    ignored = "ignore:resource_tracker"
    given = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = f"{given},{ignored}" if given else ignored


def _end(number: int, line: str) -> NoReturn:
    remove_unfinished()
    reset = SHOW_CURSOR if sys.stderr is not None and sys.stderr.isatty() else ""
    with contextlib.suppress(OSError):
        os.write(2, f"{reset}equida: {line}\n".encode())
    # Again until there are none: one may just be starting.
    while started := _children():
        for pid in started:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.001)
    os._exit(128 + number)


def _children() -> list[int]:
    """The processes that this one has started and that are alive, but for resource trackers."""
    if not Path("/proc/self/task").is_dir():
        import multiprocessing

        return [child.pid for child in multiprocessing.active_children() if child.pid]
    found = []
    for file in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(pid) for pid in file.read_text().split()]
    return [pid for pid in found if _to_be_killed(pid)]


def _to_be_killed(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    # A tracker ends by itself, when it has removed what the process has left.
    return state not in "ZX" and b"resource_tracker" not in command
