"""Which runs a comparison consists of, and the folder of each."""

import dataclasses
import hashlib
import itertools
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from equida.class_shares import is_shares
from equida.data import Benchmark, Task
from equida.data.benchmarks import benchmark as find_data_set
from equida.data.spec import DataSpec
from equida.errors import InputError
from equida.evaluation.validators import VALIDATORS
from equida.methods import METHODS, STANDARD, Method, method_name, split_name
from equida.methods.auto import AUTO
from equida.runs.entry import Entry, cheap_validators, check_selection
from equida.runs.variant import Variant, parameter_title
from equida.training.aims import given_shares
from equida.training.config import RunConfig
from equida.training.recipe import recipe
from equida.training.request import benchmark_spec
from equida.training.trust import with_plugins


@dataclass(frozen=True)
class Grid:
    """Variants of methods x tasks x seeds, on one network and one recipe."""

    benchmark: str | Benchmark | None
    """The data set, by its registered name or itself; None for two paths."""
    variants: tuple[Variant, ...]
    tasks: tuple[str, ...]
    seeds: tuple[int, ...]
    recipe: str
    """The recipe's name; some tasks have learning rates of their own in it."""
    recipe_changes: Mapping[str, Any] = field(default_factory=dict)
    data: str | None = None
    """Folder or feature file of the data set."""
    backbone: str = "none"
    weights: str | None = None
    weights_sha256: str = ""
    """Digest of the file with weights, so that another file in the same place is another run."""
    feature_origin: Any = None
    """What made the features, where the data are features."""
    data_sha256: str = ""
    """Digest of the data, so that other data in the same place are other runs."""
    choice: Mapping[str, Any] = field(default_factory=dict)
    """Which classes and samples of the data set the tasks have, as `benchmark_spec` takes it."""
    pair: DataSpec | None = None
    """The data of the only task, where they are two paths."""
    images: DataSpec | None = None
    """The images that the features of `pair` were computed from."""
    labelled: bool = True
    """Whether any target has labels to be judged by."""

    @property
    def data_set(self) -> Benchmark | None:
        """The data set, registered or found on disk; None for two paths."""
        return None if self.benchmark is None else find_data_set(self.benchmark)

    def data_spec(self, task: str) -> DataSpec:
        """The data of one of its tasks."""
        if self.data_set is None:
            assert self.pair is not None
            return self.pair
        source, target = self.data_set.task(task)
        return benchmark_spec(self.data_set, source.key, target.key, self.data, **self.choice)


def check_selected(
    rows: Sequence[Variant], select: str, recipe_params: Mapping[str, Any] | None = None
) -> None:
    """Raise InputError where no row of a table has the step that is to be shown.

    Args:
        rows: of the table.
        select: which evaluation of a run counts.
        recipe_params: fields of the recipe of every row.
    """
    check_selection(select)
    if select not in VALIDATORS or not VALIDATORS[select].costly:
        return
    if not any({**(recipe_params or {}), **row.recipe}.get("keep") == select for row in rows):
        raise InputError(
            f"--select {select} is computed only where the recipe keeps the step that it picks;"
            f" add --keep {select} (in Python recipe_params={{'keep': {select!r}}}), or choose last"
            f" or one of {cheap_validators()}"
        )


def check_given_shares(rows: Sequence[Variant], task: Task) -> None:
    """Raise InputError where class shares that were given do not fit to the classes of a task."""
    for row in rows:
        for name, value in row.overrides.items():
            if name.rpartition(".")[2] == "prior" and is_shares(value):
                given_shares(name, value, task.classes)


class Stopped(Exception):
    """A run was ended before its last step, on purpose."""


@dataclass(frozen=True)
class Judge:
    """An observer that stops a run whose score falls behind; workers are sent it with the run."""

    figure: str
    """The figure of an evaluation that is the score; a costly validator is computed for it."""
    thresholds: Mapping[int, float] = field(default_factory=dict)
    """By step, the least score with which the run goes on."""

    def logged(self, step: int, terms: Mapping[str, float]) -> None:
        """Losses are not looked at."""

    def evaluated(self, step: int, figures: Mapping[str, float]) -> None:
        least, score = self.thresholds.get(step), figures.get(self.figure)
        if least is not None and score is not None and score < least:
            raise Stopped(f"stopped at step {step}: {score:.4f} is below the median, {least:.4f}")


