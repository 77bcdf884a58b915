"""A comparison in the paper's layout: our figures, the paper's beside them, best and second."""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from equida.bench.paper_tables import AVERAGE, ELEVEN, R_TABLES, RESULTS, PaperRow
from equida.bench.results import MEASURES, Figures, Record, by_column
from equida.bench.sweep import Variant
from equida.data.benchmarks import BENCHMARKS, Benchmark

SELECTED = {
    "last": "the last step",
    "oracle": "the step with the best target accuracy (the oracle: it uses target labels)",
}


@dataclass(frozen=True)
class Cell:
    """Our figures, the paper's number, and how ours is set."""

    ours: Figures
    paper: float | None = None
    mark: str = ""
    """"b" for the best of the column, "u" for the second."""
    digits: int = 1
    paper_mark: str = ""
    """How the paper sets its number, likewise."""
    comparable: bool = True
    """Whether the paper's number is of the same data, so that a difference means something."""

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's, where they are of the same data."""
        mean = self.ours.mean
        if mean is None or self.paper is None or not self.comparable:
            return None
        return mean - self.paper

    def shown(self) -> float | None:
        """Our mean as it is printed."""
        return None if self.ours.mean is None else round(self.ours.mean, self.digits)


@dataclass(frozen=True)
class Line:
    """One row."""

    variant: Variant
    cells: Mapping[str, Cell]
    paper: PaperRow | None = None

    @property
    def title(self) -> str:
        return self.variant.title


@dataclass(frozen=True)
class Comparison:
    """A table that says what it shows: which selection, over how many seeds."""

    title: str
    benchmark: str
    columns: Mapping[str, str]
    """Headings by key."""
    lines: tuple[Line, ...]
    seeds: tuple[int, ...]
    select: str
    notes: tuple[str, ...] = ()
    failures: Mapping[str, str] = field(default_factory=dict)
    """Why, by run."""

    @property
    def caption(self) -> str:
        count = len(self.seeds)
        if not count:
            return f"{self.title}; no runs yet."
        over = f"mean ± standard deviation over {count} seeds" if count > 1 else "one seed"
        shown = SELECTED.get(self.select, f"the step that {self.select} (label-free) picks")
        return f"{self.title}; {over}; {shown}."


def comparison(
    records: Sequence[Record],
    benchmark: str,
    tasks: Sequence[str],
    seeds: Sequence[int],
    *,
    select: str = "last",
    measures: bool = False,
    network: str = "",
    pairs: bool = False,
) -> Comparison:
    """The table of some runs.

    Args:
        records: what is known of each run.
        benchmark: whose layout and printed numbers are used.
        tasks: the columns, unless the benchmark's columns are classes.
        seeds: those that were asked for.
        select: which evaluation of a run counts.
        measures: whether equity and discriminability follow.
        network: what the runs trained or took features from, for the title.
        pairs: whether this is the paper's table of two r, which marks the better of each method.
    """
    data_set = BENCHMARKS[benchmark]
    keys = _keys(data_set, tasks, measures)
    variants = _ordered({record.variant.key(): record.variant for record in records}, benchmark)
    lines = []
    for variant in variants:
        mine = [record for record in records if record.variant.key() == variant.key()]
        figures = by_column(mine, data_set, tasks, select)
        paper = (
            R_TABLES[benchmark].row(variant.method, variant.shown)
            if pairs
            else paper_row(benchmark, variant)
        )
        lines.append(
            Line(variant, {key: _cell(figures[key], paper, key, keys) for key in keys}, paper)
        )
    return Comparison(
        f"Accuracy (%) on {data_set.title}" + (f", {network}" if network else ""),
        benchmark,
        {key: heading(key) for key in keys},
        marked(lines, keys, pairs=pairs),
        tuple(seeds),
        select,
        _notes(lines, data_set, tasks, select, pairs),
        {
            f"{record.variant.title} {record.task} seed {record.seed}": record.failure
            for record in records
            if record.failure is not None
        },
    )


def heading(key: str) -> str:
    """A column's heading as the paper prints it.

    >>> heading("Ar2Cl")
    'Ar→Cl'
    """
    source, two, target = key.partition("2")
    return f"{source}→{target}" if two else key


