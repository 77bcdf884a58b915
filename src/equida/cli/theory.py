"""`equida theory`: recompute everything in the paper that needs no training."""

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from equida.errors import InputError
from equida.files import json_has, refuse_to_replace
from equida.paper.plotting import require_matplotlib
from equida.paper.theory.checks import QUICK, Budget, Context
from equida.paper.theory.figures import draw_surfaces, draw_times
from equida.paper.theory.study import RECORD, SECTIONS, TheoryStudy, run_theory, write_record
from equida.paper.theory.terminal import print_theory


@dataclass(frozen=True)
class Arguments:
    """Recompute every table, figure and theorem of the paper that needs no training.

    Each figure is shown beside the printed one; drawings and theory.json are written. The exit code
    is 0 if every result is as documented, and 1 if one is not. Times are reported, never judged.
    """

    out: Path = Path("theory")
    """Folder for the figures and theory.json; it is made if it does not exist."""
    seed: int = 0
    """Seed of the random starts and matrices."""
    quick: bool = False
    """Try less: the study takes seconds instead of a minute or two, but its times are too short for
    clean slopes."""


def run(arguments: Arguments) -> int:
    """Run the study, write its files and print its tables; 1 if a result is not as documented."""
    if not 0 <= arguments.seed < 2**31:
        raise InputError(f"--seed is {arguments.seed}; it must be from 0 to {2**31 - 1}")
    require_matplotlib()
    folder = _writable_folder(arguments.out)
    refuse_to_replace([folder / RECORD], lambda: json_has(folder / RECORD, "checks", "seed"))
    budget = QUICK if arguments.quick else Budget()
    with _progress() as (note, advance):
        study = run_theory(Context(budget, arguments.seed, note), advance)
        note("figures")
        study = replace(study, figures=_draw(study, folder))
        advance()
    write_record(study, folder / RECORD)
    console = Console()
    print_theory(study, console)
    files = ", ".join([*study.figures, RECORD])
    console.print(f"Written to {folder}{os.sep}: {files}", soft_wrap=True, highlight=False)
    return 0 if study.as_documented else 1


def _draw(study: TheoryStudy, folder: Path) -> list[str]:
    return [*draw_surfaces(folder), *draw_times(study.checks_of("complexity"), folder)]


def _writable_folder(path: Path) -> Path:
    """The folder, made if need be; an InputError before anything is computed if it is read-only."""
    if path.exists() and not path.is_dir():
        raise InputError(f"--out is {path}, which is a file; give a folder")
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InputError(
            f"--out is {path}, which cannot be written ({reason}); give another folder"
        ) from None
    return path


@contextlib.contextmanager
def _progress() -> Iterator[tuple[Callable[[str], None], Callable[[], None]]]:
    """A bar on standard error, and the two functions that move it."""
    columns = (
        SpinnerColumn(),
        BarColumn(20),
        TextColumn("{task.completed}/{task.total}"),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("starting", total=len(SECTIONS) + 1)
        yield (
            lambda text: progress.update(task, description=text),
            lambda: progress.advance(task),
        )
