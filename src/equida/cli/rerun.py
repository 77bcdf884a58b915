"""`equida rerun`: do a run again from its record, and say whether the result is the same."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from equida.cli._shared_flags import QuietFlag, TrustFlag


@dataclass
class Arguments:
    """Do a finished run again and say whether the result is the same.

    Exit code 0: the same weights, bit for bit. 1: they differ; the figures say by how much.
    """

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of a finished run."""
    out: Path | None = None
    """Where the second run is kept; by default it is removed."""
    trust: TrustFlag = False
    quiet: QuietFlag = False


def run(arguments: Arguments) -> int:
    """Do it again and compare; 0 if the weights are the same."""
    from equida.cli._print import print_lines
    from equida.progress import display_mode, say
    from equida.training.rerun import repeat_run

    mode = display_mode(not arguments.quiet)
    made = repeat_run(arguments.run, arguments.out, mode, trust=arguments.trust, say=say)
    print_lines(*str(made).splitlines())
    return 0 if made.same else 1
