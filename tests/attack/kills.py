"""Processes that are killed (SIGKILL, as for lack of memory): one line, and nothing is lost."""

import contextlib
import os
import signal
import time
from pathlib import Path

from tests.attack import Case, Outcome, family, judge, worst
from tests.attack.run_folders import bench
from tests.processes import Process, TooLong, alive, children, equida


@family("killed ranks", quick=1, long=25)
def killed_ranks(case: Case) -> Outcome:
    """One of the two processes of a run: the command says so; the next one continues."""
    rows = ("-s", f"{case.data}/toy.npz:a", "-t", f"{case.data}/toy.npz:b", "--batch-size", 8)
    flags = (*rows, "--bottleneck", 4, "--devices", 2, "--accelerator", "cpu", "--quiet")
    out = case.folder / "run"
    command = ["adapt", *flags, "--iterations", 100, "--evaluate-every", 5, "--out", out]
    what = "one of two processes of a run"
    try:
        with Process(equida(*command), limit=240) as process:
            # The processes of the run, behind one that watches over shared resources.
            process.wait_until(lambda: len(children(process.pid)) == 3, "three processes")
            if case.random.random() < 0.8:
                process.wait_until((out / "checkpoint.pt").exists, "a checkpoint")
            time.sleep(case.random.uniform(0.0, 1.0))
            victim = case.random.choice(children(process.pid)[1:])
            _kill(victim)
            ended = process.wait()
            left = [pid for pid in children(process.pid) if alive(pid)]
    except TooLong as hang:
        return Outcome("hang", f"{what}\n{hang}")
    first = judge(ended, (0, 2), what)
    if first.clean and ended.code and "killed" not in ended.err:
        first = Outcome("wrong", first.detail)
    if left:
        first = Outcome("wrong", f"{first.detail}\nleft behind: {left}")
    return worst([first, case.command(*command, codes=(0,), limit=240)])


@family("killed workers", quick=0, long=25)
def killed_workers(case: Case) -> Outcome:
    """A worker of a comparison: its run is done again, and the table is complete."""
    out, what = case.folder / "grid", "a worker of a comparison"
    command = [*bench(out), "--methods", "nsm,bnm", "--jobs", "2", "--iterations", "600"]
    try:
        with Process(equida(*command)) as process:
            process.wait_until(lambda: any(out.glob("*/running.json")), "a running run")
            time.sleep(case.random.uniform(0.0, 1.0))
            workers = [pid for pid in children(process.pid) if _is_worker(pid)]
            if workers:
                _kill(case.random.choice(workers))
            ended = process.wait()
    except TooLong as hang:
        return Outcome("hang", f"{what}\n{hang}")
    outcome = judge(ended, (0,), what)
    if outcome.clean and len(list(out.glob("*/result.json"))) != 2:
        return Outcome("wrong", outcome.detail)
    return outcome


@family("killed commands", quick=0, long=40)
def killed_commands(case: Case) -> Outcome:
    """The command itself, at any moment: the same command finishes the work."""
    out = case.folder / "out"
    rows = ("-s", f"{case.data}/toy.npz:a", "-t", f"{case.data}/toy.npz:b", "--batch-size", 8)
    tiny = ("--backbone", "tiny_backbone:net")
    commands: list[list[object]] = [
        ["adapt", *rows, "--iterations", 600, "--evaluate-every", 5, "--out", out, "--quiet"],
        ["features", case.data / "photos", *tiny, "--batch-size", 1, "--out",
         case.folder / "f.safetensors"],
        [*bench(out), "--methods", "nsm,bnm", "--iterations", 300],
    ]  # fmt: skip
    command = commands[case.number % len(commands)]
    with Process(equida(*command)) as process:
        end = time.monotonic() + case.random.uniform(0.5, 6.0)
        while process.running and time.monotonic() < end:
            time.sleep(0.01)
        process.send(signal.SIGKILL, group=case.random.random() < 0.5)
        process.popen.wait(10)
        again = case.command(*command, codes=(0,), limit=120)
    drafts = [str(file) for file in case.folder.rglob("*.tmp")]
    return Outcome("wrong", f"{again.detail}\nleft: {drafts}") if drafts else again


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def _is_worker(pid: int) -> bool:
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
    return b"loky" in command and b"resource_tracker" not in command
