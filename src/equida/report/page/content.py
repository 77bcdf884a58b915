"""What is on the page: groups of runs, systems, tasks and runs, each with its number."""

import dataclasses
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from equida.runs.entry import Entry
from equida.runs.group import RunGroup, group_runs
from equida.runs.read import Run
from equida.runs.table import AVERAGE, Cell, Table, heading, make_table, row_cells
from equida.runs.variant import Variant, method_title, parameter_title, rank


@dataclass(frozen=True)
class ShownGroup:
    """Runs on the same data, under a title that no other group of the page has."""

    title: str
    runs: RunGroup

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """The tasks with a finished run."""
        finished = {entry.task for entry in self.runs.finished}
        return tuple(task for task in self.runs.tasks if task in finished)

    @cached_property
    def variants(self) -> tuple[Variant, ...]:
        """The variants with a finished run, in the order of tables."""
        finished = {entry.variant.key() for entry in self.runs.finished}
        return tuple(variant for variant in self.runs.variants if variant.key() in finished)

    @cached_property
    def settings(self) -> Mapping[Hashable, str]:
        """What sets each variant apart from others of its method, by its key.

        Variants whose titles are equal, because their values differ in far digits, get a number.
        """
        seen: Counter[str] = Counter()
        settings: dict[Hashable, str] = {}
        for variant in self.runs.variants:
            seen[variant.title] += 1
            number = f" [{seen[variant.title]}]" if seen[variant.title] > 1 else ""
            settings[variant.key()] = parameter_title(variant.shown) + number
        return settings

    def label(self, variant: Variant) -> str:
        """What a variant is called; no other variant of the group has the same label."""
        return method_title(variant.method) + self.settings[variant.key()]

    def table(self, select: str) -> Table:
        """The results by task or by class, of the steps that a selection picks."""
        return make_table(
            self.runs.of(self.variants),
            benchmark=self.runs.data_set,
            tasks=self.tasks,
            seeds=self.runs.seeds,
            select=select,
            measures=True,
            network=self.runs.network,
            data_title=self.title,
            protocol=self.runs.protocol,
        )

    def mean_accuracy(self, variant: Variant, select: str) -> Cell:
        """The accuracy over all tasks, by seed."""
        mine = self.runs.of([variant])
        return row_cells(mine, self.runs.data_set, self.tasks, select)[AVERAGE]


@dataclass(frozen=True)
class ShownSystem:
    """A method with what sets it apart; it has one colour and one marker on the whole page."""

    label: str
    method: str


@dataclass(frozen=True)
class ShownTask:
    """A task that has finished runs."""

    group: int
    name: str

    @property
    def title(self) -> str:
        return heading(self.name)


@dataclass(frozen=True)
class ShownRun:
    """A finished run with its places on the page."""

    number: int
    entry: Entry
    task: int
    system: int

    @property
    def run(self) -> Run:
        assert self.entry.run is not None
        return self.entry.run

    @property
    def result(self) -> Mapping[str, Any]:
        assert self.entry.result is not None
        return self.entry.result

    @property
    def method(self) -> str:
        return self.entry.variant.method

    @property
    def seed(self) -> int:
        return self.entry.seed


@dataclass(frozen=True)
class PageContent:
    """Everything that a page shows, in the order in which it shows it."""

    groups: tuple[ShownGroup, ...]
    systems: tuple[ShownSystem, ...]
    tasks: tuple[ShownTask, ...]
    finished: tuple[ShownRun, ...]
    unfinished: tuple[Entry, ...]
    """Failed runs too."""

    @property
    def selections(self) -> list[str]:
        """The selections that at least one run has."""
        found = [name for group in self.groups for name in group.runs.selections]
        return list(dict.fromkeys(found))

    @cached_property
    def numbers(self) -> Mapping[Path, int]:
        """The number of each finished run, by its folder."""
        return {shown.run.path: shown.number for shown in self.finished}

    @cached_property
    def _system_numbers(self) -> Mapping[ShownSystem, int]:
        return {system: number for number, system in enumerate(self.systems)}

    def system(self, group: ShownGroup, variant: Variant) -> int:
        """The number of a variant's system."""
        return self._system_numbers[ShownSystem(group.label(variant), variant.method)]

    def task_title(self, number: int) -> str:
        """A task with the data that it is of."""
        task = self.tasks[number]
        return f"{self.groups[task.group].title}, {task.title}"


def arrange(runs: Sequence[Run]) -> PageContent:
    """The content of the page of some runs."""
    groups = _titled(group_runs(runs))
    systems = dict.fromkeys(
        ShownSystem(group.label(variant), variant.method)
        for group in groups
        for variant in group.variants
    )
    tasks = [ShownTask(i, name) for i, group in enumerate(groups) for name in group.tasks]
    content = PageContent(
        groups,
        tuple(sorted(systems, key=lambda system: rank(system.method))),
        tuple(tasks),
        (),
        tuple(e for group in groups for e in group.runs.entries if e.result is None),
    )
    places = [(i, entry) for i, group in enumerate(groups) for entry in group.runs.finished]
    columns = {task: number for number, task in enumerate(tasks)}
    finished = [
        ShownRun(
            number,
            entry,
            columns[ShownTask(i, entry.task)],
            content.system(groups[i], entry.variant),
        )
        for number, (i, entry) in enumerate(places)
    ]
    return dataclasses.replace(content, finished=tuple(finished))


def _titled(groups: Sequence[RunGroup]) -> tuple[ShownGroup, ...]:
    """The groups; those of one data set in different states are told apart by their digest."""
    counts = Counter(group.title for group in groups)

    def title(group: RunGroup) -> str:
        if counts[group.title] == 1:
            return group.title
        return f"{group.title} (data {group.config.data_sha256[:8] or 'unknown'})"

    return tuple(ShownGroup(title(group), group) for group in groups)
