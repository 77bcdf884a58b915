"""Runs that can be compared: the same data set, network and recipe, whatever the method."""

import dataclasses
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from equida.bench.results import Record
from equida.bench.store import Run
from equida.bench.sweep import Variant, normal_overrides
from equida.training.config import RunConfig
from equida.training.recipe import PAPER_LEARNING_RATES, RECIPES, Recipe

Key = tuple[Any, ...]


@dataclass(frozen=True)
class Setting:
    """The runs of one data set on one network and one recipe."""

    benchmark: str
    runs: tuple[Run, ...]

    @property
    def config(self) -> RunConfig:
        """Of any of its runs: but for method, task and seed they are the same."""
        return self.runs[0].config

    @property
    def recipe(self) -> Recipe:
        """Without the learning rates that tasks have of their own."""
        return _common(self.config)

    @property
    def root(self) -> Path:
        """The folder that most of its runs are in."""
        parents = [run.path.parent for run in self.runs]
        return max(sorted(set(parents)), key=parents.count)

    @property
    def network(self) -> str:
        """What is trained, in words."""
        config = self.config
        if config.extractor:
            return f"heads on frozen features of {config.extractor['backbone']}"
        if config.backbone == "none":
            name = Path(config.task.data).name if config.task and config.task.data else "a file"
            return f"heads on the features in {name}"
        return config.backbone

    @property
    def finished(self) -> int:
        return sum(run.result is not None for run in self.runs)

    @cached_property
    def places(self) -> list[tuple[Key, str, int, Run]]:
        """Every run with its variant's key, task and seed."""
        return [
            (variant_of(run.config).key(), task_of(run.config), run.config.seed, run)
            for run in self.runs
        ]

    def records(self, variants: Sequence[Variant]) -> list[Record]:
        """What is known of these variants, each under the name that it has here."""
        wanted = {variant.key(): variant for variant in variants}
        found: dict[Key, Record] = {}
        for key, task, seed, run in self.places:
            if key in wanted and (run.result is not None or (key, task, seed) not in found):
                record = Record(wanted[key], task, seed, run.result, run.failure)
                found[key, task, seed] = record
        return list(found.values())

    def run(self, variant: Variant, task: str, seed: int) -> Run | None:
        """The finished run of a variant on a task, or None."""
        for *place, run in self.places:
            if place == [variant.key(), task, seed] and run.result is not None:
                return run
        return None

    def seeds(self, variant: Variant, task: str) -> list[int]:
        """The seeds whose run of a variant on a task is finished."""
        records = self.records([variant])
        return sorted({r.seed for r in records if r.task == task and r.result is not None})


def settings(runs: Iterable[Run]) -> dict[str, list[Setting]]:
    """By benchmark, the settings of its runs, the one with most finished runs first."""
    groups: dict[Key, list[Run]] = {}
    for run in runs:
        if run.config.benchmark and run.config.initial is None:
            groups.setdefault(_key(run.config), []).append(run)
    found: dict[str, list[Setting]] = {}
    for group in groups.values():
        name = str(group[0].config.benchmark)
        found.setdefault(name, []).append(Setting(name, tuple(group)))
    for each in found.values():
        each.sort(key=lambda setting: -setting.finished)
    return found


def variant_of(config: RunConfig) -> Variant:
    """The method of a run, with the hyper-parameters that differ from its defaults."""
    changed = normal_overrides(config.method, config.overrides, config.benchmark)
    return Variant(config.method, changed, shown=changed)


def task_of(config: RunConfig) -> str:
    assert config.task is not None
    return f"{config.task.source}2{config.task.target}"


def _key(config: RunConfig) -> Key:
    extractor = json.dumps(config.extractor, sort_keys=True)
    data = config.task.data if config.task and not config.extractor else None
    recipe = json.dumps(dataclasses.asdict(_common(config)), sort_keys=True)
    return config.benchmark, recipe, config.backbone, extractor, data


def _common(config: RunConfig) -> Recipe:
    place = (str(config.benchmark), task_of(config))
    if config.recipe.learning_rate == PAPER_LEARNING_RATES.get(place):
        usual = RECIPES["paper"].learning_rate
        return dataclasses.replace(config.recipe, learning_rate=usual)
    return config.recipe
