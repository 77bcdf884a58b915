"""Runs put in order: which task and which system each belongs to."""

import dataclasses
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equida.bench.results import selected
from equida.bench.store import Run
from equida.data import BENCHMARKS
from equida.evaluation.validators import VALIDATORS
from equida.methods import METHODS, parts
from equida.training.config import RunConfig

SELECTIONS = {
    "last": "last step",
    **{name: name.replace("_", " ") for name in VALIDATORS},
    "oracle": "oracle (uses target labels)",
}
"""What can be shown of a run, by the name that its result uses."""


@dataclass(frozen=True, order=True)
class TaskKey:
    """A column of the comparison."""

    rank: tuple[int, int]
    """Place of the benchmark and of the task in it; the user's own data come last."""
    benchmark: str
    """Its title, or "own data"."""
    name: str


@dataclass(frozen=True, order=True)
class System:
    """A row of the comparison: a method, and what sets it apart from other runs of the method."""

    rank: int
    title: str
    settings: str
    method: str

    @property
    def label(self) -> str:
        return f"{self.title} ({self.settings})" if self.settings else self.title


@dataclass(frozen=True)
class Entry:
    """A run with its place."""

    run: Run
    task: TaskKey
    system: System
    number: int
    """Place among all runs of the page."""

    @property
    def seed(self) -> int:
        return self.run.config.seed

    @property
    def result(self) -> dict[str, Any]:
        assert self.run.result is not None
        return self.run.result

    def figures(self, selection: str) -> Mapping[str, float] | None:
        """The evaluation that a selection picks, or None where it could not choose."""
        return selected(self.result, selection)

    def score(self, selection: str) -> float | None:
        """The accuracy that the task is judged by, or None without target labels."""
        figures = self.figures(selection)
        return None if figures is None else figures.get(self.result["metric"])


@dataclass(frozen=True)
class Grid:
    """All runs, finished ones in the order of tasks, systems and seeds."""

    finished: list[Entry]
    open: list[Entry]
    """Unfinished and failed ones."""

    @property
    def tasks(self) -> list[TaskKey]:
        return sorted({entry.task for entry in self.finished})

    @property
    def systems(self) -> list[System]:
        return sorted({entry.system for entry in self.finished})

    @property
    def selections(self) -> list[str]:
        """Those that at least one run has."""
        return [
            name
            for name in SELECTIONS
            if any(entry.figures(name) is not None for entry in self.finished)
        ]


def arrange(runs: Sequence[Run]) -> Grid:
    """The runs with their places."""
    systems = _systems(runs)
    entries = sorted(
        (Entry(run, task_key(run), systems[run.path], 0) for run in runs),
        key=lambda entry: (entry.task, entry.system, entry.seed, str(entry.run.path)),
    )
    entries = [dataclasses.replace(entry, number=i) for i, entry in enumerate(entries)]
    return Grid(
        [entry for entry in entries if entry.run.result is not None],
        [entry for entry in entries if entry.run.result is None],
    )


def task_key(run: Run) -> TaskKey:
    """The run's task; of an unfinished run as its config names it."""
    name = run.result["task"] if run.result else _task_name(run.config)
    known = run.config.benchmark
    if known is None or known not in BENCHMARKS:
        return TaskKey((len(BENCHMARKS), 0), known or "own data", name)
    benchmark = BENCHMARKS[known]
    place = benchmark.tasks.index(name) if name in benchmark.tasks else len(benchmark.tasks)
    return TaskKey((list(BENCHMARKS).index(known), place), benchmark.title, name)


def method_title(method: str) -> str:
    """The method's name as papers print it."""
    titles = [
        METHODS[part].method.__name__ if part in METHODS else part for part in method.split("+")
    ]
    return "+".join("Source only" if title == "SourceOnly" else title for title in titles)


def settings(config: RunConfig) -> dict[str, Any]:
    """What may set two runs of one method on one task apart, besides the seed."""
    where = config.task
    made = config.extractor or {}
    return {
        **dict(config.overrides),
        **{f.name: getattr(config.recipe, f.name) for f in dataclasses.fields(config.recipe)},
        "backbone": made.get("backbone", config.backbone),
        "data": Path(where.data).name if where and where.data else "",
        "from": Path(config.initial).name if config.initial else "",
    }


def _systems(runs: Sequence[Run]) -> dict[Path, System]:
    """The system of each run: its method, and those settings in which runs of it differ."""
    of_run = {run.path: settings(run.config) for run in runs}
    groups: dict[tuple[TaskKey, str], list[dict[str, Any]]] = defaultdict(list)
    for run in runs:
        groups[task_key(run), run.config.method].append(of_run[run.path])
    differing: dict[str, dict[str, None]] = defaultdict(dict)
    for (_, method), group in groups.items():
        for key in dict.fromkeys(key for values in group for key in values):
            if len({repr(values.get(key)) for values in group}) > 1:
                differing[method][key] = None
    return {
        run.path: _system(run.config.method, of_run[run.path], differing[run.config.method])
        for run in runs
    }


def _system(method: str, values: Mapping[str, Any], differing: Mapping[str, None]) -> System:
    names = list(METHODS)
    first = parts(method)[0] if all(part in METHODS for part in method.split("+")) else ""
    rank = names.index(first) if first else len(names)
    shown = [
        f"{key} {values[key]:g}" if isinstance(values[key], float) else f"{key} {values[key]}"
        for key in differing
        if values.get(key) not in (None, "")
    ]
    # Compositions stand below all methods that are alone.
    below = 0 if "+" not in method else len(names) + 1
    return System(rank + below, method_title(method), ", ".join(shown), method)


def _task_name(config: RunConfig) -> str:
    if config.task is None:
        return "data in memory"
    names = [Path(path).name for path in (config.task.source, config.task.target) if path]
    return "2".join(names)
