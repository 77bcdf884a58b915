"""How far estimated class shares are from the true ones, which takes target labels to say.

`python -m benchmarks shares BENCHMARK FILE [--tasks A2W,...] [--protocols natural,long-tail:30]
[--classes 7 --draws 4] [--jobs 2]`, FILE with features. For each protocol the mean over tasks and
draws of half the sum of |q - true share|, where q are equal shares, what classifier and clusters
agree on, (1 - a)/C + a (q1 + q2)/2, the same with cluster labels where a is a half or less, and
what `prior="estimate"` aims at, in which classifier and clusters also vote.
"""

import argparse
from collections.abc import Iterator

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.rows import LabelledRows, add_arguments, measured
from equida.clustering import estimate_aim

PROTOCOLS = "natural,long-tail:10,long-tail:30,classes:15"
COLUMNS = ("equal shares", "(1 - a)/C + a q", "and cluster labels", "and the vote: prior=estimate")


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


def distances(rows: LabelledRows) -> tuple[float, ...]:
    """How far each estimate is from the true shares of one target."""
    aim = estimate_aim(rows.source, rows.labels, rows.target, rows.classes)
    equal = np.full(rows.classes, 1 / rows.classes)
    agreed = (1.0 - aim.agreement) * equal + aim.agreement * aim.mean_shares
    with_labels = agreed if aim.label_shares is None else aim.shares
    return tuple(
        0.5 * float(np.abs(q - rows.true_shares).sum())
        for q in (equal, agreed, with_labels, aim.shares)
    )


def _cells(found: np.ndarray) -> Iterator[str]:
    """A mean for each column, and how far the worst task is above equal shares."""
    yield f"{found[:, 0].mean():.3f}"
    for column in range(1, len(COLUMNS)):
        worst = (found[:, column] - found[:, 0]).max()
        yield f"{found[:, column].mean():.3f} ({worst:+.3f})"
