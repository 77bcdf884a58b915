"""What limits a run on features with many classes: the two tables of docs/recipe.md.

`python -m benchmarks recipe FILE [--tasks Ar2Cl,Cl2Pr,Pr2Ar] [--seed 0] [--jobs 2]`, FILE with the
features of Office-Home. The first table has the gradients of the losses at the predictions of a
classifier that knows the source alone, on the first task. The second trains heads with a fifth of
the source held out: its loss there and the surety of target predictions need no target label;
accuracies are shown, and choose nothing.
"""

import argparse
import math
import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import torch
from joblib import Parallel, delayed
from rich.console import Console
from rich.table import Table
from torch import Tensor

from equida.data import ArrayDomain, Task, load_task
from equida.evaluation.predictions import DomainPredictions
from equida.evaluation.shares import source_predictions
from equida.losses import bnm, cwsm, max_square, nsm
from equida.training.config import RunConfig
from equida.training.loop import train
from equida.training.recipe import Recipe

TASKS = "Ar2Cl,Cl2Pr,Pr2Ar"
ROWS = (18, 36, 72, 144, 288, 576)
BATCHES = 30
"""How many batches a gradient is averaged over."""
LOSSES: dict[str, Callable[[Tensor], Tensor]] = {
    "BNM, paper": bnm,
    "BNM, largest value 1": partial(bnm, normalize="optimum"),
    "CWSM, paper": cwsm,
    "CWSM, largest value 1": partial(cwsm, normalize="optimum"),
    "NSM (α = 1), paper": nsm,
    "NSM, largest value 1": partial(nsm, normalize="optimum"),
    "MaxSquare": max_square,
}
METHODS: dict[str, Mapping[str, Any]] = {
    "source_only": {},
    "bnm": {"trade_off": 1.0, "normalize": "optimum"},
    "cwsm": {"trade_off": 1.0, "normalize": "optimum"},
    "nsm": {"trade_off": 1.7, "normalize": "optimum"},
}
SCHEDULES = (
    (36, 1000, 0.01),
    (36, 1000, 0.03),
    (36, 3000, 0.01),
    (36, 3000, 0.03),
    (144, 1000, 0.01),
    (144, 1000, 0.03),
    (144, 1000, 0.1),
)
"""Rows in a batch, steps, and the learning rate of the head."""


class Outcome(NamedTuple):
    """A run at its last step."""

    held_out: float
    """Mean cross-entropy of held-out source rows."""
    surety: float
    seconds: float
    """Of the processor."""
    accuracy: float


class Last:
    """An observer that keeps the figures of the last evaluation and the loss on held-out rows."""

    def logged(self, step: int, terms: Mapping[str, float]) -> None: ...

    def evaluated(self, step: int, figures: Mapping[str, float]) -> None:
        self.figures = figures

    def predictions(
        self, step: int, target: DomainPredictions, source: DomainPredictions | None
    ) -> None:
        assert source is not None
        assert source.labels is not None
        each = source.log_probs.gather(1, source.labels[:, None])
        self.held_out = -float(each.double().mean())


def run(*arguments: str) -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks recipe")
    parser.add_argument("file", nargs="?")
    parser.add_argument("--tasks", default=TASKS, help="with commas")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args(arguments)
    if not given.file:
        print("needs features of Office-Home: python -m benchmarks recipe FILE")
        return
    tasks = given.tasks.split(",")
    console = Console(width=120)
    console.print(gradients(_task(given.file, tasks[0])))
    console.print(schedules(given.file, tasks, given.seed, given.jobs))


def _task(file: str, name: str) -> Task:
    return load_task("office_home", name, data_dir=file)


def gradients(task: Task) -> Table:
    """The size of each loss's gradient by the number of rows in a batch."""
    source, target = task.source, task.target
    assert isinstance(source, ArrayDomain)
    assert isinstance(target, ArrayDomain)
    assert source.labels is not None
    rows = [domain.rows(np.arange(len(domain))).numpy() for domain in (source, target)]
    probs = source_predictions(rows[0], source.labels, rows[1], len(task.classes))
    logits = torch.from_numpy(probs).clamp_min(1e-30).log()
    table = Table(title=f"Root mean square of B times the gradient of a row, {task.name}")
    table.add_column("rows in a batch")
    for count in ROWS:
        table.add_column(str(count), justify="right")
    for name, loss in LOSSES.items():
        table.add_row(name, *(f"{_gradient(loss, logits, count):.3f}" for count in ROWS))
    return table


def _gradient(loss: Callable[[Tensor], Tensor], logits: Tensor, count: int) -> float:
    random, squares = torch.Generator().manual_seed(0), []
    for _ in range(BATCHES):
        chosen = torch.randperm(len(logits), generator=random)[:count]
        batch = logits[chosen].requires_grad_()
        (slope,) = torch.autograd.grad(loss(batch), batch)
        squares.append(float((count * slope).square().sum(1).mean()))
    return math.sqrt(statistics.fmean(squares))


def schedules(file: str, tasks: list[str], seed: int, jobs: int) -> Table:
    """What more rows, more steps and other learning rates give, means over tasks."""
    work = list(product(SCHEDULES, METHODS, tasks))
    found = Parallel(n_jobs=jobs, verbose=1)(
        delayed(_train)(file, task, method, schedule, seed) for schedule, method, task in work
    )
    outcomes = dict(zip(work, found, strict=True))
    table = Table(title=f"Heads on {', '.join(tasks)}, seed {seed}, means over tasks")
    for column in ("rows x steps", "rate", "hold-out loss", "surety", "seconds", "accuracy (%)"):
        table.add_column(column)
    for schedule in SCHEDULES:
        rows, steps, rate = schedule
        means = {
            method: Outcome(*map(statistics.fmean, zip(*of_tasks, strict=True)))
            for method in METHODS
            for of_tasks in [[outcomes[schedule, method, task] for task in tasks]]
        }
        surety = [f"{means[method].surety:.2f}" for method in METHODS if method != "source_only"]
        table.add_row(
            f"{rows} x {steps}",
            f"{rate:g}",
            f"{means['source_only'].held_out:.2f}",
            ", ".join(surety),
            ", ".join(f"{one.seconds:.0f}" for one in means.values()),
            ", ".join(f"{one.accuracy:.1f}" for one in means.values()),
        )
    return table


def _train(
    file: str, task: str, method: str, schedule: tuple[int, int, float], seed: int
) -> Outcome:
    torch.set_num_threads(1)
    rows, steps, rate = schedule
    recipe = Recipe(
        batch_size=rows,
        iterations=steps,
        learning_rate=rate / Recipe().head_multiplier,
        holdout=0.2,
        evaluate_every=steps,
    )
    config = RunConfig(method, recipe, overrides=METHODS[method], seed=seed)
    observer, data = Last(), _task(file, task)
    start = time.process_time()
    train(config, data, observers=(observer,))
    seconds = time.process_time() - start
    figures = observer.figures
    return Outcome(
        observer.held_out, figures["discriminability"], seconds, 100 * figures["accuracy"]
    )
