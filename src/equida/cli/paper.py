"""`equida paper`: every table and figure of the paper beside the results of runs."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from equida.cli._print import print_lines
from equida.errors import InputError


@dataclass(frozen=True)
class Arguments:
    """Recompute every table and figure of the paper from runs, each beside the printed one.

    The document says which of them are missing, which command makes them, and whether the paper's
    claims hold in these runs. It is written as paper.md and paper.json, with the figures.
    """

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUNS...")]
    """Folders of runs, made by equida bench."""
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("paper")
    """Folder to write into."""
    select: str = "last"
    """Which step of a run counts: last, oracle (uses target labels), or a validator."""
    images: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """DATASET=DIR: the folder with the images of a data set, for the figure of samples."""
    theory: Path | None = None
    """theory.json of equida theory, or its folder; by default it is looked for in ./theory and in
    the folders of runs."""


def run(arguments: Arguments) -> int:
    """Write the document and print its summary."""
    from equida.paper.document import print_paper
    from equida.paper.write import DOCUMENT, RECORD, write_paper
    from equida.progress import safe_console

    study = write_paper(
        arguments.runs,
        arguments.out,
        select=arguments.select,
        images=dict(map(_image_folder, arguments.images)),
        theory=arguments.theory,
    )
    console = safe_console()
    print_paper(study, console if console.is_terminal else safe_console(width=160))
    figures = [file for item in study.items for file in item.figures]
    print_lines(f"written to {arguments.out}{os.sep}: {', '.join([DOCUMENT, RECORD, *figures])}")
    return 0


def _image_folder(text: str) -> tuple[str, str]:
    """The name of a data set and the folder of its images."""
    name, equals, folder = text.partition("=")
    if not equals:
        raise InputError(f"--images {text!r}: expected DATASET=DIR, where DIR is a folder")
    return name, folder
