"""Which label-free validator chooses well: its regret over steps, over settings and over methods.

`python -m benchmarks validators FILE ... [--tasks A2W,W2A] [--seeds 1] [--out FOLDER]`, each FILE
with the features of Office-31 or Office-Home. Regret is the accuracy of the best choice minus that
of the validator's choice, in points; target labels measure it and choose nothing. Every run is
written to FOLDER as it ends, and a second call goes on where the first one stopped.
"""

import argparse
import dataclasses
import json
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor

from equida.clustering import cluster_labels
from equida.data import ArrayDomain, Task, load_task
from equida.data.benchmarks import BENCHMARKS
from equida.data.benchmarks.base import Benchmark
from equida.evaluation.predictions import DomainPredictions, InputRows
from equida.evaluation.validators import VALIDATORS
from equida.files import write_atomic
from equida.training.config import RunConfig
from equida.training.evaluate import input_rows
from equida.training.loop import train
from equida.training.recipe import Recipe

METHODS = ("source_only", "bnm", "cwsm", "nsm", "clusters", "clusters+nsm")
"""What is chosen from over methods, each in its default setting."""
WITHOUT = "nsm"
"""The method of whoever does not choose."""
GRIDS: dict[str, tuple[dict[str, float], ...]] = {
    "bnm": ({}, {"trade_off": 0.3}, {"trade_off": 3.0}),
    "cwsm": ({}, {"r": 0.25}, {"r": 1.0}),
    "nsm": ({}, {"r": 0.25}, {"r": 1.0}, {"trade_off": 0.5}),
}
"""What is chosen from over settings; whoever does not choose takes the first."""
EVALUATE_EVERY = 200
NO_CHOICE, ENSEMBLE = "no choice: last step, default", "agreement with the majority of candidates"


class Candidate(NamedTuple):
    """A run, as it is stored."""

    name: str
    history: list[dict[str, float]]
    predicted: list[int]
    """The classes at the last step."""


class Scores:
    """An observer that scores each evaluation by every validator."""

    def __init__(self, inputs: InputRows, clusters: Tensor) -> None:
        self.inputs, self.clusters = inputs, clusters
        self.history: list[dict[str, float]] = []
        self.predicted: list[int] = []

    def logged(self, step: int, terms: Mapping[str, float]) -> None: ...

    def evaluated(self, step: int, figures: Mapping[str, float]) -> None:
        self.history[-1] |= {"step": step, "accuracy": 100 * figures["accuracy"]}

    def predictions(
        self, step: int, target: DomainPredictions, source: DomainPredictions | None
    ) -> None:
        shown = dataclasses.replace(target, inputs=self.inputs, cluster_labels=self.clusters)
        checks = [VALIDATORS[name] for name in VALIDATORS]
        self.history.append({check.name: check.score(shown, source) for check in checks})
        self.predicted = target.predicted.tolist()


def run(*arguments: str) -> None:
    """Do the runs that are missing and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks validators")
    parser.add_argument("files", nargs="*")
    parser.add_argument("--tasks", default="", help="with commas; all where none is named")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("validator_runs"))
    given = parser.parse_args(arguments)
    if not given.files:
        print("needs features of Office-31 or Office-Home: python -m benchmarks validators FILE")
        return
    torch.set_num_threads(1)
    groups = [
        group
        for file in given.files
        for group in candidates(file, given.tasks.split(",") if given.tasks else [], given)
    ]
    Console(width=120).print(regrets(groups))


def candidates(file: str, tasks: Sequence[str], given: Any) -> Iterator[list[Candidate]]:
    """The runs of each task and seed, read where they are there already."""
    benchmark = _benchmark(file)
    for name in tasks or benchmark.tasks:
        pair = benchmark.task(name)
        task = load_task(benchmark.name, pair[0].key, pair[1].key, file)
        references = cache(partial(_references, task))
        for seed in range(given.seeds):
            folder = given.out / f"{Path(file).stem}_{name}_{seed}"
            yield [
                _run(folder / f"{title}.json", method, overrides, seed, task, references)
                for title, method, overrides in _settings()
            ]


def _benchmark(file: str) -> Benchmark:
    with np.load(file) as stored:
        classes = len(stored["classes"])
    known = {
        len(BENCHMARKS[name].classes): BENCHMARKS[name] for name in ("office31", "office_home")
    }
    return known[classes]


def _settings() -> Iterator[tuple[str, str, dict[str, float]]]:
    for method in METHODS:
        for values in GRIDS.get(method, ({},)):
            yield _title(method, values), method, values


def _title(method: str, values: Mapping[str, float]) -> str:
    return " ".join([method, *(f"{key}={value:g}" for key, value in values.items())])


def _references(task: Task) -> tuple[InputRows, Tensor]:
    """The target's rows, whose neighbours are then found once, and its cluster labels."""
    source, target = task.source, task.target
    assert isinstance(source, ArrayDomain)
    assert isinstance(target, ArrayDomain)
    inputs = input_rows(target)
    assert inputs is not None
    rows = [domain.rows(np.arange(len(domain))) for domain in (source, target)]
    labels = torch.from_numpy(np.asarray(source.labels))
    return inputs, cluster_labels(rows[0], labels, rows[1], len(task.classes)).argmax(1)


