"""Which runs a comparison consists of, and the folder of each."""

import dataclasses
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from equida.bench.paper_tables import ELEVEN
from equida.bench.sweep import Variant, parameter_title
from equida.data.benchmarks import benchmark
from equida.errors import InputError
from equida.methods import METHODS, parts
from equida.training.config import RunConfig, TaskSource
from equida.training.recipe import recipe


@dataclass(frozen=True)
class Grid:
    """Variants of methods x tasks x seeds, on one network and one recipe."""

    benchmark: str
    variants: tuple[Variant, ...]
    tasks: tuple[str, ...]
    seeds: tuple[int, ...]
    recipe: str
    """The recipe's name; tasks may have learning rates of their own in it."""
    recipe_changes: Mapping[str, Any] = field(default_factory=dict)
    data: str | None = None
    """Folder or feature file of the benchmark."""
    backbone: str = "none"
    weights: str | None = None
    extractor: Mapping[str, str] | None = None
    """What made the features, where the data are features."""
    skip_unreadable: bool = False
    data_sha256: str = ""
    """Digest of the data, so that other data in the same place are other runs."""


@dataclass(frozen=True)
class Planned:
    """One run of a grid."""

    variant: Variant
    task: str
    seed: int
    config: RunConfig
    folder: Path

    @property
    def name(self) -> str:
        return f"{self.variant.title} {self.task} seed {self.seed}"


def plan(grid: Grid, root: Path) -> list[Planned]:
    """Every run of the grid, in the order to do them in.

    One seed is gone through before the next, so that a stopped grid leaves a whole table.
    """
    return [
        _planned(grid, variant, task, seed, root)
        for seed in grid.seeds
        for task in grid.tasks
        for variant in grid.variants
    ]


def _planned(grid: Grid, variant: Variant, task: str, seed: int, root: Path) -> Planned:
    source, target = benchmark(grid.benchmark).task(task)
    changes = {**grid.recipe_changes, **variant.recipe}
    config = RunConfig(
        variant.method,
        recipe(grid.recipe, changes, benchmark=grid.benchmark, task=task),
        TaskSource(source.key, target.key, grid.benchmark, grid.data, grid.skip_unreadable),
        overrides=dict(variant.overrides),
        backbone=grid.backbone,
        weights=grid.weights,
        extractor=grid.extractor,
        data_sha256=grid.data_sha256,
        seed=seed,
    )
    return Planned(variant, task, seed, config, root / folder_name(config, variant))


def folder_name(config: RunConfig, variant: Variant) -> str:
    """A readable name that ends in a digest of everything that the result depends on."""
    assert config.task is not None
    task = f"{config.task.source}2{config.task.target}"
    # As nothing but the changed values, so that a name does not depend on how a run was asked for.
    values = parameter_title({**variant.overrides, **variant.recipe})
    words = [str(config.benchmark), task, variant.method, values, f"seed{config.seed}"]
    readable = "-".join(word.strip(" ()").replace(", ", "-") for word in words if word)
    safe = "".join(c if c.isalnum() or c in "-_+.=" else "_" for c in readable)
    return f"{safe}-{fingerprint(config)}"


def fingerprint(config: RunConfig) -> str:
    """Ten letters that differ wherever two configs do.

    Data count by their digest, not by their place, so that they and the folder of runs can be
    moved.
    """
    assert config.task is not None
    task = dataclasses.replace(config.task, data=None if config.data_sha256 else config.task.data)
    line = dataclasses.replace(config, task=task).digest()
    return hashlib.sha256(line.encode()).hexdigest()[:10]


def chosen_methods(text: str) -> tuple[str, ...]:
    """The methods that a list with commas names: "all" are the paper's, "every" all there are.

    >>> chosen_methods("nsm, cdan+nsm")
    ('nsm', 'cdan+nsm')
    """
    names: list[str] = []
    for word in (word.strip() for word in text.split(",")):
        known = {"all": ELEVEN, "every": tuple(METHODS)}
        names += known[word] if word in known else ["+".join(parts(word))]
    return tuple(dict.fromkeys(names))


def chosen_tasks(text: str, name: str) -> tuple[str, ...]:
    """The tasks of a benchmark that a list with commas names, all without one; in its order."""
    chosen = benchmark(name)
    if not text.strip():
        return chosen.tasks
    pairs = [chosen.task(word.strip()) for word in text.split(",")]
    wanted = {f"{source.key}2{target.key}" for source, target in pairs}
    return tuple(task for task in chosen.tasks if task in wanted)


def chosen_seeds(text: str) -> tuple[int, ...]:
    """Seeds 0, 1, ... by their number, or the ones listed with commas.

    >>> chosen_seeds("3"), chosen_seeds("5,7")
    ((0, 1, 2), (5, 7))
    """
    try:
        numbers = tuple(int(word) for word in text.rstrip(",").split(","))
    except ValueError:
        numbers = (-1,)
    if min(numbers) < 0 or text.strip() == "0" or max(numbers) >= 2**31:
        raise InputError(f"--seeds is {text!r}; expected how many (3), or a list of them (0,1,7)")
    return tuple(dict.fromkeys(numbers)) if "," in text else tuple(range(numbers[0]))


def unique(planned: Sequence[Planned]) -> list[Planned]:
    """Each folder once."""
    return list({run.folder: run for run in planned}.values())
