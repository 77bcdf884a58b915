"""Runs that belong together: those on the same data, known by their digest and never by a path."""

import dataclasses
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from equida.data.benchmarks import BENCHMARKS, Benchmark
from equida.runs.entry import Entry, selection_titles
from equida.runs.read import Run
from equida.runs.table import OWN_DATA
from equida.runs.variant import Variant, changed_hyperparameters, hyperparameters, rank
from equida.training.config import RunConfig
from equida.training.recipe import RECIPES, recipe

UNKNOWN = object()


@dataclass(frozen=True)
class RunGroup:
    """Runs whose results can stand in one table."""

    benchmark: str | None
    """None for data that users bring."""
    entries: tuple[Entry, ...]
    """In the order of tasks, variants and seeds."""
    protocol: str = ""
    """What was made of the data, in words (see `DataSpec.protocol`)."""

    @property
    def title(self) -> str:
        """What the data are called, and what was made of them."""
        named = self.data_set.title if self.data_set else self.benchmark
        return ", ".join(filter(None, (named or OWN_DATA, self.protocol)))

    @cached_property
    def data_set(self) -> Benchmark | None:
        """The data set, registered or the user's own; None for paths, and for an unknown name."""
        if self.benchmark is not None:
            return BENCHMARKS.get(self.benchmark)
        return _own_data_set(self.configs)

    @cached_property
    def finished(self) -> tuple[Entry, ...]:
        return tuple(entry for entry in self.entries if entry.result is not None)

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """Those with entries, in order."""
        return tuple(dict.fromkeys(entry.task for entry in self.entries))

    @cached_property
    def variants(self) -> tuple[Variant, ...]:
        """Those with entries, in the order of tables."""
        found = {entry.variant.key(): entry.variant for entry in self.entries}
        return tuple(sorted(found.values(), key=lambda variant: rank(variant.method)))

    @cached_property
    def seeds(self) -> tuple[int, ...]:
        """Those with a finished run."""
        return tuple(sorted({entry.seed for entry in self.finished}))

    @property
    def selections(self) -> list[str]:
        """The selections that at least one run has."""
        return [
            name
            for name in selection_titles()
            if any(entry.figures(name) is not None for entry in self.finished)
        ]

    @property
    def configs(self) -> list[RunConfig]:
        return [entry.run.config for entry in self.entries if entry.run is not None]

    @property
    def config(self) -> RunConfig:
        """The config of any of its runs; in a group of one setting they differ in method, task and
        seed."""
        return self.configs[0]

    @property
    def network(self) -> str:
        """What was trained, in words; "" where the runs differ in it."""
        titles = {network_title(config) for config in self.configs}
        return titles.pop() if len(titles) == 1 else ""

    @property
    def root(self) -> Path:
        """The folder that most of its runs are in."""
        parents = Counter(e.run.path.parent for e in self.entries if e.run is not None)
        return max(sorted(parents), key=parents.__getitem__)

    def of(self, variants: Sequence[Variant]) -> list[Entry]:
        """The entries of these variants, each under the title that the variant has here."""
        wanted = {variant.key(): variant for variant in variants}
        found = [
            (place, dataclasses.replace(self.entries[place], variant=variant))
            for key, variant in wanted.items()
            for place in self._places.get(key, ())
        ]
        return [entry for _, entry in sorted(found, key=lambda pair: pair[0])]

    @cached_property
    def _places(self) -> dict[Hashable, list[int]]:
        """Which of the entries each variant has, by its key."""
        places: dict[Hashable, list[int]] = defaultdict(list)
        for place, entry in enumerate(self.entries):
            places[entry.variant.key()].append(place)
        return places

    def scores(
        self, variant: Variant, score: Callable[[Entry], float | None]
    ) -> dict[tuple[str, int], float]:
        """By task and seed, the scores of a variant's runs that have one."""
        found = {(entry.task, entry.seed): score(entry) for entry in self.of([variant])}
        return {place: value for place, value in found.items() if value is not None}

    def differences(
        self, first: Variant, second: Variant, score: Callable[[Entry], float | None]
    ) -> dict[tuple[str, int], float]:
        """The scores of the first variant minus the second's, where both have one."""
        ours, theirs = (self.scores(variant, score) for variant in (first, second))
        return {place: ours[place] - theirs[place] for place in ours if place in theirs}

    def finished_run(self, variant: Variant, task: str, seed: int) -> Run | None:
        """The finished run of a variant on a task, or None."""
        for entry in self.of([variant]):
            if (entry.task, entry.seed) == (task, seed) and entry.result is not None:
                return entry.run
        return None


