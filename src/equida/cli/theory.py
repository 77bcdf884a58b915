"""`equida theory`: recompute everything in the paper that needs no training."""

import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from equida.cli._print import print_lines
from equida.errors import InputError
from equida.files import json_has, refuse_to_replace, write_errors
from equida.paper.plotting import require_matplotlib
from equida.paper.theory.checks import QUICK, Budget, Context
from equida.paper.theory.figures import draw_surfaces, draw_times
from equida.paper.theory.study import RECORD, SECTIONS, TheoryStudy, run_theory, write_record
from equida.paper.theory.terminal import print_theory
from equida.progress import Bar, display_mode, safe_console


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
    folder = arguments.out
    _make_writable(folder)
    refuse_to_replace([folder / RECORD], lambda: json_has(folder / RECORD, "checks", "seed"))
    budget = QUICK if arguments.quick else Budget()
    with Bar(display_mode(None), "theory", len(SECTIONS) + 1) as bar:
        context = Context(budget, arguments.seed, lambda text: bar.update(note=text))
        study = run_theory(context, lambda: bar.advance(1))
        bar.update(note="figures")
        study = replace(study, figures=_draw(study, folder))
    write_record(study, folder / RECORD)
    print_theory(study, safe_console())
    print_lines(f"Written to {folder}{os.sep}: {', '.join([*study.figures, RECORD])}")
    return 0 if study.as_documented else 1


def _draw(study: TheoryStudy, folder: Path) -> list[str]:
    return [*draw_surfaces(folder), *draw_times(study.checks_of("complexity"), folder)]


def _make_writable(folder: Path) -> None:
    """Make the folder; an InputError before anything is computed if it is read-only."""
    with write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
