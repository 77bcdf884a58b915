"""The command line that does a run again."""

import dataclasses
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from equida.methods import METHODS, parts
from equida.training.config import RunConfig
from equida.training.recipe import recipe


def rerun_command(path: Path) -> str:
    """Do the run again from its record and compare.

    >>> rerun_command(Path("my runs/nsm"))
    "equida rerun 'my runs/nsm'"
    """
    return shlex.join(["equida", "rerun", str(path)])


def adapt_command(config: RunConfig) -> str | None:
    """The call that makes the same run; None for data that were in memory only."""
    if config.task is None:
        return None
    words = ["equida", "adapt", *_data(config), "--method", config.method]
    words += _flags(_hyperparameters(config))
    if config.backbone != "none":
        words += ["--backbone", config.backbone]
    if config.weights:
        words += ["--weights", config.weights]
    words += [*_recipe(config), "--seed", str(config.seed)]
    return shlex.join(words)


def _data(config: RunConfig) -> list[str]:
    assert config.task is not None
    where = config.task
    words = ["-d", where.benchmark] if where.benchmark else []
    words += ["--from", config.initial] if config.initial else ["-s", where.source]
    words += ["-t", where.target]
    words += ["--data", where.data] if where.data else []
    words += ["--ignore-target-labels"] if where.ignore_target_labels else []
    return words + (["--skip-unreadable"] if where.skip_unreadable else [])


def _recipe(config: RunConfig) -> list[str]:
    """The recipe by name and those of its fields that differ."""
    assert config.task is not None
    name = {"none": "features", "lenet": "digits"}.get(config.backbone, "paper")
    where = config.task
    task = f"{where.source}2{where.target}"
    usual = dataclasses.asdict(recipe(name, benchmark=where.benchmark, task=task))
    used = dataclasses.asdict(config.recipe)
    changed = {key: value for key, value in used.items() if value != usual[key]}
    return ["--recipe", name, *_flags(changed)]


def _flags(values: Mapping[str, Any]) -> list[str]:
    flags = [(f"--{name.replace('_', '-')}", str(value)) for name, value in values.items()]
    return [word for flag in flags for word in flag]


def _hyperparameters(config: RunConfig) -> dict[str, Any]:
    """Overrides by flag: in a composition each starts with the name of its part."""
    names = parts(config.method)
    if len(names) == 1:
        return dict(config.overrides)
    found = {}
    for key, value in config.overrides.items():
        part, dot, field = key.rpartition(".")
        for name in [part] if dot else names:
            if field in {f.name for f in dataclasses.fields(METHODS[name].config)}:
                found[f"{name}_{field}"] = value
    return found
