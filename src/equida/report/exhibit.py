"""What a table or figure of the paper is made from, and what it becomes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from equida.bench.settings import Setting
from equida.report.commands import bench_command
from equida.report.tables import Cell, Comparison

PAPER_SEEDS = 3


@dataclass(frozen=True)
class Exhibit:
    """One table or figure of the paper."""

    name: str
    title: str
    have: int
    """Cells or panels that the runs give."""
    need: int
    """Cells or panels of the paper."""
    command: str = ""
    """What makes it, or what is missing of it."""
    tables: tuple[Comparison, ...] = ()
    texts: tuple[str, ...] = ()
    """Further tables, as Markdown."""
    figures: tuple[str, ...] = ()
    """Files, beside the document."""
    remarks: tuple[str, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    """Further numbers, for programs."""
    seeds: tuple[int, int] | None = None
    """The fewest and the most seeds behind what there is, where it is a mean over seeds."""

    @property
    def complete(self) -> bool:
        """Whether everything is there, over as many seeds as in the paper."""
        fewest = PAPER_SEEDS if self.seeds is None else self.seeds[0]
        return self.have >= self.need and fewest >= PAPER_SEEDS

    @property
    def status(self) -> str:
        if not self.have:
            return "missing"
        text = "complete" if self.complete else f"{self.have} of {self.need}"
        return text if self.seeds is None else f"{text}, {seed_count(*self.seeds)}"


def seed_count(fewest: int, most: int) -> str:
    """How many seeds, in words.

    >>> seed_count(1, 3), seed_count(1, 1)
    ('1 to 3 seeds', '1 seed')
    """
    number = str(most) if fewest == most else f"{fewest} to {most}"
    return f"{number} seed{'s' if most != 1 else ''}"


def counts(cells: Sequence[Cell]) -> tuple[int, int] | None:
    """The fewest and the most seeds of the cells that have any."""
    counts = [cell.ours.count for cell in cells if cell.ours.count]
    return (min(counts), max(counts)) if counts else None


@dataclass(frozen=True)
class Material:
    """What exhibits are made from."""

    settings: Mapping[str, Setting]
    """By benchmark, the runs to use."""
    root: Path
    """The folder of runs that a command for a new data set names."""
    select: str = "last"

    def command(self, benchmark: str, **asked: Any) -> str:
        return bench_command(benchmark, self.settings.get(benchmark), self.root, **asked)
