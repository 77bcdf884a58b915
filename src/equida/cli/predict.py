"""`equida predict`: labels for images, from a finished run."""

import csv
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import tyro

from equida.errors import InputError

if TYPE_CHECKING:
    from rich.progress import Progress
    from torch import Tensor

    from equida.training.restore import Predictor

TOP = 3


@dataclass
class Arguments:
    """Label images with the classifier of a finished run.

    equida predict RUN photos/ more.jpg > labels.csv

    One line an image: its path, label, confidence, and the two next likely labels. Files that
    cannot be read are named on standard error and left out.
    """

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of a finished run."""
    images: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="IMAGES")]
    """Images and folders of images; folders are searched through."""
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    """File to write instead of standard output."""
    batch_size: int = 32
    """Images that the network sees at once."""
    accelerator: str = "auto"
    """cpu, gpu or auto."""


def run(arguments: Arguments) -> int:
    """Write the labels; 1 if not a single image could be read."""
    from equida.training.fabric import make_fabric
    from equida.training.restore import restore

    if arguments.batch_size < 1:
        raise InputError(f"batch size is {arguments.batch_size}; expected at least 1")
    paths = image_files(arguments.images)
    predictor = restore(arguments.run)
    if predictor.view is None:
        raise InputError(
            f"{arguments.run} was trained on features of unknown origin, not on images; "
            "features made by equida features can be predicted from images"
        )
    predictor.module.to(make_fabric(arguments.accelerator).device)
    readable = unreadable = 0
    with _writing(arguments.out) as stream, _counting(arguments.out) as count:
        writer = csv.writer(stream, lineterminator="\n")
        ranks = ("", "second_", "third_")[: len(predictor.classes)]
        writer.writerow(
            ["image", *(f"{r}{name}" for r in ranks for name in ("label", "confidence"))]
        )
        while batch := list(islice(paths, arguments.batch_size)):
            rows, bad = label(predictor, batch)
            writer.writerows(rows)
            stream.flush()
            readable, unreadable = readable + len(rows), unreadable + len(bad)
            for path, reason in bad:
                count.console.print(f"left out: {path}: {reason}")
            count.advance(count.task_ids[0], len(batch))
    print(f"{readable:,} images labelled, {unreadable:,} unreadable", file=sys.stderr)
    if not readable and not unreadable:
        from equida.data.images import EXTENSIONS

        kinds = " ".join(sorted(EXTENSIONS))
        print(f"there are no images in what was given; expected files {kinds}", file=sys.stderr)
    return 0 if readable else 1


def image_files(given: tuple[Path, ...]) -> Iterator[Path]:
    """The files given, and the images in the folders given, in order of their names."""
    if not given:
        raise InputError("no images are given; name files or folders behind the run")
    missing = [path for path in given if not path.exists()]
    if missing:
        raise InputError(f"{missing[0]} does not exist; expected images or folders of images")
    return _found(given)


def _found(given: tuple[Path, ...]) -> Iterator[Path]:
    from equida.data.images import is_image_name

    for path in given:
        if not path.is_dir():
            yield path
            continue
        for folder, below, names in os.walk(path):
            below.sort()
            yield from (Path(folder, name) for name in sorted(names) if is_image_name(name))


def label(
    predictor: "Predictor", paths: list[Path]
) -> tuple[list[list[str]], list[tuple[Path, str]]]:
    """A row of the table for each readable image, and the others with the reason."""
    import torch

    from equida.data import UnreadableImage, read_image

    assert predictor.view is not None
    inputs: list[Tensor] = []
    kept: list[Path] = []
    bad: list[tuple[Path, str]] = []
    for path in paths:
        try:
            inputs.append(predictor.view(read_image(path)))
            kept.append(path)
        except UnreadableImage as error:
            bad.append((path, error.reason))
    if not inputs:
        return [], bad
    probs = predictor.probs(torch.stack(inputs))
    top = probs.topk(min(TOP, probs.shape[1]))
    rows = [
        [str(path)]
        + [
            cell
            for share, index in zip(shares, indices, strict=True)
            for cell in (predictor.classes[index], f"{share:.4f}")
        ]
        for path, shares, indices in zip(
            kept, top.values.tolist(), top.indices.tolist(), strict=True
        )
    ]
    return rows, bad


def _counting(out: Path | None) -> "Progress":
    """How many images are done, on standard error; not where the labels run over the terminal."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, markup=False, emoji=False, highlight=False, soft_wrap=True)
    progress = Progress(
        SpinnerColumn(),
        TextColumn("{task.completed:,.0f} images"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal or (out is None and sys.stdout.isatty()),
    )
    progress.add_task("", total=None)
    return progress


@contextmanager
def _writing(out: Path | None) -> Iterator[IO[str]]:
    # Names of files may hold bytes that are no text; they come out as they went in.
    if out is None:
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(errors="surrogateescape")
        yield sys.stdout
        return
    try:
        with out.open("w", newline="", encoding="utf-8", errors="surrogateescape") as stream:
            yield stream
    except OSError as error:
        raise InputError(f"cannot write {out}: {error.strerror}; choose another --out") from error
