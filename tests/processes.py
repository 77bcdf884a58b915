"""Processes that tests start: each has a time limit, and says what it was doing when that is over.

A process that reaches its limit gets SIGABRT, as do the processes that it started: the interpreter
then prints the stack of each of its threads (PYTHONFAULTHANDLER), and the test fails with them.
"""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NoReturn

LIMIT = 300.0
"""Seconds that a process may take: many times what it needs, also on a busy machine."""


class TooLong(AssertionError):
    """A process took longer than it may; the message holds its output and its stacks."""


@dataclass(frozen=True)
class Ended:
    """What a process left: its exit code (negative for a signal) and what it printed."""

    code: int
    out: str
    err: str


class Process:
    """A command that was started in a session of its own; a context manager that leaves no process.

    Args:
        command: program and arguments.
        limit: seconds from now until which it must have ended.
        cwd: the folder that it works in; the present one by default.
        env: variables that are added to the environment.
        stdin: what it reads; nothing by default.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        limit: float = LIMIT,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: str = "",
    ) -> None:
        self.command = list(map(str, command))
        self.limit, self._end = limit, time.monotonic() + limit
        # Files rather than pipes: nobody has to read them, and a process that was left behind
        # cannot keep us waiting for their end.
        self._files = contextlib.ExitStack()
        self._in, self._out, self._err = (self._files.enter_context(_file()) for _ in range(3))
        self._in.write(stdin)
        self._in.seek(0)
        self.popen = subprocess.Popen(
            self.command,
            stdin=self._in,
            stdout=self._out,
            stderr=self._err,
            cwd=cwd,
            env=environment(env),
            start_new_session=True,
            # Whoever runs the tests in the background may ignore it, and have it inherited.
            preexec_fn=_default_interrupt,
        )

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def running(self) -> bool:
        return self.popen.poll() is None

    @property
    def out(self) -> str:
        """What it has printed on standard output by now."""
        return _text(self._out)

    @property
    def err(self) -> str:
        """What it has printed on standard error by now."""
        return _text(self._err)

    def send(self, number: int, *, group: bool = False) -> None:
        """Send a signal to it, or, as a terminal does for Ctrl-C, to all of its processes."""
        if group:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, number)
        else:
            self.popen.send_signal(number)

    def wait_until(self, condition: Callable[[], object], what: str = "") -> None:
        """Wait until the condition holds; the process must be running until then."""
        while not condition():
            if not self.running:
                raise AssertionError(
                    f"{self._named} ended with {self.popen.returncode} before"
                    f" {what or 'what was awaited'}\n{self.out}{self.err}"
                )
            if time.monotonic() > self._end:
                self._too_long(what)
            time.sleep(0.02)

    def within(self, seconds: float) -> "Process":
        """Let the limit be so many seconds from now."""
        self.limit, self._end = seconds, time.monotonic() + seconds
        return self

    def wait(self) -> Ended:
        """Wait until it has ended.

        Raises:
            TooLong: it has not ended in time.
        """
        try:
            code = self.popen.wait(max(self._end - time.monotonic(), 0.1))
        except subprocess.TimeoutExpired:
            self._too_long("its end")
        return Ended(code, self.out, self.err)

    def left_behind(self) -> list[int]:
        """Processes of its session that are still alive (Linux only; elsewhere nothing is seen)."""
        return [pid for pid in session(self.pid) if pid != self.pid]

    def close(self) -> None:
        """Kill it and what it has started."""
        for pid in {self.pid, *session(self.pid)} if self.running else session(self.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.popen.wait(10)

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *reason: object) -> None:
        self.close()
        self._files.close()

    @property
    def _named(self) -> str:
        return " ".join(self.command)

    def stacks(self) -> str:
        """End it and what it has started; what they have printed, and what they were doing."""
        abort({self.pid, *session(self.pid)})
        end = time.monotonic() + 10
        while (self.running or session(self.pid)) and time.monotonic() < end:
            time.sleep(0.05)
        self.close()
        return f"{self._named}:\n{self.out}{self.err}"

    def _too_long(self, what: str) -> NoReturn:
        awaited = f" for {what}" if what else ""
        raise TooLong(f"waited{awaited} for {self.limit:.0f} s: {self.stacks()}")


def run(
    command: Sequence[str | Path],
    *,
    limit: float = LIMIT,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stdin: str = "",
    code: int | None = 0,
) -> Ended:
    """Run a command to its end; the arguments are those of `Process`.

    Args:
        code: the exit code that it must have; None for any.
    """
    with Process(command, limit=limit, cwd=cwd, env=env, stdin=stdin) as process:
        ended = process.wait()
    assert code is None or ended.code == code, f"{ended.code}: {ended.out}{ended.err}"
    return ended


def run_together(
    commands: Sequence[Sequence[str | Path]],
    environments: Sequence[Mapping[str, str]] = (),
    limit: float = LIMIT,
) -> list[Ended]:
    """Run commands at once to the end of all of them.

    Where one takes too long, it is the others that may tell why: all print their stacks.

    Args:
        commands: program and arguments of each.
        environments: variables that are added to the environment of each; () for none.
        limit: as for `Process`.
    """
    added = environments or [{}] * len(commands)
    with contextlib.ExitStack() as stack:
        started = [
            stack.enter_context(Process(command, limit=limit, env=env))
            for command, env in zip(commands, added, strict=True)
        ]
        try:
            return [process.wait() for process in started]
        except TooLong as error:
            others = [process.stacks() for process in started if process.running]
            raise TooLong("\n".join([str(error), *others])) from None


def equida(*arguments: object) -> list[str]:
    """The command line of equida."""
    return [sys.executable, "-m", "equida", *map(str, arguments)]


def python(code: str, *arguments: object) -> list[str]:
    """The command line that runs some code."""
    return [sys.executable, "-c", code, *map(str, arguments)]


def environment(added: Mapping[str, str] | None = None) -> dict[str, str]:
    """Of a process that finds the modules that this one finds, and prints its stacks on SIGABRT."""
    own = {"OMP_NUM_THREADS": "1", "COLUMNS": "80", "PYTHONFAULTHANDLER": "1"}
    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **own, **(added or {})}


def children(pid: int) -> list[int]:
    """The processes that it has started (Linux only)."""
    found = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(child) for child in file.read_text().split()]
    return sorted(found)


def descendants(pid: int) -> set[int]:
    """The processes that it has started, and those that they have started (Linux only)."""
    found: set[int] = set()
    for child in children(pid):
        found |= {child} | descendants(child)
    return found


def abort(pids: Collection[int]) -> None:
    """End processes such that each prints what its threads are doing."""
    # Parents first: one that waits for another would go on, or end, when that one has ended. One
    # after the other: they may print to one file, each word at a time.
    for pid in sorted(pids):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            _no_core_file(pid)
            os.kill(pid, signal.SIGABRT)
            end = time.monotonic() + 2
            while alive(pid) and time.monotonic() < end:
                time.sleep(0.01)


def alive(pid: int) -> bool:
    """Whether it is running (Linux only)."""
    return _state(pid)[:1] not in ([], ["Z"], ["X"])


def session(leader: int) -> list[int]:
    """The processes that run in the session of a process, which may have ended (Linux only)."""
    return [pid for pid in _pids() if alive(pid) and _state(pid)[3:4] == [str(leader)]]


def _pids() -> Iterator[int]:
    proc = Path("/proc")
    names = os.listdir(proc) if proc.is_dir() else []
    return (int(name) for name in names if name.isdigit())


def _state(pid: int) -> list[str]:
    """The fields of its line in /proc after the name: state, parent, group, session, ..."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _file() -> IO[str]:
    return tempfile.TemporaryFile("w+")


def _text(file: IO[str]) -> str:
    # Its own position, which the process shares, must stay where it is.
    size = os.fstat(file.fileno()).st_size
    return os.pread(file.fileno(), size, 0).decode(errors="replace")


def _default_interrupt() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _no_core_file(pid: int) -> None:
    if sys.platform == "linux":
        import resource

        resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))
