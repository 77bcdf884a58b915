"""How often the harm check is right, over runs whose target labels are known.

`python -m benchmarks harm RUNS [RUNS ...]`, folders of `equida bench` with the method source_only
among others. A run is harmed where it ends more than a point below source_only of the same data,
task and seed. Labels are read here, to judge the check; the check itself has seen none.
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from equida.runs.entry import Entry
from equida.runs.group import RunGroup, group_runs, network_title
from equida.runs.read import read_runs

POINT = 1.0
"""An accuracy that is lower by more than this, in percent, counts as harm."""


@dataclass
class Counts:
    """Runs that were harmed and not, and those of each that the check warns of."""

    harmed: int = 0
    found: int = 0
    unharmed: int = 0
    warned: int = 0

    def add(self, harmed: bool, warned: bool) -> None:
        if harmed:
            self.harmed += 1
            self.found += warned
        else:
            self.unharmed += 1
            self.warned += warned

    @property
    def runs(self) -> int:
        return self.harmed + self.unharmed

    def cells(self) -> list[str]:
        """As a row of the table, after its title."""
        return [str(n) for n in (self.harmed, self.found, self.unharmed, self.warned)]

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.harmed + other.harmed,
            self.found + other.found,
            self.unharmed + other.unharmed,
            self.warned + other.warned,
        )


def count(entries: Iterable[Entry]) -> Counts:
    """The counts over runs that can stand in one table; those without a check are left out."""
    finished = [entry for entry in entries if entry.accuracy("last") is not None]
    unadapted = {
        (entry.task, entry.seed): entry.accuracy("last")
        for entry in finished
        if entry.variant.method == "source_only"
    }
    counts = Counts()
    for entry in finished:
        assert entry.result is not None
        before, after = unadapted.get((entry.task, entry.seed)), entry.accuracy("last")
        harm = entry.result.get("harm")
        if entry.variant.method == "source_only" or before is None or after is None or not harm:
            continue
        counts.add(after < before - POINT, harm["levelled"] or harm["collapsed"])
    return counts


def counts_table(title: str) -> Table:
    """A table without rows, for the cells of `Counts`."""
    table = Table(title=title)
    heads = ("runs", "harmed", "of these found", "not harmed", "of these warned of wrongly")
    for number, head in enumerate(heads):
        table.add_column(head, justify="right" if number else "left")
    return table


def run(*folders: str) -> None:
    """Print the counts of each data set and backbone, and of all together."""
    if not folders:
        print("needs folders of runs: python -m benchmarks harm RUNS [RUNS ...]")
        return
    table = counts_table("The harm check over runs whose target labels are known")
    total = Counts()
    for folder in folders:
        for group in group_runs(read_runs(Path(folder))):
            found = count(group.entries)
            total += found
            table.add_row(_title(group, found), *found.cells())
    table.add_row(f"all ({total.runs})", *total.cells())
    Console(width=140).print(table)


def _title(group: RunGroup, counts: Counts) -> str:
    network = next(network_title(entry.run.config) for entry in group.entries if entry.run)
    return f"{group.title}, {network} ({counts.runs})"


if __name__ == "__main__":
    run(*sys.argv[1:])