def group_runs(runs: Iterable[Run]) -> list[RunGroup]:
    """The runs by their data: those on a data set by the digest of its data, those on two paths in
    one group.

    Where samples were chosen from the data by a protocol, it belongs to the data.

    In a group, two runs of a method are one variant if nothing but task and seed differs, and a
    variant is shown with the values in which the variants of its method differ. A run that was made
    twice counts once.
    """
    groups: dict[tuple[str | None, str, str], list[Run]] = defaultdict(list)
    for run in sorted(runs, key=lambda run: str(run.path)):
        benchmark = run.config.benchmark
        own = run.config.task is not None and run.config.task.own is not None
        digest = run.config.data_sha256 if benchmark or own else ""
        groups[benchmark, digest, run.config.protocol].append(run)
    made = [
        RunGroup(name, _entries(name, group), protocol)
        for (name, _, protocol), group in groups.items()
    ]
    order = list(BENCHMARKS)

    def place(group: RunGroup) -> tuple[int, int]:
        known = group.benchmark in order
        return order.index(str(group.benchmark)) if known else len(order), -len(group.finished)

    return sorted(made, key=place)


def split_by_setting(group: RunGroup) -> list[RunGroup]:
    """The group's runs by network and recipe, those with most finished runs first.

    Within one of these a variant is a method with its hyper-parameters, and nothing else.
    """
    settings: dict[str, list[Entry]] = defaultdict(list)
    for entry in group.entries:
        key = json.dumps([dict(entry.variant.recipe), dict(entry.variant.network)], sort_keys=True)
        bare = Variant(entry.variant.method, entry.variant.overrides, shown=entry.variant.overrides)
        settings[key].append(dataclasses.replace(entry, variant=bare))
    split = [
        RunGroup(group.benchmark, tuple(entries), group.protocol) for entries in settings.values()
    ]
    return sorted(split, key=lambda one: -len(one.finished))


def network_title(config: RunConfig) -> str:
    """What a run trains, in words."""
    if config.feature_origin:
        return f"heads on frozen features of {config.feature_origin.backbone}"
    if config.backbone != "none":
        return config.backbone
    file = config.task.data or config.task.target if config.task else None
    return f"heads on the features in {Path(file).name}" if file else "heads on features in memory"


def _entries(benchmark: str | None, runs: Sequence[Run]) -> tuple[Entry, ...]:
    tasks = _task_columns(benchmark, runs)
    variants = _variants(runs)
    entries: dict[tuple[Any, ...], Entry] = {}
    for run in runs:
        variant, task, seed = variants[run.path], tasks[run.path], run.config.seed
        entry = Entry(variant, task, seed, run.result, run.failure, run)
        key = (variant.key(), task, seed)
        if key not in entries or entries[key].result is None:
            entries[key] = entry
    columns = list(dict.fromkeys(tasks.values()))
    data_set = BENCHMARKS.get(benchmark) or _own_data_set(run.config for run in runs)
    if data_set is not None:
        known = [task for task in data_set.tasks if task in columns]
        columns = [*known, *(task for task in columns if task not in known)]

    def place(entry: Entry) -> tuple[Any, ...]:
        title = entry.variant.title
        return columns.index(entry.task), rank(entry.variant.method), title, entry.seed

    return tuple(sorted(entries.values(), key=place))