@dataclass(frozen=True)
class PlannedRun:
    """One run of a grid."""

    variant: Variant
    task: str
    seed: int
    config: RunConfig
    folder: Path
    judge: Judge | None = None
    """Scores its evaluations and may stop it early."""

    def entry(self, result: Mapping[str, Any] | None = None, failure: str | None = None) -> Entry:
        """Its place in the table, with what is known of it by now."""
        return Entry(self.variant, self.task, self.seed, result, failure)


def plan(grid: Grid, root: Path) -> list[PlannedRun]:
    """Every run of the grid once, in the order to do them in.

    One seed is finished before the next begins, so that a grid that is stopped leaves a whole
    table.
    """
    planned = [
        _planned(grid, variant, task, seed, root)
        for seed in grid.seeds
        for task in grid.tasks
        for variant in grid.variants
    ]
    return list({run.folder: run for run in planned}.values())


def _planned(grid: Grid, variant: Variant, task: str, seed: int, root: Path) -> PlannedRun:
    changes = {**grid.recipe_changes, **variant.recipe}
    name = grid.data_set.registered_name if grid.data_set else None
    config = RunConfig(
        variant.method,
        recipe(grid.recipe, changes, benchmark=name, task=task),
        grid.data_spec(task),
        overrides=dict(variant.overrides),
        backbone=grid.backbone,
        weights=grid.weights,
        weights_sha256=grid.weights_sha256,
        feature_origin=grid.feature_origin,
        images=grid.images,
        data_sha256=grid.data_sha256,
        seed=seed,
        recipe_name=grid.recipe,
        recipe_changes=changes,
    )
    config = with_plugins(config)
    return PlannedRun(variant, task, seed, config, root / folder_name(config, variant, task))


def folder_name(config: RunConfig, variant: Variant, task: str) -> str:
    """A readable name that ends in a digest of everything that the result depends on."""
    assert config.task is not None
    # As nothing but the changed values, so that a name does not depend on how a run was asked for.
    values = parameter_title({**variant.overrides, **variant.recipe})
    words = [
        config.data_set.name if config.data_set else "",
        task,
        config.task.protocol,
        variant.method,
        values,
    ]
    words.append(f"seed{config.seed}")
    readable = "-".join(word.strip(" ()").replace(", ", "-") for word in words if word)
    safe = "".join(c if c.isalnum() or c in "-_+.=" else "_" for c in readable)
    return f"{safe}-{fingerprint(config)}"


def fingerprint(config: RunConfig) -> str:
    """Ten letters that differ wherever the results of two configs could.

    Data and weights count by their digests, not by their places, so that they and the folder of
    runs can be moved. The names are those of the first version of config.json: they must never
    change, or a grid would be done again after an update.
    """
    assert config.task is not None
    task = dataclasses.replace(config.task, own=None)
    if config.data_sha256:
        task = dataclasses.replace(task, data=None, lists=None)
    if config.data_sha256 and config.data_set is None:
        source, target = (os.path.basename(path) for path in (task.source, task.target))
        task = dataclasses.replace(task, source=source, target=target)
    origin = config.feature_origin
    identity: dict[str, Any] = {
        "method": config.method,
        "recipe": dataclasses.asdict(config.recipe),
        "task": task.identity() | _own_identity(config),
        "overrides": dict(config.overrides),
        "backbone": config.backbone,
        "weights": None if config.weights_sha256 else config.weights,
        "weights_sha256": config.weights_sha256,
        "extractor": dataclasses.asdict(origin) if origin else None,
        "images": None,
        "data_sha256": config.data_sha256,
        "initial": config.from_run,
        "seed": config.seed,
    }
    if config.plugins:
        identity["plugins"] = config.plugin_digests()
    line = json.dumps(identity, sort_keys=True)
    return hashlib.sha256(line.encode()).hexdigest()[:10]


