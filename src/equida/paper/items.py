"""What `equida paper` makes (`PaperItem`) and what it makes it from (`PaperContext`)."""

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from equida.data.benchmarks import BENCHMARKS
from equida.runs.commands import bench_command
from equida.runs.group import RunGroup, group_runs, split_by_setting
from equida.runs.read import Run
from equida.runs.table import Cell, Table

PAPER_SEEDS = 3
"""Each figure of the paper is a mean over this many seeds."""


@dataclass(frozen=True)
class PaperItem:
    """One table or figure of the paper, made as far as the runs allow."""

    name: str
    title: str
    have: int
    """The number of cells or panels that the runs give."""
    need: int
    """The number of cells or panels in the paper."""
    command: str = ""
    """The command that makes what is missing; "" where nothing is."""
    tables: tuple[Table, ...] = ()
    texts: tuple[str, ...] = ()
    """Further tables, as Markdown."""
    figures: tuple[str, ...] = ()
    """Files beside the document."""
    remarks: tuple[str, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    """Further numbers, for programs."""
    seeds: tuple[int, int] | None = None
    """The fewest and the most seeds behind a figure; None where nothing is a mean over seeds."""

    @property
    def complete(self) -> bool:
        """Whether everything is there, over as many seeds as in the paper."""
        fewest = PAPER_SEEDS if self.seeds is None else self.seeds[0]
        return self.have >= self.need and fewest >= PAPER_SEEDS

    @property
    def status(self) -> str:
        """How much of it there is, in a few words."""
        if not self.have:
            return "missing"
        text = "complete" if self.complete else f"{self.have} of {self.need}"
        return text if self.seeds is None else f"{text}, {seed_phrase(*self.seeds)}"


def seed_phrase(fewest: int, most: int) -> str:
    """A number of seeds in words.

    >>> seed_phrase(1, 3), seed_phrase(1, 1)
    ('1 to 3 seeds', '1 seed')
    """
    number = str(most) if fewest == most else f"{fewest} to {most}"
    return f"{number} seed{'s' if most != 1 else ''}"


def seed_range(cells: Iterable[Cell]) -> tuple[int, int] | None:
    """The fewest and the most seeds of the cells that have any."""
    counts = [cell.count for cell in cells if cell.count]
    return (min(counts), max(counts)) if counts else None


@dataclass(frozen=True)
class PaperContext:
    """What the items are made from."""

    groups: Mapping[str, RunGroup]
    """The runs to use, by benchmark; those of a benchmark share data, network and recipe."""
    root: Path
    """The folder of runs that commands name where a benchmark has no runs yet."""
    select: str = "last"
    """The evaluation of a run that counts."""

    def command(
        self,
        benchmark: str,
        *,
        methods: str,
        tasks: str = "",
        sweeps: Sequence[str] = (),
        seeds: int = PAPER_SEEDS,
    ) -> str:
        """The `equida bench` that makes further runs in the way of those that there are."""
        return bench_command(
            benchmark,
            self.groups.get(benchmark),
            self.root,
            methods=methods,
            tasks=tasks,
            sweeps=sweeps,
            seeds=seeds,
        )


def choose_groups(
    runs: Iterable[Run], order: Sequence[str] = ()
) -> tuple[dict[str, RunGroup], list[RunGroup]]:
    """The runs to use for each benchmark, and the runs that cannot stand in the same tables.

    Of a benchmark's data the ones with most finished runs are used, and of those the network and
    recipe with most finished runs. Runs that started from another run, or that had only some of the
    samples by a protocol, are not used at all. The benchmarks in `order` come first.
    """
    known = [
        run
        for run in runs
        if run.config.benchmark in BENCHMARKS
        and run.config.from_run is None
        and not run.config.protocol
    ]
    by_benchmark: dict[str, list[RunGroup]] = {}
    for group in group_runs(known):
        by_benchmark.setdefault(str(group.benchmark), []).append(group)
    names = sorted(by_benchmark, key=lambda name: (name not in order, [*order, name].index(name)))
    used: dict[str, RunGroup] = {}
    left_out = []
    for name in names:
        first, *others = sorted(by_benchmark[name], key=lambda group: -len(group.finished))
        used[name], *rest = split_by_setting(first)
        left_out += rest
        left_out += [setting for group in others for setting in split_by_setting(group)]
    return used, left_out


def paper_command(
    roots: Sequence[Path],
    out: Path,
    *,
    select: str = "last",
    images: Mapping[str, str] | None = None,
    theory: Path | None = None,
) -> str:
    """The `equida paper` that makes the same document with these folders of images.

    >>> paper_command([Path("runs")], Path("paper"), images={"office31": "DIR"})
    'equida paper runs --out paper --images office31=DIR'
    """
    words = ["equida", "paper", *map(str, roots), "--out", str(out)]
    words += ["--select", select] if select != "last" else []
    words += ["--theory", str(theory)] if theory else []
    for name, folder in (images or {}).items():
        words += ["--images", f"{name}={folder}"]
    return shlex.join(words)
