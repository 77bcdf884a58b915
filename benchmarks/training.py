"""One step of the training loop on cached features, beside a bare loop with the same mathematics.

36 x 1280 rows of each domain, bottleneck 256 with batch normalisation, ReLU and dropout, 31
classes. Whole runs of 1000 steps (400 for methods with heads of their own), of which the two loops
do one step in turn. Ours writes its run folder, logs and evaluates at the default intervals, and
all of that is counted; the bare loop does nothing but train. Bars: a step costs at most 0.92 x that
of the bare loop, and 1.0 x for methods with heads of their own.

The floor is the time of the two products with the first weight and of its update, for both batches:
what any loop must do.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import nn

from benchmarks.bare import CLASSES, HEADS, LOSSES, bare
from benchmarks.bare import WIDTH as BOTTLENECK
from benchmarks.bars import judged, noted
from benchmarks.timing import medians
from equida.data import Task, array_domain, make_task
from equida.training.config import RunConfig
from equida.training.loop import train
from equida.training.recipe import Recipe

SOURCE, TARGET, WIDTH = 2817, 795, 1280
"""Amazon to Webcam, with the features of EfficientNet-Lite0."""
BARS = dict.fromkeys(LOSSES, 0.92) | dict.fromkeys(HEADS, 1.0)
ROUNDS = 3


class Turns:
    """Watches our run, does a step of the bare loop after each of ours, and times both."""

    def __init__(self, other: Iterator[nn.Module], clock: Callable[[], float]) -> None:
        self.other, self.clock = other, clock
        self.ours = self.theirs = 0.0
        self.since = clock()

    def stepped(self, step: int) -> None:
        start = self.clock()
        next(self.other)
        end = self.clock()
        self.ours, self.theirs = self.ours + start - self.since, self.theirs + end - start
        self.since = end

    def logged(self, step: int, terms: Mapping[str, float]) -> None: ...
    def evaluated(self, step: int, figures: Mapping[str, float]) -> None: ...


def measure(task: Task, recipe: Recipe, method: str, clock: Callable[[], float]) -> Turns:
    """Seconds of both loops over one whole run, its start and its end included."""
    weight, loss = LOSSES.get(method, (0.0, None))
    turns = Turns(bare(task, recipe, weight, loss, HEADS.get(method)), clock)
    with tempfile.TemporaryDirectory() as folder:
        train(RunConfig(method, recipe), task, folder=Path(folder), observers=(turns,))
    turns.ours += clock() - turns.since
    return turns


def features() -> Task:
    """Random rows in the shape of the real ones."""
    random = np.random.default_rng(0)
    centres = random.normal(size=(CLASSES, WIDTH))
    domains = []
    for name, count in (("source", SOURCE), ("target", TARGET)):
        labels = np.arange(count) % CLASSES
        rows = centres[labels] + 4.0 * random.normal(size=(count, WIDTH))
        domains.append(array_domain(rows.astype(np.float32), labels, name=name))
    return make_task(*domains)


def floor() -> float:
    """Seconds of the products with the first weight and of its update."""
    x, by_outputs = torch.randn(72, WIDTH), torch.randn(72, BOTTLENECK)
    weight = nn.Parameter(torch.randn(BOTTLENECK, WIDTH))
    weight.grad = torch.zeros_like(weight)
    update = torch.optim.SGD([weight], 0.01, 0.9, nesterov=True, fused=True)
    with torch.no_grad():
        calls: dict[str, Callable[[], object]] = {
            "floor": lambda: (x @ weight.T, by_outputs.T @ x, update.step())
        }
        return medians(calls)["floor"]


def run(rounds: int = ROUNDS) -> None:
    """Print a step's time in both loops and their ratio, and what misses the bar."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        task = features()
        measure(task, Recipe(iterations=50), "nsm", time.process_time)
        table = Table(title="one step: 2 x 36 x 1280, bottleneck 256, 31 classes, one thread")
        for column in ("method", "bare loop", "equida", "ratio (wall)", "ratio and bar"):
            table.add_column(column, justify="left" if column == "method" else "right")
        for method in BARS:
            recipe = Recipe() if method in LOSSES else Recipe(iterations=400)
            used, passed = (
                [measure(task, recipe, method, clock) for _ in range(rounds)]
                for clock in (time.process_time, time.perf_counter)
            )
            table.add_row(method, *_cells(method, used, passed, recipe.iterations))
        Console(width=120).print(table)
        least = f"{1e3 * floor():.2f} ms"
        noted("training", "floor of a step: matrix products and update", least)
        print(f"floor: {least}")
    finally:
        torch.set_num_threads(threads)


def _cells(method: str, used: list[Turns], passed: list[Turns], iterations: int) -> list[str]:
    ratio, wall = (statistics.median(t.ours / t.theirs for t in many) for many in (used, passed))
    return [
        f"{1e3 * statistics.median(t.theirs for t in used) / iterations:.2f} ms",
        f"{1e3 * statistics.median(t.ours for t in used) / iterations:.2f} ms",
        f"{wall:.2f}",
        judged("training", f"{method}: equida / bare loop", ratio, BARS[method]),
    ]