def _own_identity(config: RunConfig) -> dict[str, Any]:
    """What a result depends on of a user's data set, besides the data themselves."""
    assert config.task is not None
    own = config.task.own
    if own is None:
        return {}
    pair = [own.domain(key) for key in (config.task.source, config.task.target)]
    samples = [[domain.place, domain.test] for domain in pair]
    return {"own": {"classes": own.classes, "metric": own.metric, "samples": samples}}


def chosen_methods(given: str | Sequence[str | type[Method]]) -> tuple[str, ...]:
    """The methods that are named: "all" are the standard eleven, "every" all that there are.

    A class stands for itself. Installed plug-ins that cannot be imported are left out of "every".

    >>> chosen_methods("nsm, cdan+nsm"), chosen_methods(["bnm"])
    (('nsm', 'cdan+nsm'), ('bnm',))
    """
    words = given.split(",") if isinstance(given, str) else given
    if any(AUTO in map(str.strip, word.split("+")) for word in words if isinstance(word, str)):
        raise InputError(
            f"{AUTO!r} is a search among methods and stands in no table: equida adapt --method"
            f" {AUTO}; to search among methods of your choice: equida tune --method nsm,bnm"
        )
    names: list[str] = []
    for word in words:
        if isinstance(word, str) and word.strip() == "all":
            names += STANDARD
        elif isinstance(word, str) and word.strip() == "every":
            names += [method_name(name) for name in METHODS if METHODS.get(name) is not None]
        else:
            names.append("+".join(split_name(method_name(word))))
    if not names:
        raise InputError(
            f"methods is {given!r}; expected at least one, such as nsm (see: equida list methods)"
        )
    return tuple(dict.fromkeys(names))


def chosen_tasks(given: str | Sequence[str], name: str | Benchmark) -> tuple[str, ...]:
    """The tasks of a data set that are named, all of them without a name; in its order."""
    chosen = find_data_set(name)
    if not given:
        return chosen.tasks
    words = given.split(",") if isinstance(given, str) else given
    named = [word.strip() for word in words if word.strip()]
    if not named:
        raise InputError(
            f"--tasks is {given!r}, which names none; expected some of {', '.join(chosen.tasks)},"
            " or leave it out for all of them"
        )
    pairs = [chosen.task(word) for word in named]
    wanted = {f"{source.key}2{target.key}" for source, target in pairs}
    return tuple(task for task in chosen.tasks if task in wanted)


MOST_SEEDS = 1000


def chosen_seeds(given: str | int | Sequence[int]) -> tuple[int, ...]:
    """Seeds 0, 1, ... by their number, or the ones that are listed.

    >>> chosen_seeds("3"), chosen_seeds(2), chosen_seeds("5,7"), chosen_seeds([9])
    ((0, 1, 2), (0, 1), (5, 7), (9,))
    """
    counted = isinstance(given, int) or (isinstance(given, str) and "," not in given)
    words = given.rstrip(",").split(",") if isinstance(given, str) else given
    try:
        listed: Iterable[Any] = [words] if isinstance(words, int) else words
        numbers = tuple(int(word) for word in itertools.islice(listed, MOST_SEEDS + 1))
    except ValueError:
        numbers = ()
    if not numbers or min(numbers) < 0 or max(numbers) >= 2**31 or (counted and numbers == (0,)):
        raise InputError(f"--seeds is {given!r}; expected how many (3), or a list of them (0,1,7)")
    if len(numbers) > MOST_SEEDS:
        raise InputError(f"--seeds lists more than {MOST_SEEDS} seeds; list fewer")
    if not counted:
        return tuple(dict.fromkeys(numbers))
    if numbers[0] > MOST_SEEDS:
        raise InputError(
            f"--seeds is {given}, which asks for that many seeds; expected at most {MOST_SEEDS}."
            f" For this one seed, add a comma: --seeds {given},"
        )
    return tuple(range(numbers[0]))
