"""The study of the paper's theory, written into a folder: what `equida theory` does."""

import tempfile
from dataclasses import replace
from pathlib import Path

from equida.errors import InputError
from equida.fields import checked_value
from equida.files import json_has, refuse_to_replace, write_errors
from equida.paper.plotting import require_matplotlib
from equida.paper.theory.checks import QUICK, Budget, Context
from equida.paper.theory.figures import draw_surfaces, draw_times
from equida.paper.theory.study import RECORD, SECTIONS, TheoryStudy, run_theory, write_record
from equida.progress import Bar, display_mode


def write_theory(
    out: str | Path = "theory",
    *,
    seed: int = 0,
    quick: bool = False,
    progress: bool | None = None,
) -> TheoryStudy:
    """Recompute every table, figure and theorem of the paper that needs no training.

    Args:
        out: folder for the figures and theory.json; it is made if it does not exist.
        seed: of the random starts and matrices.
        quick: try less: the study takes seconds instead of a minute or two, but its times are too
            short for clean slopes.
        progress: None shows it in a terminal or notebook; True and False force it.
    """
    if not 0 <= checked_value(seed, int, "seed") < 2**31:
        raise InputError(f"seed is {seed}; it must be from 0 to {2**31 - 1}")
    require_matplotlib()
    folder = checked_value(out, Path, "out")
    _make_writable(folder)
    refuse_to_replace([folder / RECORD], lambda: json_has(folder / RECORD, "checks", "seed"))
    with Bar(display_mode(progress), "theory", len(SECTIONS) + 1) as bar:
        context = Context(QUICK if quick else Budget(), seed, lambda text: bar.update(note=text))
        study = run_theory(context, lambda: bar.advance(1))
        bar.update(note="figures")
        study = replace(study, figures=_draw(study, folder))
    write_record(study, folder / RECORD)
    return study


def _draw(study: TheoryStudy, folder: Path) -> list[str]:
    return [*draw_surfaces(folder), *draw_times(study.checks_of("complexity"), folder)]


def _make_writable(folder: Path) -> None:
    """Make the folder; an InputError before anything is computed if it is read-only."""
    with write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
