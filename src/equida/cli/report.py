"""`equida report`: the results of a folder of runs on one page."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from equida.cli._shared_flags import QuietFlag
from equida.errors import counted, printable


@dataclass
class Arguments:
    """Write one self-contained page about all runs: tables, curves, mistakes.

    equida report RUNS --out report.html
    """

    runs: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUNS")]
    """Folder of runs made by equida bench or equida adapt, or the folder of one run."""
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])] = Path("report.html")
    """The file to write."""
    title: str = ""
    """Head of the page; by default the folder's name."""
    images: Path | None = None
    """Folder of the images that features were computed from; the page then shows them."""
    maps: int = 12
    """How many runs get a t-SNE map, which takes a few seconds each; 0 for none."""
    trust: bool = False
    """Import the methods that the records of runs name by package.module:Class, after saying so;
    the page then has their descriptions. Without this flag it has their names."""
    quiet: QuietFlag = False


def run(arguments: Arguments) -> int:
    """Write the page and say what is on it."""
    from equida.report.page import write_page

    content = write_page(
        arguments.runs,
        arguments.out,
        title=arguments.title,
        images=arguments.images,
        maps=arguments.maps,
        trust=arguments.trust,
        progress=False if arguments.quiet else None,
    )
    size = arguments.out.stat().st_size / 1e6
    finished, unfinished = len(content.finished), len(content.unfinished)
    text = f"{arguments.out}: {counted(finished, 'finished run')}"
    text += f", {unfinished} unfinished or failed" if unfinished else ""
    print(printable(f"{text}, {size:.1f} MB"))
    return 0