def paper_row(benchmark: str, variant: Variant) -> PaperRow | None:
    """The row of the paper for a method, at its default parameters or with another r."""
    if benchmark not in RESULTS or variant.recipe:
        return None
    plain = RESULTS[benchmark].row(variant.method, variant.overrides)
    return plain or R_TABLES[benchmark].row(variant.method, variant.overrides)


def marked(lines: Sequence[Line], keys: Sequence[str], *, pairs: bool = False) -> tuple[Line, ...]:
    """The lines with best and second of each accuracy column marked, as printed: ties share.

    With `pairs`, only the best, and among the lines of each method by themselves.
    """
    if not pairs:
        return _marked(lines, keys, "bu")
    methods = dict.fromkeys(line.variant.method for line in lines)
    groups = [[line for line in lines if line.variant.method == name] for name in methods]
    return tuple(line for group in groups for line in _marked(group, keys, "b"))


def _marked(lines: Sequence[Line], keys: Sequence[str], names: str) -> tuple[Line, ...]:
    for key in keys:
        if key in MEASURES:
            continue
        values = [line.cells[key].shown() for line in lines]
        known = [value for value in values if value is not None]
        ranked = sorted(set(known), reverse=True)
        marks = dict(zip(ranked, names, strict=False)) if len(known) > 1 else {}
        lines = [
            dataclasses.replace(
                line,
                cells={
                    **line.cells,
                    key: dataclasses.replace(line.cells[key], mark=_mark(marks, value)),
                },
            )
            for line, value in zip(lines, values, strict=True)
        ]
    return tuple(lines)


def _mark(marks: Mapping[float, str], value: float | None) -> str:
    return "" if value is None else marks.get(value, "")


def _keys(data_set: Benchmark, tasks: Sequence[str], measures: bool) -> list[str]:
    if data_set.metric == "mean_class_accuracy":
        keys = [*data_set.display_classes, AVERAGE]
    else:
        keys = [*tasks, *([AVERAGE] if len(tasks) > 1 else [])]
    return [*keys, *MEASURES] if measures else keys


def _ordered(variants: Mapping[Any, Variant], benchmark: str) -> list[Variant]:
    """The paper's rows in its order, then the others as they came."""
    table = RESULTS.get(benchmark)
    order = [row.method for row in table.rows] if table else list(ELEVEN)
    ranks = {method: number for number, method in enumerate(dict.fromkeys((*order, *ELEVEN)))}
    return sorted(variants.values(), key=lambda variant: ranks.get(variant.method, len(ranks)))


def _cell(ours: Figures, paper: PaperRow | None, key: str, keys: Sequence[str]) -> Cell:
    if key in MEASURES:
        return Cell(ours, digits=3)
    if paper is None:
        return Cell(ours)
    if key in paper.entries and (key != AVERAGE or set(paper.entries) <= set(keys)):
        entry = paper.entries[key]
        return Cell(ours, entry.value, paper_mark=entry.mark)
    shown = [paper.entries[k].value for k in keys if k in paper.entries and k != AVERAGE]
    return Cell(ours, sum(shown) / len(shown) if shown else None)


def _notes(
    lines: Sequence[Line], data_set: Benchmark, tasks: Sequence[str], select: str, pairs: bool
) -> tuple[str, ...]:
    notes = [
        "Bold: the better r of each method, by the printed digits."
        if pairs
        else "Bold: best of a column; underlined: second; both by the printed digits."
    ]
    if any(line.paper for line in lines):
        table = (R_TABLES if pairs else RESULTS)[data_set.name]
        network = table.caption.rstrip(".").rpartition(" based on ")[2].split()[0]
        notes.append(
            f"Below each figure: the paper's (Table {table.number}, {network}), set as it is there,"
            " and ours minus it."
        )
        if data_set.metric == "accuracy" and 1 < len(tasks) < len(data_set.tasks):
            notes.append("The average, the paper's too, is over the tasks shown.")
        if not pairs and any(line.paper and line.paper.overrides for line in lines):
            notes.append(f"Rows with another r: Table {R_TABLES[data_set.name].number}.")
        notes += table.notes_on([line.variant.method for line in lines if line.paper])
    if data_set.metric == "mean_class_accuracy" and select != "last":
        notes.append("Figures by class are known for the weights that were kept, not for others.")
    return tuple(notes)
