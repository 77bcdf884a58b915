"""Ctrl-C and SIGTERM at any moment: the exit code is 130 or 143 and one line is printed, always."""

import functools
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.attack import _HOLDERS, Case, Outcome, family, judge, short_run, small_data
from tests.processes import Process, TooLong, equida, run

LONG = ("--iterations", "100000000", "--quiet")
PIXELS = ("--backbone", "tiny_backbone:net", "--batch-size", "4", "--bottleneck", "4")
SECONDS = 4.0
"""A little more than most commands need for their imports."""


@functools.cache
def finished() -> Path:
    """A folder with a finished run on rows, one on images, and one that was interrupted."""
    holder = tempfile.TemporaryDirectory(prefix="attack-runs-")
    _HOLDERS.append(holder)
    root, data = Path(holder.name), small_data()
    run(equida(*short_run(root / "rows")))
    places = ("-s", data / "photos", "-t", data / "drawings", "--out", root / "images")
    run(equida("adapt", *places, *PIXELS, "--iterations", 2, "--workers", 1, "--quiet"), cwd=root)
    return root


def commands(case: Case) -> dict[str, list[object]]:
    """What users run, each with work for longer than the test waits wherever that is possible."""
    data, out = case.data, case.folder / "out"
    rows = ("-s", f"{data}/toy.npz:a", "-t", f"{data}/toy.npz:b", "--batch-size", 8)
    images = ("-s", data / "photos", "-t", data / "drawings", *PIXELS)
    bench = ("office31", "--data", data / "office.npz", "--batch-size", 8, "--bottleneck", 4)
    return {
        "adapt": ["adapt", *rows, *LONG, "--evaluate-every", 20, "--out", out],
        "adapt --workers 2": ["adapt", *images, *LONG, "--workers", 2, "--out", out],
        "adapt --devices 2": ["adapt", *rows, *LONG, "--devices", 2, "--out", out],
        "adapt --features": ["adapt", *images[:6], *LONG, "--features", "--out", out],
        "features": ["features", data / "photos", *PIXELS[:2], "--out", out / "f.safetensors"],
        "bench": ["bench", *bench, *LONG[:2], "--jobs", 2, "--methods", "nsm,bnm", "--out", out],
        "predict": ["predict", finished() / "images", data / "photos", "--trust"],
        "report": ["report", finished(), "--out", out.with_suffix(".html")],
        "rerun": ["rerun", finished() / "images", "--trust"],
        "export": ["export", finished() / "rows", "--out", out],
        "paper": ["paper", finished(), "--out", out],
        "theory": ["theory"],
        "doctor": ["doctor"],
        "list": ["list", "methods"],
    }


@family("signals", quick=3, long=280)
def signals(case: Case) -> Outcome:
    known = commands(case)
    name = [*known][case.number % len(known)]
    number = case.random.choice([signal.SIGINT, signal.SIGTERM])
    # A terminal sends Ctrl-C to every process, a scheduler mostly to the first one.
    group = number == signal.SIGINT
    delay = case.random.uniform(0.0, SECONDS)
    what = f"{name}: {number.name} after {delay:.3f} s"
    with Process(equida(*known[name]), cwd=case.folder, limit=60 + delay) as process:
        try:
            # What comes before belongs to the interpreter, which has its own way to end.
            if not _at_work(process):
                return judge(process.wait(), (0,), what)
            end = time.monotonic() + delay
            while process.running and time.monotonic() < end:
                time.sleep(0.005)
            sent = process.running
            if sent:
                process.send(number, group=group)
            ended = process.wait()
        except TooLong as hang:
            return Outcome("hang", f"{what}\n{hang}")
        left = _left_behind(process)
        noise = process.err[len(ended.err) :]
    outcome = judge(ended, (0, 128 + number) if sent else (0,), what)
    # What the command said of its work before the signal came stands above the one line.
    if outcome.clean and ended.code and "interrupted" not in ended.err.splitlines()[-1]:
        return Outcome("wrong", outcome.detail)
    if outcome.clean and (left or noise):
        return Outcome("wrong", f"{outcome.detail}\nleft behind: {left}\nsaid afterwards: {noise}")
    return outcome


def _at_work(process: Process) -> bool:
    """Wait until the command has taken the handling of signals over; False if it ended before."""
    if sys.platform != "linux":
        time.sleep(1.0)
        return process.running
    while process.running:
        for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
            name, _, mask = line.partition(":")
            if name == "SigCgt" and int(mask, 16) & 1 << signal.SIGTERM - 1:
                return True
        time.sleep(0.002)
    return False


def _left_behind(process: Process, seconds: float = 5.0) -> list[int]:
    end = time.monotonic() + seconds
    while (left := process.left_behind()) and time.monotonic() < end:
        time.sleep(0.05)
    return left
