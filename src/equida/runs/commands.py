"""The commands that repeat a run, and those that make runs that are missing."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from equida.data.spec import DataSpec
from equida.fields import exact_text, specs
from equida.methods import find_field, method_parts
from equida.methods.aiming import PRIOR_FIELDS
from equida.plugins import is_code, short_name
from equida.runs.group import RunGroup
from equida.training.config import RunConfig
from equida.training.recipe import Recipe, default_recipe, hyperparameter_flag, recipe
from equida.training.trust import named_code


def rerun_command(path: Path, config: RunConfig) -> str:
    """The `equida rerun` that repeats a run from its record and compares the results.

    >>> rerun_command(Path("my runs/nsm"), RunConfig("nsm", Recipe()))
    "equida rerun 'my runs/nsm'"
    """
    trust = ["--trust"] if named_code(config, images=False) else []
    return shlex.join(["equida", "rerun", str(path), *trust])


def adapt_command(config: RunConfig) -> str | None:
    """The `equida adapt` that makes the same run; None where the data were only in memory."""
    if config.task is None:
        return None
    data = config.task
    words = ["equida", "adapt"]
    words += ["-d", data.benchmark] if data.benchmark else []
    words += ["-d", data.data or ""] if data.own else []
    words += ["--from", config.from_run] if config.from_run else ["-s", data.source]
    words += ["-t", data.target]
    words += ["--data", data.data] if data.data and not data.own else []
    words += ["--classes", data.classes] if data.own or data.classes != "source" else []
    words += ["--ignore-target-labels"] if data.ignore_target_labels else []
    words += ["--skip-unreadable"] if data.skip_unreadable else []
    words += ["--lists", data.lists] if data.lists else []
    words += _shares_flags(data)
    words += ["--method", config.method, *_hyperparameter_flags(config)]
    if not config.from_run:  # whose network it is
        words += ["--backbone", config.backbone] if config.backbone != "none" else []
        words += ["--weights", config.weights] if config.weights else []
    words += _recipe_flags(config)
    return shlex.join([*words, "--seed", str(config.seed)])


def bench_command(
    benchmark: str,
    setting: RunGroup | None,
    out: Path,
    *,
    methods: str,
    tasks: str = "",
    sweeps: Sequence[str],
    seeds: int,
) -> str:
    """The `equida bench` that makes these runs in the same way as the other runs of the setting.

    Args:
        benchmark: the data set.
        setting: the runs on that data set; None where there are none: the defaults are proposed.
        out: the folder of runs, where there is no setting.
        methods: as for `--methods`; so are tasks and sweeps.
    """
    words = ["equida", "bench", benchmark]
    words += _setting_flags(setting) if setting else ["--data", "DIR"]
    words += ["--methods", methods]
    words += ["--tasks", tasks] if tasks else []
    for sweep in sweeps:
        words += ["--sweep", sweep]
    words += ["--seeds", str(seeds), "--out", str(setting.root if setting else out)]
    return shlex.join(words)


def _setting_flags(setting: RunGroup) -> list[str]:
    config = setting.config
    words = ["--data", config.task.data] if config.task and config.task.data else []
    words += ["--lists", config.task.lists] if config.task and config.task.lists else []
    if config.backbone not in ("none", "lenet"):
        words += ["--backbone", config.backbone]
    words += ["--weights", config.weights] if config.weights else []
    words += ["--skip-unreadable"] if config.task and config.task.skip_unreadable else []
    return [*words, "--recipe", config.recipe_name, *_flags(config.recipe_changes)]


def _shares_flags(data: DataSpec) -> list[str]:
    """The flags of a protocol; shares that came from a file stand in the flag themselves."""
    pairs = (("--source-shares", data.source_shares), ("--target-shares", data.target_shares))
    return [word for flag, text in pairs if text for word in (flag, text)]


def setting_flags(config: RunConfig) -> str:
    """The flags that give another run the same method and hyper-parameters.

    >>> setting_flags(RunConfig("nsm", Recipe(), overrides={"r": 1.0}))
    '--method nsm --r 1'
    """
    return shlex.join(["--method", config.method, *_hyperparameter_flags(config)])


def _hyperparameter_flags(config: RunConfig) -> list[str]:
    """The method's hyper-parameters that the run has changed."""
    parts = method_parts(config.method)
    words = []
    for key, value in config.overrides.items():
        part, _, name = key.rpartition(".")
        # Code that a record names is not imported to find out what it has.
        named = [each for each in parts if part in (each, short_name(each))]
        if named and is_code(named[0]):
            words += _flag(hyperparameter_flag(parts, named[0], name), value)
        elif len(parts) == 1 and is_code(parts[0]):
            words += _flag(hyperparameter_flag(parts, parts[0], key), value)
        elif len(parts) > 1 and key in PRIOR_FIELDS:
            words += _flag(key, value)
        else:
            found, spec = find_field(config.method, key)
            words += _flag(hyperparameter_flag(parts, found, spec.name), value)
    return words


def _recipe_flags(config: RunConfig) -> list[str]:
    """The recipe's name, and the fields in which the run differs from it."""
    data, name = config.task, config.recipe_name or default_recipe(config.backbone)
    task = f"{data.source}2{data.target}" if data else None
    named = recipe(name, benchmark=config.benchmark, task=task)
    used = {field: getattr(config.recipe, field) for field in specs(Recipe)}
    changed = {field: v for field, v in used.items() if v != getattr(named, field)}
    return ["--recipe", name, *_flags(changed)]


def _flags(values: Mapping[str, Any]) -> list[str]:
    return [word for name, value in values.items() for word in _flag(name, value)]


def _flag(name: str, value: Any) -> list[str]:
    text, flag = exact_text(value), f"--{name.replace('_', '-')}"
    # The parser would take a value with a leading dash for another flag.
    return [f"{flag}={text}"] if text.startswith("-") else [flag, text]
