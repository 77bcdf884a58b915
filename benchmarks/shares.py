"""How far estimated class shares are from the true ones, which takes target labels to say.

`python -m benchmarks shares BENCHMARK FILE [--tasks A2W,...] [--protocols natural,long-tail:30]
[--classes 7 --draws 4] [--jobs 2]`, FILE with features. For each protocol the mean over tasks and
draws of half the sum of |q - true share|: equal shares, the look that every run takes, and what
`prior="estimate"` aims at.
"""

import argparse
from collections.abc import Iterator

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.rows import LabelledRows, add_arguments, measured
from equida.clustering import estimate_aim
from equida.evaluation.shares import estimate_shares

PROTOCOLS = "natural,long-tail:10,long-tail:30,classes:15"
COLUMNS = ("equal shares", "look of every run", "prior=estimate")


def run(*arguments: str) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks shares")
    add_arguments(parser, PROTOCOLS)
    given = parser.parse_args(arguments)
    if not given.file:
        print("needs features: python -m benchmarks shares office31 FILE")
        return
    table = Table(
        title="Half the sum of |q - true share|: mean over targets (the worst, less equal shares)"
    )
    table.add_column("target")
    for column in COLUMNS:
        table.add_column(column, justify="right")
    for protocol in given.protocols.split(","):
        table.add_row(protocol, *_cells(measured(given, protocol, distances)))
    Console(width=120).print(table)


def distances(rows: LabelledRows) -> tuple[float, float, float]:
    """How far each estimate is from the true shares of one target."""
    look = estimate_shares(rows.source, rows.labels, rows.target, rows.classes)
    aim = estimate_aim(rows.source, rows.labels, rows.target, rows.classes, look)
    equal, looked, aimed = (
        0.5 * float(np.abs(q - rows.true_shares).sum())
        for q in (np.full(rows.classes, 1 / rows.classes), look.shares, aim.shares)
    )
    return equal, looked, aimed


def _cells(found: np.ndarray) -> Iterator[str]:
    """A mean for each column, and how far the worst task is above equal shares."""
    yield f"{found[:, 0].mean():.3f}"
    for column in (1, 2):
        worst = (found[:, column] - found[:, 0]).max()
        yield f"{found[:, column].mean():.3f} ({worst:+.3f})"
