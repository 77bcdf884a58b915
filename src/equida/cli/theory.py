"""`equida theory`: recompute everything in the paper that needs no training."""

import os
from dataclasses import dataclass
from pathlib import Path

from equida.cli._print import print_lines


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
    from equida.paper.theory.study import RECORD
    from equida.paper.theory.terminal import print_theory
    from equida.paper.theory.write import write_theory
    from equida.progress import safe_console

    study = write_theory(arguments.out, seed=arguments.seed, quick=arguments.quick)
    print_theory(study, safe_console())
    print_lines(f"Written to {arguments.out}{os.sep}: {', '.join([*study.figures, RECORD])}")
    return 0 if study.as_documented else 1
