"""The command that makes what is missing."""

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from equida.bench.settings import Setting
from equida.training.recipe import RECIPES


def bench_command(
    benchmark: str,
    setting: Setting | None,
    out: Path,
    *,
    methods: str = "all",
    tasks: str = "",
    sweeps: Sequence[str] = (),
    seeds: int = 3,
) -> str:
    """The `equida bench` that makes these runs, as the setting's others were made.

    Args:
        benchmark: the data set.
        setting: the runs that there are of it; None: the paper's network is proposed.
        out: the folder of runs, where the setting has none.
        methods: as for `--methods`.
        tasks: as for `--tasks`.
        sweeps: as for `--sweep`.
        seeds: how many.
    """
    words = ["equida", "bench", benchmark]
    words += _setting_flags(setting) if setting else ["--data", "DIR"]
    words += ["--methods", methods]
    words += ["--tasks", tasks] if tasks else []
    for sweep in sweeps:
        words += ["--sweep", sweep]
    words += ["--seeds", str(seeds), "--out", str(setting.root if setting else out)]
    return shlex.join(words)


def paper_command(
    roots: Sequence[Path],
    out: Path,
    *,
    select: str = "last",
    images: Mapping[str, str] | None = None,
    theory: Path | None = None,
) -> str:
    """The `equida paper` that says the same again, with these folders of images.

    >>> paper_command([Path("runs")], Path("paper"), images={"office31": "DIR"})
    'equida paper runs --out paper --images office31=DIR'
    """
    words = ["equida", "paper", *map(str, roots), "--out", str(out)]
    words += ["--select", select] if select != "last" else []
    words += ["--theory", str(theory)] if theory else []
    for name, folder in (images or {}).items():
        words += ["--images", f"{name}={folder}"]
    return shlex.join(words)


def _setting_flags(setting: Setting) -> list[str]:
    config = setting.config
    words = ["--data", config.task.data] if config.task and config.task.data else []
    if config.backbone not in ("none", "lenet"):
        words += ["--backbone", config.backbone]
    words += ["--weights", config.weights] if config.weights else []
    words += ["--skip-unreadable"] if config.task and config.task.skip_unreadable else []
    name = {"none": "features", "lenet": "digits"}.get(config.backbone, "paper")
    usual, mine = RECIPES[name], setting.recipe
    for field in dataclasses.fields(mine):
        value = getattr(mine, field.name)
        if value != getattr(usual, field.name):
            words += [f"--{field.name.replace('_', '-')}", str(value)]
    return words