def _own_data_set(configs: Iterable[RunConfig]) -> Benchmark | None:
    """The data set that runs on users' own data share; None for paths."""
    return next((config.data_set for config in configs if config.task and config.task.own), None)


def _task_columns(benchmark: str | None, runs: Sequence[Run]) -> dict[Path, str]:
    """The column of each run; tasks of users' own data with the same name are told apart."""
    names = {run.path: run.task for run in runs}
    if benchmark is not None:
        return names
    digests: dict[str, list[str]] = defaultdict(list)
    for run in runs:
        if run.config.data_sha256 not in digests[names[run.path]]:
            digests[names[run.path]].append(run.config.data_sha256)
    columns = {}
    for run in runs:
        name = names[run.path]
        number = digests[name].index(run.config.data_sha256) + 1
        columns[run.path] = name if number == 1 else f"{name} ({number})"
    return columns


def _variants(runs: Sequence[Run]) -> dict[Path, Variant]:
    """The variant of each run, with the values in which the variants of its method differ."""
    by_method: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        by_method[run.config.method].append(run)
    variants = {}
    for group in by_method.values():
        changed = dict.fromkeys(name for run in group for name in run.config.recipe_changes)
        settings = {run.path: _settings(run.config, list(changed)) for run in group}
        names = dict.fromkeys(name for each in settings.values() for name in each)
        varied = [n for n in names if len({repr(each.get(n)) for each in settings.values()}) > 1]
        for run in group:
            mine, config = settings[run.path], run.config
            variants[run.path] = Variant(
                config.method,
                _hyperparameters(config, changed_hyperparameters),
                _recipe_changes(config),
                _network(config),
                shown={name: mine[name] for name in varied if mine.get(name) not in (None, "")},
            )
    return variants


def _recipe_changes(config: RunConfig) -> dict[str, Any]:
    """The fields that the user has set to something else than the recipe has."""
    usual = dataclasses.asdict(recipe(config.recipe_name)) if config.recipe_name in RECIPES else {}
    # Some tasks of benchmarks have learning rates of their own, which one for all replaces.
    return {
        name: value
        for name, value in config.recipe_changes.items()
        if name == "learning_rate" or value != usual.get(name, UNKNOWN)
    }


def _settings(config: RunConfig, fields: Sequence[str]) -> dict[str, Any]:
    """Everything in which two runs of one method may differ, besides task and seed.

    `fields` are those of the recipe that somebody has changed.
    """
    # Not as in the config: some tasks of benchmarks have learning rates of their own.
    known = config.recipe_name in RECIPES
    usual = dataclasses.asdict(recipe(config.recipe_name) if known else config.recipe)
    usual |= dict(config.recipe_changes)
    values = _hyperparameters(config, hyperparameters)
    return values | {name: usual[name] for name in fields} | _network(config)


def _hyperparameters(
    config: RunConfig, find: Callable[[str, Mapping[str, Any], str | None], dict[str, Any]]
) -> dict[str, Any]:
    try:
        return find(config.method, config.overrides, config.benchmark)
    except ValueError:  # a method, or a hyper-parameter, that is not known here
        return dict(config.overrides)


def _network(config: RunConfig) -> dict[str, str]:
    """What a result depends on besides method, recipe and data."""
    origin = config.feature_origin
    found = {
        "recipe": config.recipe_name,
        "backbone": config.backbone if config.backbone != "none" else "",
        "features": origin.backbone if origin else "",
        "feature weights": origin.weights_sha256[:8] if origin else "",
        "weights": config.weights_sha256[:8] if config.weights and not origin else "",
        "from": Path(config.from_run).name if config.from_run else "",
        "from weights": config.weights_sha256[:8] if config.from_run else "",
    }
    return {name: value for name, value in found.items() if value}
