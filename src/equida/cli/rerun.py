"""`equida rerun`: do a run again from its config alone, and say whether the result is the same."""

import dataclasses
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from equida.errors import InputError

if TYPE_CHECKING:
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


def compare(first: "RunFolder", second: "RunFolder", quiet: bool) -> int:
    """Do it again in `second`; 0 if the weights are the same."""
    from equida.cli.watch import watch
    from equida.training.config import RunConfig, versions
    from equida.training.launch import launch

    recorded = first.read_json("config.json")
    config = dataclasses.replace(RunConfig.from_json(recorded), weights_sha256="")
    if config.task is None:
        raise InputError(f"{first.path} was trained on data in memory; it cannot be done again")
    launch(
        config,
        second.path,
        watch=partial(watch, folder=second.path, tensorboard=False, quiet=quiet),
    )
    old, new = (folder.load_tensors("model.safetensors") for folder in (first, second))
    same = old.keys() == new.keys() and all(old[name].equal(new[name]) for name in old)
    if same:
        print(f"the same: {len(old)} weight tensors are equal bit for bit")
        return 0
    was, now = (folder.read_json("result.json")["last"] for folder in (first, second))
    changed = {k: (v, versions()[k]) for k, v in recorded["versions"].items() if v != versions()[k]}
    why = ", ".join(f"{name} {a} became {b}" for name, (a, b) in changed.items())
    print(f"different weights ({why or 'with the same versions'}); figures then and now:")
    for name in was:
        print(f"  {name}: {was[name]:.6g}  {now.get(name, float('nan')):.6g}")
    return 1