def _run(
    file: Path,
    method: str,
    overrides: Mapping[str, float],
    seed: int,
    task: Task,
    references: Callable[[], tuple[InputRows, Tensor]],
) -> Candidate:
    if not file.exists():
        print(f"{file.parent.name}: {file.stem}", flush=True)
        scores = Scores(*references())
        config = RunConfig(
            method, Recipe(evaluate_every=EVALUATE_EVERY), overrides=overrides, seed=seed
        )
        train(config, task, observers=(scores,))
        file.parent.mkdir(parents=True, exist_ok=True)
        stored = Candidate(file.stem, scores.history, scores.predicted)
        write_atomic(file, json.dumps(stored._asdict()))
    return Candidate(**json.loads(file.read_text()))


def regrets(groups: Sequence[Sequence[Candidate]]) -> Table:
    """Mean regret in points of each validator."""
    table = Table(title=f"Regret in points, mean over {len(groups)} tasks and seeds")
    for column in ("validator", "steps", "settings", "methods", "settings and methods"):
        table.add_column(column, justify="left" if column == "validator" else "right")
    names = [name for name in VALIDATORS if name in groups[0][0].history[-1]]
    rows = {name: [_mean(v) for v in _regrets(groups, itemgetter(name))] for name in names}
    rows[NO_CHOICE] = [_mean(values) for values in _without(groups)]
    rows[ENSEMBLE] = ["", *(_mean(values) for values in _ensemble(groups))]
    for name, cells in rows.items():
        table.add_row(VALIDATORS[name].title if name in VALIDATORS else name, *cells)
    return table


def _mean(values: Sequence[float]) -> str:
    return f"{statistics.fmean(values):.2f}"


def _sets(group: Sequence[Candidate]) -> list[list[list[Candidate]]]:
    """What is chosen from: over settings (a set for each method), over methods, over all."""
    by_name = {each.name: each for each in group}
    grids = [[by_name[_title(m, values)] for values in GRIDS[m]] for m in GRIDS]
    return [grids, [[by_name[method] for method in METHODS]], [list(group)]]


def _regrets(
    groups: Sequence[Sequence[Candidate]], score: Callable[[Mapping[str, float]], float]
) -> list[list[float]]:
    over: list[list[float]] = [[], [], [], []]
    for group in groups:
        # Of equal scores a run keeps the latest step, and a search the first candidate.
        over[0] += [_regret(each.history[::-1], score) for each in group]
        for number, sets in enumerate(_sets(group), 1):
            over[number] += [_regret([c.history[-1] for c in each], score) for each in sets]
    return over


def _regret(
    choices: Sequence[Mapping[str, float]], score: Callable[[Mapping[str, float]], float]
) -> float:
    """Of equal scores the first is chosen."""
    chosen = max(choices, key=score)
    return max(each["accuracy"] for each in choices) - chosen["accuracy"]


def _without(groups: Sequence[Sequence[Candidate]]) -> list[list[float]]:
    """The regret of the last step, of the default setting, and of always the same method."""
    over: list[list[float]] = [[], [], [], []]
    for group in groups:
        over[0] += [_regret(each.history, lambda line: line["step"]) for each in group]
        for number, sets in enumerate(_sets(group), 1):
            for each in sets:
                plain = next((c for c in each if c.name == WITHOUT), each[0])
                best = max(c.history[-1]["accuracy"] for c in each)
                over[number].append(best - plain.history[-1]["accuracy"])
    return over


def _ensemble(groups: Sequence[Sequence[Candidate]]) -> list[list[float]]:
    """The regret of the candidate that agrees most often with the majority of all candidates."""
    over: list[list[float]] = [[], [], []]
    for group in groups:
        for number, sets in enumerate(_sets(group)):
            for each in sets:
                votes = np.array([c.predicted for c in each])
                majority = np.array([np.bincount(column).argmax() for column in votes.T])
                agreement = (votes == majority).mean(1)
                accuracies = [c.history[-1]["accuracy"] for c in each]
                over[number].append(max(accuracies) - accuracies[int(agreement.argmax())])
    return over
