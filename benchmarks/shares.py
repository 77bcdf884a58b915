"""How far estimated class shares are from the true ones, which takes target labels to say.

`python -m benchmarks shares BENCHMARK FILE [--tasks A2W,...] [--protocols natural,long-tail:30]
[--jobs 2]`, FILE with features. For each protocol the mean over tasks of half the sum of |q - true
share|: equal shares, the look that every run takes, and what `prior="estimate"` aims at.
"""

import argparse
from collections.abc import Iterator

import numpy as np
import torch
from joblib import Parallel, delayed
from rich.console import Console
from rich.table import Table

from equida.clustering import estimate_aim
from equida.data import ArrayDomain, benchmark, load_task
from equida.data.shares import subsampled
from equida.evaluation.shares import estimate_shares

PROTOCOLS = "natural,long-tail:10,long-tail:30,classes:15"
COLUMNS = ("equal shares", "look of every run", "prior=estimate")


def run(*arguments: str) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks shares")
    parser.add_argument("benchmark", nargs="?")
    parser.add_argument("file", nargs="?")
    parser.add_argument("--tasks", default="", help="with commas; all without it")
    parser.add_argument("--protocols", default=PROTOCOLS, help="with commas")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args(arguments)
    if not given.file:
        print("needs features: python -m benchmarks shares office31 FILE")
        return
    tasks = given.tasks.split(",") if given.tasks else benchmark(given.benchmark).tasks
    table = Table(
        title="Half the sum of |q - true share|: mean over tasks (worst task, less equal shares)"
    )
    table.add_column("target")
    for column in COLUMNS:
        table.add_column(column, justify="right")
    for protocol in given.protocols.split(","):
        works = (delayed(distances)(given.benchmark, given.file, task, protocol) for task in tasks)
        found = np.array(Parallel(given.jobs)(works))
        table.add_row(protocol, *_cells(found))
    Console(width=120).print(table)


def distances(data: str, file: str, name: str, protocol: str) -> tuple[float, float, float]:
    """How far each estimate is from the true shares of one target."""
    torch.set_num_threads(1)
    task = load_task(data, name, data_dir=file)
    source, target = task.source, task.target
    assert isinstance(target, ArrayDomain)
    assert isinstance(source, ArrayDomain)
    target = subsampled(target, "" if protocol == "natural" else protocol, "target")
    assert source.labels is not None
    assert target.labels is not None
    rows, others = (d.rows(np.arange(len(d))).numpy() for d in (source, target))
    classes = len(task.classes)
    look = estimate_shares(rows, source.labels, others, classes)
    aim = estimate_aim(rows, source.labels, others, classes, look)
    true = np.bincount(target.labels, minlength=classes) / len(target)
    equal, looked, aimed = (
        0.5 * float(np.abs(q - true).sum())
        for q in (np.full(classes, 1 / classes), look.shares, aim.shares)
    )
    return equal, looked, aimed


def _cells(found: np.ndarray) -> Iterator[str]:
    """A mean for each column, and how far the worst task is above equal shares."""
    yield f"{found[:, 0].mean():.3f}"
    for column in (1, 2):
        worst = (found[:, column] - found[:, 0]).max()
        yield f"{found[:, column].mean():.3f} ({worst:+.3f})"
