"""The rows of a benchmark's task, whole or of some classes drawn from it, by a protocol."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from joblib import Parallel, delayed
from numpy.typing import NDArray

from equida.data import ArrayDomain, benchmark, load_task
from equida.data.shares import subsampled
from equida.errors import InputError


@dataclass(frozen=True)
class LabelledRows:
    """Rows of two domains with the labels of both, those of the target to measure by."""

    source: NDArray[np.float32]
    labels: NDArray[np.int64]
    target: NDArray[np.float32]
    truth: NDArray[np.int64]
    classes: int

    @property
    def true_shares(self) -> NDArray[np.float64]:
        return np.bincount(self.truth, minlength=self.classes) / len(self.truth)


Measure = Callable[[LabelledRows], tuple[float, ...]]


def add_arguments(parser: argparse.ArgumentParser, protocols: str, *, draws: bool = True) -> None:
    """Add those that choose the rows.

    Args:
        parser: where they are added.
        protocols: the default.
        draws: whether classes can be drawn.
    """
    parser.add_argument("benchmark", nargs="?")
    parser.add_argument("file", nargs="?")
    parser.add_argument("--tasks", default="", help="with commas; all without it")
    parser.add_argument("--protocols", default=protocols, help="with commas")
    if draws:
        parser.add_argument("--classes", type=int, default=0, help="so many, drawn; all without it")
        parser.add_argument("--draws", type=int, default=1, help="of those classes")
    parser.add_argument("--jobs", type=int, default=2)


def measured(given: argparse.Namespace, protocol: str, measure: Measure) -> NDArray[np.float64]:
    """What `measure` returns of the rows of each task and draw, (rows, figures)."""
    if given.draws > 1 and not given.classes:
        raise InputError("--draws is given without --classes; say how many classes a draw has")
    tasks = given.tasks.split(",") if given.tasks else benchmark(given.benchmark).tasks
    works = (
        delayed(_measured)(measure, given, task, protocol, draw)
        for task in tasks
        for draw in range(given.draws)
    )
    return np.array(Parallel(given.jobs)(works))


def _measured(
    measure: Measure, given: argparse.Namespace, task: str, protocol: str, draw: int
) -> tuple[float, ...]:
    torch.set_num_threads(1)
    return measure(load_rows(given.benchmark, given.file, task, protocol, given.classes, draw))


def load_rows(
    data: str, file: str, name: str, protocol: str, classes: int = 0, draw: int = 0
) -> LabelledRows:
    """The rows of a task.

    Args:
        data: a benchmark.
        file: its features.
        name: the task.
        protocol: what the target is cut down to, "natural" for nothing.
        classes: how many of the classes there are, drawn from all; 0 for all.
        draw: the seed of that.
    """
    task = load_task(data, name, data_dir=file)
    source, target = task.source, task.target
    assert isinstance(source, ArrayDomain)
    assert isinstance(target, ArrayDomain)
    count = len(task.classes)
    if classes:
        kept = np.sort(np.random.default_rng(100 + draw).permutation(count)[:classes])
        source, target = (
            each.select(np.flatnonzero(np.isin(_labels(each), kept))) for each in (source, target)
        )
    else:
        kept = np.arange(count)
    target = subsampled(target, "" if protocol == "natural" else protocol, "target")
    (x, y), (others, truth) = (
        (each.rows(np.arange(len(each))).numpy(), np.searchsorted(kept, _labels(each)))
        for each in (source, target)
    )
    return LabelledRows(x, y, others, truth, len(kept))


def _labels(domain: ArrayDomain) -> NDArray[np.int64]:
    assert domain.labels is not None
    labels = np.asarray(domain.labels, np.int64)
    assert (labels >= 0).all(), f"{domain.name} has rows without a label"
    return labels
