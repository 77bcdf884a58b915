"""A whole grid beside the sum of its runs as bare loops, on the same number of processes.

The paper's eleven systems on one task in the shape of Amazon to Webcam (features of
EfficientNet-Lite0), 1000 steps each: `equida bench` as a user starts it, with everything that it
does besides (starting processes, reading the file, logging, evaluation, checkpoints, tables), and
loops that draw batches, compute the same terms and step, and do nothing else. The two take turns.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from joblib import Parallel, delayed
from lightning_fabric import Fabric
from rich.console import Console
from rich.table import Table

from benchmarks.bare import rows, shuffled
from benchmarks.bars import noted
from benchmarks.training import features
from equida.data.benchmarks import BENCHMARKS
from equida.experiments.execute import Workers, do_runs
from equida.experiments.grid import Grid, chosen_methods, plan
from equida.runs.variant import Variant
from equida.training.build import build_run
from equida.training.config import RunConfig
from equida.training.optimizer import schedule
from equida.training.recipe import Recipe

ROUNDS = 3
JOBS = os.cpu_count() or 1


def bare(method: str, iterations: int = 1000) -> float:
    """Seconds of one thread for a run without anything around it."""
    torch.set_num_threads(1)
    task, recipe = features(), Recipe(iterations=iterations)
    built = build_run(RunConfig(method, recipe), task, Fabric(devices=1, accelerator="cpu"))
    source, target = rows(task.source), rows(task.target)
    labels = torch.from_numpy(task.source.labels)
    sources, targets = (shuffled(len(x), recipe.batch_size) for x in (source, target))
    start = time.perf_counter()
    for step in range(iterations):
        schedule(built.optimizer, recipe, step)
        chosen = next(sources)
        batch = source[chosen], labels[chosen], target[next(targets)]
        terms = built.objective(*batch, step / iterations)
        sum(terms.values()).backward()
        built.optimizer.step()
        built.optimizer.zero_grad()
    return time.perf_counter() - start


def file_of_features(folder: Path) -> Path:
    """The same rows as a user would bring them."""
    task = features()
    arrays: dict[str, Any] = {"classes": np.array(BENCHMARKS["office31"].classes)}
    for domain, name in ((task.source, "amazon"), (task.target, "webcam")):
        arrays |= {f"{name}_x": rows(domain).numpy(), f"{name}_y": domain.labels}
    path = folder / "features.npz"
    np.savez(path, **arrays)
    return path


def grid(data: Path, out: Path) -> float:
    """Seconds of the command, from its start to its end."""
    command = [sys.executable, "-m", "equida", "bench", "office31", "--data", str(data)]
    command += ["--tasks", "A2W", "--seeds", "1", "--jobs", str(JOBS), "--out", str(out), "--quiet"]
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def layouts(data: Path, out: Path) -> dict[str, float]:
    """Seconds of the same runs with other numbers of processes and of threads in each."""
    variants = tuple(Variant(method) for method in ("source_only", "dann", "safn", "nsm"))
    changes = {"iterations": 300}
    grid = Grid("office31", variants, ("A2W",), (0,), "features", changes, str(data))
    times = {}
    for jobs, threads in ((JOBS, 1), (1, JOBS), (JOBS, JOBS)):
        name = f"{jobs} processes x {threads} threads"
        planned = plan(grid, out / name.replace(" ", "_"))
        start = time.perf_counter()
        ended = list(do_runs(planned, Workers(jobs, threads)))
        times[name] = time.perf_counter() - start
        assert not any(outcome.failure for outcome in ended)
    return times


def run(rounds: int = ROUNDS) -> None:
    """Print the time of both and their ratio, and what other layouts of the processes take."""
    methods = chosen_methods("all")
    grids, sums, turns = [], [], []
    with tempfile.TemporaryDirectory() as folder, Parallel(JOBS, batch_size=1) as parallel:
        data = file_of_features(Path(folder))
        parallel(delayed(bare)(method, 20) for method in methods)
        for number in range(rounds):
            grids.append(grid(data, Path(folder) / str(number)))
            sums.append(sum(parallel(delayed(bare)(method) for method in methods)) / JOBS)
            turns.append(layouts(data, Path(folder) / f"layouts{number}"))
    ratio = statistics.median(one / other for one, other in zip(grids, sums, strict=True))
    table = Table(title=f"{len(methods)} systems, one task, {JOBS} processes of one thread")
    for column in ("equida bench", "sum of bare loops / processes", "ratio"):
        table.add_column(column, justify="right")
    noted("grid", "equida bench / sum of bare loops", f"{ratio:.2f}")
    times = (f"{statistics.median(times):.0f} s" for times in (grids, sums))
    table.add_row(*times, f"{ratio:.2f}")
    Console(width=120).print(table)
    other = Table("four systems, 300 steps", "time", "ratio", title="processes and threads")
    usual = statistics.median(turn[next(iter(turn))] for turn in turns)
    for name in turns[0]:
        seconds = statistics.median(turn[name] for turn in turns)
        other.add_row(name, f"{seconds:.1f} s", f"{seconds / usual:.2f}")
    Console(width=120).print(other)
