"""`equida rerun`: do a run again from its record, and say whether the result is the same."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from equida.cli._flags import QuietFlag
from equida.errors import InputError, printable
from equida.files import temporary_folder

if TYPE_CHECKING:
    from equida.training.rerun import Repetition


@dataclass
class Arguments:
    """Do a finished run again and say whether the result is the same.

    Exit code 0: the same weights, bit for bit. 1: they differ; the figures say by how much.
    """

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of a finished run."""
    out: Path | None = None
    """Where the second run is kept; by default it is removed."""
    trust: bool = False
    """Run the code that the record of RUN names (a method or a backbone of its author's own), after
    saying what it is. Without this flag such a record is refused: its code could do anything."""
    quiet: QuietFlag = False


def run(arguments: Arguments) -> int:
    """Do it again and compare; 0 if the weights are the same."""
    from equida.progress import display_mode, say
    from equida.training.predictor import finished_run
    from equida.training.rerun import repeat_run

    finished_run(arguments.run)
    repeat = partial(repeat_run, trust=arguments.trust, say=say)
    mode = display_mode(not arguments.quiet)
    if arguments.out is not None:
        if (arguments.out / "config.json").exists():
            raise InputError(f"{arguments.out} holds a run already; choose another --out")
        return _print(repeat(arguments.run, arguments.out, mode))
    with temporary_folder() as folder:
        return _print(repeat(arguments.run, folder, mode))


def _print(made: "Repetition") -> int:
    for changed in made.code:
        print(printable(changed))
    if made.same:
        print(f"the same: {made.tensors} weight tensors are equal bit for bit")
        return 0
    causes = ", ".join(made.causes) or "with the same versions and data"
    print(printable(f"different weights ({causes}); figures then and now:"))
    for name, (then, now) in made.figures.items():
        print(f"  {name}: {then:.6g}  {now:.6g}")
    return 1
