"""What `equida adapt` on a feature file takes beside training: imports, flags, data, files, scores.

The command runs in a process of its own, in turn with one that imports torch and does nothing else.
Training is what `seconds` of the result counts. The further seconds are those of its
`further_seconds`: the classifier that knows the source alone, and the second training run, which
calibrates confidences. What is left once these and `import torch` are taken away is start-up. Bar:
at most 2 s of processor time. Evaluations, those of both training runs, are shown as a share of the
processor time of the whole command (bar: 5 %) and, without a bar, those of the first as a share of
its training.

`python -m benchmarks startup FILE:SOURCE FILE:TARGET` measures on features of your own.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.bare import rows
from benchmarks.bars import judged, noted
from benchmarks.training import features

BAR = 2.0
EVALUATION_BAR = 5.0
ROUNDS = 5
COLUMNS = ("command", "import torch", "training", "further", "left")

COMMAND = """
import sys, time

from equida.cli import main
from equida.training.recorder import Recorder

at, evaluations = [], []

def noted(function, at):
    def call(*arguments, **named):
        at.append(time.process_time())
        try:
            return function(*arguments, **named)
        finally:
            at.append(time.process_time())
    return call

Recorder.__init__, Recorder.finish = noted(Recorder.__init__, at), noted(Recorder.finish, at)
Recorder._evaluate = noted(Recorder._evaluate, evaluations)
assert not main(sys.argv[1:])
spans = list(zip(evaluations[::2], evaluations[1::2]))
first = sum(end - start for start, end in spans if end <= at[2])
print(at[2] - at[0], at[-1] - at[2], first, sum(end - start for start, end in spans))
"""
"""`equida adapt`, and then the processor time of training, of what follows it, and of evaluations:
those of training, and all of them.

The first recorder is that of the run; a second one, inside of its end, that of the calibration.
"""


class Clocks(NamedTuple):
    """Seconds on the wall and of the processor; other work on the machine adds to the first."""

    wall: float
    processor: float


class Measured(NamedTuple):
    """One command."""

    parts: tuple[Clocks, ...]
    """In the order of `COLUMNS`."""
    of_training: float
    """Evaluations of the first run, in percent of its training."""
    of_all: float
    """All evaluations, in percent of the command; both of processor time."""


def spent(code: str, *arguments: str) -> tuple[Clocks, str]:
    """What a process of Python takes from its start to its end, and the last line it prints."""
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    after, end = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    if done.returncode:
        raise RuntimeError(done.stderr)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Clocks(end - start, used), (done.stdout.splitlines() or [""])[-1]


def measure(source: str, target: str) -> Measured:
    """The parts of one command, and of the `import torch` that ran before it."""
    torch, _ = spent("import torch")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        whole, said = spent(
            COMMAND, "adapt", "-s", source, "-t", target, "--out", str(out), "--quiet"
        )
        result = json.loads((out / "result.json").read_text())
    used, later, first, evaluations = map(float, said.split())
    training = Clocks(result["seconds"], used)
    further = Clocks(result["further_seconds"], later)
    known = (torch, training, further)
    left = Clocks(
        whole.wall - sum(part.wall for part in known),
        whole.processor - sum(part.processor for part in known),
    )
    parts = (whole, *known, left)
    return Measured(parts, 100 * first / used, 100 * evaluations / whole.processor)


def write_features(file: Path) -> Path:
    """A feature file with random rows in the shape of Amazon and Webcam."""
    task = features()
    content: dict[str, Any] = {}
    for name, domain in (("source", task.source), ("target", task.target)):
        content |= {
            f"{name}_x": rows(domain).numpy().astype(np.float16),
            f"{name}_y": domain.labels,
        }
    np.savez(file, classes=np.array(task.classes), **content)
    return file


def run(source: str = "", target: str = "", rounds: int = ROUNDS) -> None:
    """Print the medians of every part by both clocks, and whether the bar is held."""
    with tempfile.TemporaryDirectory() as folder:
        if not source:
            file = write_features(Path(folder) / "random.npz")
            source, target = f"{file}:source", f"{file}:target"
        found = [measure(source, target) for _ in range(int(rounds))]
    table = Table(title=f"equida adapt on features, 1000 steps of NSM, medians of {rounds} runs")
    table.add_column("seconds")
    for column in COLUMNS:
        table.add_column(column, justify="right")
    for clock in Clocks._fields:
        parts = [
            statistics.median(getattr(each.parts[part], clock) for each in found)
            for part in range(len(COLUMNS))
        ]
        table.add_row(clock, *(f"{value:.2f}" for value in parts))
    Console(width=120).print(table)
    left = statistics.median(each.parts[-1].processor for each in found)
    what = "beyond training, what follows it and import torch"
    Console(width=120).print(f"left: {judged('startup', what, left, BAR, 's')}")
    whole, training = (
        statistics.median(getattr(each, name) for each in found)
        for name in ("of_all", "of_training")
    )
    share = judged("startup", "evaluations / the whole command", whole, EVALUATION_BAR, "%")
    Console(width=120).print(f"evaluations: {share} of the command, {training:.3g} % of training")
    noted("startup", "evaluations / training", f"{training:.3g} %")
