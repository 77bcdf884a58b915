"""What runs say: one figure for a row, a column and a seed, and their mean and deviation."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from equida.bench.grid import Planned
from equida.bench.paper_tables import AVERAGE
from equida.bench.sweep import Variant
from equida.data.benchmarks import Benchmark
from equida.errors import InputError
from equida.evaluation.validators import VALIDATORS
from equida.training.folder import RunFolder

SELECTIONS = ("last", "oracle", *VALIDATORS)
MEASURES = {"Equity": "equity", "Discriminability": "discriminability"}
"""Columns that may follow the accuracies, and what they are called in results."""


@dataclass(frozen=True)
class Record:
    """What is known of one run."""

    variant: Variant
    task: str
    seed: int
    result: Mapping[str, Any] | None = None
    failure: str | None = None


@dataclass(frozen=True)
class Figures:
    """One figure by seed."""

    by_seed: Mapping[int, float] = field(default_factory=dict)
    failed: bool = False
    """Whether a run behind it failed."""

    @property
    def count(self) -> int:
        return len(self.by_seed)

    @cached_property
    def mean(self) -> float | None:
        return statistics.fmean(self.by_seed.values()) if self.by_seed else None

    @cached_property
    def deviation(self) -> float | None:
        """The sample standard deviation over seeds; None of fewer than two."""
        return statistics.stdev(self.by_seed.values()) if self.count > 1 else None


def read_records(planned: Iterable[Planned]) -> list[Record]:
    """What the folders of planned runs say by now."""
    return [_record(run) for run in planned]


def _record(run: Planned) -> Record:
    if not run.folder.is_dir():
        return Record(run.variant, run.task, run.seed)
    folder = RunFolder(run.folder)
    result, failed = folder.read_json("result.json"), None
    if result is None:
        failed = folder.read_json("failed.json")
    return Record(run.variant, run.task, run.seed, result, failed["reason"] if failed else None)


def selected(result: Mapping[str, Any], select: str) -> Mapping[str, float] | None:
    """The evaluation that a selection picks, or None where the run does not have it."""
    if select not in SELECTIONS:
        known = ", ".join(SELECTIONS)
        raise InputError(f"--select is {select!r}; expected one of {known}")
    figures: Mapping[str, float] | None = (
        result["last"] if select == "last" else result["picks"].get(select)
    )
    return figures


def percent(result: Mapping[str, Any], select: str) -> float | None:
    """The accuracy that the benchmark is judged by, or None without target labels."""
    figures = selected(result, select)
    value = None if figures is None else figures.get(result["metric"])
    return None if value is None else 100.0 * value


def recalls(result: Mapping[str, Any], select: str) -> list[float] | None:
    """The accuracy of each class in percent; known for the weights that were kept only.

    A class without samples has none, and the mean leaves it out: it is None for all then.
    """
    if result.get("kept") != select or "confusion" not in result:
        return None
    rows = result["confusion"]
    if any(sum(row) == 0 for row in rows):
        return None
    return [100.0 * row[number] / sum(row) for number, row in enumerate(rows)]


def by_column(
    records: Sequence[Record], benchmark: Benchmark, tasks: Sequence[str], select: str
) -> dict[str, Figures]:
    """The figures of one row of a table: by task or by class, then the average and the measures.

    The average of a seed is there once all its tasks are.
    """
    failed = {record.task for record in records if record.failure is not None}
    done = [record for record in records if record.result is not None]
    if benchmark.metric == "mean_class_accuracy":
        columns = _by_class(done, benchmark, select, bool(failed))
    else:
        columns = {
            task: Figures(_scores([r for r in done if r.task == task], select), task in failed)
            for task in tasks
        }
        if len(tasks) > 1:
            columns[AVERAGE] = average([columns[task] for task in tasks])
    for title, name in MEASURES.items():
        each = [_measures([r for r in done if r.task == task], name, select) for task in tasks]
        columns[title] = average([Figures(values, bool(failed)) for values in each])
    return columns


def average(columns: Sequence[Figures]) -> Figures:
    """The mean over columns, for every seed that has all of them."""
    seeds = set.intersection(*(set(column.by_seed) for column in columns)) if columns else set()
    return Figures(
        {s: statistics.fmean(column.by_seed[s] for column in columns) for s in sorted(seeds)},
        any(column.failed for column in columns),
    )


def _by_class(
    done: Sequence[Record], benchmark: Benchmark, select: str, failed: bool
) -> dict[str, Figures]:
    classes: dict[str, dict[int, float]] = {name: {} for name in benchmark.display_classes}
    for record in done:
        assert record.result is not None
        for name, value in zip(classes, recalls(record.result, select) or (), strict=False):
            classes[name][record.seed] = value
    columns = {name: Figures(values, failed) for name, values in classes.items()}
    return columns | {AVERAGE: Figures(_scores(done, select), failed)}


def _scores(records: Sequence[Record], select: str) -> dict[int, float]:
    found = {record.seed: percent(record.result or {}, select) for record in records}
    return {seed: value for seed, value in sorted(found.items()) if value is not None}


def _measures(records: Sequence[Record], name: str, select: str) -> dict[int, float]:
    chosen = {record.seed: selected(record.result or {}, select) for record in records}
    return {seed: figures[name] for seed, figures in sorted(chosen.items()) if figures}
