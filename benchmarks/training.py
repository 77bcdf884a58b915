"""One step of the training loop on cached features, beside a bare loop with the same mathematics.

36 x 1280 rows of each domain, bottleneck 256 with batch normalisation, ReLU and dropout, 31
classes. Whole runs of 1000 steps, of which the two loops do one step in turn. Ours writes its run
folder, logs and evaluates at the default intervals, and all of that is counted; the bare loop does
nothing but train. Bar: a step costs at most 1.10 x that of the bare loop.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from benchmarks.losses import bnm_by_matrix_norm, nsm_by_autograd
from equida.data import ArrayDomain, Domain, Task, array_domain, make_task
from equida.training.config import RunConfig
from equida.training.loop import train
from equida.training.recipe import Recipe

SOURCE, TARGET, WIDTH, CLASSES = 2817, 795, 1280, 31
"""Amazon to Webcam, with the features of EfficientNet-Lite0."""
BAR = 1.10
ROUNDS = 3

Loss = Callable[[Tensor], Tensor]


def max_square(logits: Tensor) -> Tensor:
    return -logits.softmax(1).square().sum() / len(logits)


def cwsm(logits: Tensor) -> Tensor:
    probs = logits.softmax(1)
    return -(probs.square().sum(0) / probs.sum(0).sqrt()).mean()


LOSSES: dict[str, tuple[float, Loss]] = {
    "max_square": (1.0 / CLASSES, max_square),
    "bnm": (1.0, bnm_by_matrix_norm),
    "cwsm": (1.0, cwsm),
    "nsm": (2.0, nsm_by_autograd),
}


def bare(task: Task, recipe: Recipe, weight: float, loss: Loss | None) -> Iterator[nn.Module]:
    """What a person would write for one method; gives the network after each step.

    Nothing is logged, evaluated or saved. Without a loss, source only.
    """
    source, target = (rows(domain) for domain in (task.source, task.target))
    network = nn.Sequential(
        nn.Linear(source.shape[1], 256),
        nn.BatchNorm1d(256),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(256, len(task.classes)),
    )
    optimizer = torch.optim.SGD(
        network.parameters(),
        lr=0.01,
        momentum=0.9,
        nesterov=True,
        weight_decay=1e-3,
        fused=True,
    )
    labels = torch.from_numpy(task.source.labels)
    sources, targets = (shuffled(len(x), recipe.batch_size) for x in (source, target))
    for step in range(recipe.iterations):
        for group in optimizer.param_groups:
            group["lr"] = 0.01 * (1 + 0.001 * step) ** -0.75
        chosen = next(sources)
        value = F.cross_entropy(network(source[chosen]), labels[chosen])
        if loss is not None:
            ramped_terms = weight * min(1.0, step / (recipe.warm_up * recipe.iterations))
            value = value + ramped_terms * loss(network(target[next(targets)]))
        value.backward()
        optimizer.step()
        optimizer.zero_grad()
        yield network


def rows(domain: Domain) -> Tensor:
    assert isinstance(domain, ArrayDomain)
    return torch.from_numpy(np.asarray(domain.values)).float()


def shuffled(samples: int, batch: int) -> Iterator[Tensor]:
    while True:
        order = torch.randperm(samples)
        yield from order[: samples // batch * batch].view(-1, batch)


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
    turns = Turns(bare(task, recipe, *LOSSES[method]), clock)
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


def run(rounds: int = ROUNDS) -> None:
    """Print a step's time in both loops and their ratio, and what misses the bar."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        task, recipe = features(), Recipe()
        measure(task, Recipe(iterations=50), "nsm", time.process_time)
        table = Table(title="one step: 2 x 36 x 1280, bottleneck 256, 31 classes, one thread")
        for column in ("method", "bare loop", "equida", "ratio", "ratio (wall)", "bar"):
            table.add_column(column, justify="left" if column == "method" else "right")
        for method in LOSSES:
            used, passed = (
                [measure(task, recipe, method, clock) for _ in range(rounds)]
                for clock in (time.process_time, time.perf_counter)
            )
            table.add_row(method, *_cells(used, passed, recipe.iterations))
        Console(width=120).print(table)
    finally:
        torch.set_num_threads(threads)


def _cells(used: list[Turns], passed: list[Turns], iterations: int) -> list[str]:
    ratio, wall = (statistics.median(t.ours / t.theirs for t in many) for many in (used, passed))
    mark = "[green]holds[/]" if ratio <= BAR else "[red]missed[/]"
    return [
        f"{1e3 * statistics.median(t.theirs for t in used) / iterations:.2f} ms",
        f"{1e3 * statistics.median(t.ours for t in used) / iterations:.2f} ms",
        f"{ratio:.2f}",
        f"{wall:.2f}",
        f"at most {BAR:.2f} {mark}",
    ]
