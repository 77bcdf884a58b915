"""`equida rerun`: do a run again from its config alone, and say whether the result is the same."""

import dataclasses
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from equida.errors import InputError

if TYPE_CHECKING:
    from equida.training.config import RunConfig, TaskSource
    from equida.training.folder import RunFolder


@dataclass
class Arguments:
    """Do a finished run again and say whether the result is the same.

    Exit code 0: the same weights, bit for bit. 1: they differ; the figures say by how much.
    """

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of a finished run."""
    out: Path | None = None
    """Where the second run is kept; by default it is removed."""
    quiet: bool = False
    """No progress bar."""


def run(arguments: Arguments) -> int:
    """Compare the two."""
    from equida.training.folder import RunFolder
    from equida.training.restore import finished

    first = finished(arguments.run)
    if arguments.out is not None:
        if (arguments.out / "config.json").exists():
            raise InputError(f"{arguments.out} holds a run already; choose another --out")
        return compare(first, RunFolder(arguments.out), arguments.quiet)
    with tempfile.TemporaryDirectory() as folder:
        return compare(first, RunFolder(Path(folder)), arguments.quiet)


def moved_along(where: "TaskSource", folder: Path) -> "TaskSource":
    """The task with the features that `adapt --features` wrote beside the run, also where the run
    has been copied or moved since."""
    paths = {name: getattr(where, name) or "" for name in ("source", "target", "data")}
    beside = {name: folder.absolute() / Path(path).name for name, path in paths.items() if path}
    found: dict[str, Any] = {
        name: str(file)
        for name, file in beside.items()
        if file.is_file() and file.name.startswith("features-") and not Path(paths[name]).exists()
    }
    return dataclasses.replace(where, **found)


def compare(first: "RunFolder", second: "RunFolder", quiet: bool) -> int:
    """Do it again in `second`; 0 if the weights are the same."""
    from equida.cli.watch import watch
    from equida.training.config import RunConfig
    from equida.training.launch import launch

    recorded = first.read_json("config.json")
    config = dataclasses.replace(RunConfig.from_json(recorded), weights_sha256="")
    if config.task is None:
        raise InputError(f"{first.path} was trained on data in memory; it cannot be done again")
    config = dataclasses.replace(config, task=moved_along(config.task, first.path))
    ran = recorded.get("processes") or {}
    launch(
        config,
        second.path,
        devices=ran.get("devices", 1),
        num_nodes=ran.get("num_nodes", 1),
        accelerator=ran.get("accelerator", "auto"),
        threads=ran.get("threads", 0),
        watch=partial(watch, folder=second.path, tensorboard=False, quiet=quiet),
    )
    old, new = (folder.load_tensors("model.safetensors") for folder in (first, second))
    same = old.keys() == new.keys() and all(old[name].equal(new[name]) for name in old)
    if same:
        print(f"the same: {len(old)} weight tensors are equal bit for bit")
        return 0
    was, now = (folder.read_json("result.json")["last"] for folder in (first, second))
    why = causes(recorded, second.read_json("config.json"), config)
    print(f"different weights ({why or 'with the same versions and data'}); figures then and now:")
    for name in was:
        print(f"  {name}: {was[name]:.6g}  {now.get(name, float('nan')):.6g}")
    return 1


def causes(then: Mapping[str, Any], now: Mapping[str, Any], config: "RunConfig") -> str:
    """What is not as it was at the first run: versions, processes, data."""
    from equida.training.identity import data_sha256

    changed = [
        f"{name} {value} became {now[part].get(name)}"
        for part in ("versions", "processes")
        for name, value in (then.get(part) or {}).items()
        if value != now[part].get(name)
    ]
    where = config.images or config.task
    if config.data_sha256 and where and data_sha256(where) != config.data_sha256:
        changed.append("the data have changed")
    return ", ".join(changed)
