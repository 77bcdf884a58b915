"""`equida report`: the results of a folder of runs on one page."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from equida.cli._flags import QuietFlag
from equida.errors import InputError, printable


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


def _trust(runs: Path) -> None:
    """Permit the methods that the records of these runs name."""
    from equida.progress import say
    from equida.runs.read import read_runs
    from equida.training.trust import named_code, settle_trust

    for found in read_runs(runs):
        code = {name: kind for name, kind in named_code(found.config).items() if kind == "method"}
        settle_trust(found.path / "config.json", code, True, say)


def run(arguments: Arguments) -> int:
    """Write the page and say what is on it."""
    from equida.progress import Bar, display_mode
    from equida.report.page import write_page

    if arguments.maps < 0:
        raise InputError(f"maps is {arguments.maps}; it must be at least 0")
    if arguments.images is not None and not arguments.images.is_dir():
        raise InputError(f"{arguments.images} is not a folder; expected one of images")
    if arguments.out.is_dir():
        raise InputError(f"{arguments.out} is a folder; expected a file such as report.html")
    if arguments.trust:
        _trust(arguments.runs)
    with Bar(display_mode(False if arguments.quiet else None), "reading runs") as bar:

        def advance(number: int, total: int) -> None:
            if bar.total is None:
                bar.start("drawing runs", total)
            bar.update(number)

        content = write_page(
            arguments.runs,
            arguments.out,
            title=arguments.title,
            images=arguments.images,
            maps=arguments.maps,
            advance=advance,
        )
    size = arguments.out.stat().st_size / 1e6
    finished, unfinished = len(content.finished), len(content.unfinished)
    text = f"{arguments.out}: {finished} finished run{'' if finished == 1 else 's'}"
    text += f", {unfinished} unfinished or failed" if unfinished else ""
    print(printable(f"{text}, {size:.1f} MB"))
    return 0
