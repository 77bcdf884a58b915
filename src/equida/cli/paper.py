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
    from equida.files import json_has, refuse_to_replace
    from equida.paper.document import paper_json, paper_markdown, print_paper
    from equida.paper.study import paper_study
    from equida.progress import safe_console
    from equida.runs.entry import check_selection
    from equida.runs.read import read_runs
    from equida.training.folder import RunFolder

    if not arguments.runs:
        raise InputError("missing: RUNS, a folder made by equida bench; see equida paper --help")
    check_selection(arguments.select)
    refuse_to_replace(
        [arguments.out / name for name in ("paper.md", "paper.json")],
        lambda: json_has(arguments.out / "paper.json", "select", "verdicts"),
    )
    runs = [run for root in arguments.runs for run in read_runs(root)]
    folder = RunFolder(arguments.out)
    images = image_folders(arguments.images)
    with safe_console(stderr=True).status("reading runs") as status:
        study = paper_study(
            runs,
            arguments.runs,
            arguments.out,
            select=arguments.select,
            images=images,
            theory=theory_file(arguments.theory),
            note=status.update,
        )
    folder.write_text("paper.md", paper_markdown(study))
    folder.write_text("paper.json", paper_json(study))
    console = safe_console()
    print_paper(study, console if console.is_terminal else safe_console(width=160))
    figures = [file for item in study.items for file in item.figures]
    files = ", ".join(["paper.md", "paper.json", *figures])
    print_lines(f"written to {arguments.out}{os.sep}: {files}")
    return 0


def image_folders(texts: tuple[str, ...]) -> dict[str, str]:
    """The folders of images by benchmark."""
    from equida.data import benchmark

    found = {}
    for text in texts:
        name, equals, folder = text.partition("=")
        if not equals or not Path(folder).is_dir():
            raise InputError(f"--images {text!r}: expected DATASET=DIR, where DIR is a folder")
        found[benchmark(name).name] = folder
    return found


def theory_file(path: Path | None) -> Path | None:
    """The file theory.json itself, where its folder is given."""
    return path / "theory.json" if path is not None and path.is_dir() else path
