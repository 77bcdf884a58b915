"""`equida predict`: labels for images or rows of features, from a finished run."""

import contextlib
import csv
import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import tyro

from equida.cli._shared_flags import TrustFlag
from equida.errors import counted, printable

if TYPE_CHECKING:
    from equida.training.predictor import Predictions


@dataclass
class Arguments:
    """Label images, or rows of a feature file, with the classifier of a finished run.

    equida predict RUN photos/ more.jpg > labels.csv
    equida predict RUN features.npz:webcam > labels.csv

    The table has one line for each sample: its path, label and confidence, and the two next likely
    labels. Confidences are calibrated on held-out source samples where the run has done that; on a
    target unlike the source they are optimistic. Images that cannot be read are named on standard
    error and left out; so are rows with values that are not finite, with --skip-unreadable.
    """

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of a finished run."""
    images: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="IMAGES")]
    """Images, folders of images, which are searched through, and image lists (.txt); or feature
    files like the one that the run was trained on (FILE:DOMAIN picks one of several domains)."""
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    """File to write instead of standard output."""
    batch_size: int = 32
    """How many images the network sees at once."""
    skip_unreadable: bool = False
    """Leave out rows of feature files with values that are not finite, instead of stopping."""
    accelerator: str = "auto"
    """cpu, gpu or auto."""
    trust: TrustFlag = False


def run(arguments: Arguments) -> int:
    """Write the labels; 1 if not a single sample could be read."""
    from equida.progress import Bar, display_mode, say
    from equida.training.predictor import (
        check_table_place,
        files_to_label,
        joined,
        restore,
        rows_given,
    )
    from equida.training.processes import make_fabric

    if arguments.out is not None:
        check_table_place(arguments.out)
    tables = [rows_given(path) for path in arguments.images]
    images = [path for path, rows in zip(arguments.images, tables, strict=True) if rows is None]
    files = files_to_label(images) if images or not tables else None
    predictor = restore(arguments.run, trust=arguments.trust, say=say)
    predictor.module.to(make_fabric(arguments.accelerator).device)
    size = arguments.batch_size
    # Whatever does not fit the run is said here, before a table is begun or written over.
    parts = [
        _named(
            predictor.predict_rows(rows, size, skip_unreadable=arguments.skip_unreadable),
            f"{path} " if len(tables) > 1 and rows.paths is None else "",
        )
        for path, rows in zip(arguments.images, tables, strict=True)
        if rows is not None
    ]
    if files is not None:
        parts.append(predictor.predict_batches(files, size))
    readable = unreadable = 0
    what = "sample" if len(images) < len(tables) else "image"
    # A table in a terminal is for the eye: no bar beside it, and nothing that a terminal obeys.
    on_terminal = arguments.out is None and sys.stdout.isatty()
    with (
        _output(arguments.out) as stream,
        Bar(display_mode(False if on_terminal else None), "predict", unit=f"{what}s") as bar,
    ):
        writer = csv.writer(stream, lineterminator="\n")
        for batch in chain.from_iterable(parts):
            if len(batch) and not readable:  # no head for a table without rows: it looks complete
                writer.writerow(joined([], predictor.classes).columns)
            rows = batch.rows()
            writer.writerows([[*map(printable, row)] for row in rows] if on_terminal else rows)
            stream.flush()
            readable, unreadable = readable + len(batch), unreadable + len(batch.unreadable)
            for path, reason in batch.unreadable:
                bar.say(f"left out: {path}: {reason}")
            bar.advance(len(batch) + len(batch.unreadable))
    print(f"{counted(readable, what)} labelled, {unreadable:,} unreadable", file=sys.stderr)
    if not readable and not unreadable:
        from equida.data.images import EXTENSIONS

        kinds = " ".join(sorted(EXTENSIONS))
        print(f"no images were found in what was given; expected files {kinds}", file=sys.stderr)
    return 0 if readable else 1


def _named(batches: "Iterator[Predictions]", file: str) -> "Iterator[Predictions]":
    """The predictions, with the file before the name of each row."""
    for batch in batches:
        yield replace(
            batch,
            paths=tuple(f"{file}{name}" for name in batch.paths),
            unreadable=tuple((f"{file}{name}", reason) for name, reason in batch.unreadable),
        )


def _output(out: Path | None) -> contextlib.AbstractContextManager[IO[str]]:
    from equida.training.predictor import open_table

    if out is not None:
        return open_table(out)
    # Names of files may hold bytes that are not text; they come out as they went in.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="surrogateescape")
    return contextlib.nullcontext(sys.stdout)
