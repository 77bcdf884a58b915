"""`equida paper`: every table and figure of the paper beside what runs give."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from equida.errors import InputError


@dataclass(frozen=True)
class Arguments:
    """Recompute every table and figure of the paper from runs, each beside the printed one.

    Says which are missing and the command that makes them, and whether the paper's claims hold
    here. Writes paper.md, paper.json and the figures.
    """

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUNS...")]
    """Folders of runs, made by equida bench."""
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("paper")
    """Folder to write into."""
    select: str = "last"
    """Which step of a run counts: last, oracle (uses target labels), or a validator."""
    images: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """DATASET=DIR: where the images of a data set are, for the figure of samples."""
    theory: Path | None = None
    """theory.json, or its folder, as equida theory writes it; without, it is looked for in ./theory
    and in the folders of runs."""


def run(arguments: Arguments) -> int:
    """Write the document and print its summary."""
    from equida.bench.results import SELECTIONS
    from equida.bench.store import read_runs
    from equida.report.document import paper_json, paper_markdown, print_study
    from equida.report.study import study
    from equida.training.folder import RunFolder

    if not arguments.runs:
        raise InputError("missing: RUNS, a folder made by equida bench; see equida paper --help")
    if arguments.select not in SELECTIONS:
        known = ", ".join(SELECTIONS)
        raise InputError(f"--select is {arguments.select!r}; expected one of {known}")
    runs = [run for root in arguments.runs for run in read_runs(root)]
    folder = RunFolder(arguments.out)
    images = image_folders(arguments.images)
    with Console(stderr=True).status("reading runs") as status:
        made = study(
            runs,
            arguments.runs,
            arguments.out,
            select=arguments.select,
            images=images,
            theory=theory_file(arguments.theory),
            note=status.update,
        )
    folder.write_text("paper.md", paper_markdown(made))
    folder.write_text("paper.json", paper_json(made))
    console = Console()
    print_study(made, console if console.is_terminal else Console(width=160))
    figures = [file for exhibit in made.exhibits for file in exhibit.figures]
    files = ", ".join(["paper.md", "paper.json", *figures])
    console.print(f"written to {arguments.out}{os.sep}: {files}", soft_wrap=True, markup=False)
    return 0


def image_folders(texts: tuple[str, ...]) -> dict[str, str]:
    """The folders by benchmark."""
    from equida.data import benchmark

    found = {}
    for text in texts:
        name, equals, folder = text.partition("=")
        if not equals or not Path(folder).is_dir():
            raise InputError(f"--images {text!r}: expected DATASET=DIR, where DIR is a folder")
        found[benchmark(name).name] = folder
    return found


def theory_file(path: Path | None) -> Path | None:
    """The record itself."""
    return path / "theory.json" if path is not None and path.is_dir() else path
