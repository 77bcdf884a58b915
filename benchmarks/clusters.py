"""How accurate cluster labels are where classes differ in size, which takes target labels to say.

`python -m benchmarks clusters BENCHMARK FILE [--tasks Ar2Cl,...] [--protocols natural,classes:4]
[--classes 7 --draws 4] [--jobs 2]`, FILE with features. For each protocol the mean over tasks and
draws of the accuracy of labels (seed 0) for which the middle of the target's classes is found by
the source's shares (the shift is then that of the domains' means), by expected shares (as
`cluster_labels` does) and by the true ones, beside a classifier that knows the source alone.
"""

import argparse

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from benchmarks.rows import LabelledRows, add_arguments, measured
from equida.clustering import cluster_labels
from equida.evaluation.shares import shares_from_predictions, source_predictions

PROTOCOLS = "natural,long-tail:10,classes:4"
COLUMNS = ("source only", "source's shares", "expected shares", "true shares")


def run(*arguments: str) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks clusters")
    add_arguments(parser, PROTOCOLS)
    given = parser.parse_args(arguments)
    if not given.file:
        print("needs features: python -m benchmarks clusters office_home FILE --classes 7")
        return
    table = Table(title="Accuracy of cluster labels (%): mean over tasks and draws")
    table.add_column("target")
    for column in COLUMNS:
        table.add_column(column, justify="right")
    for protocol in given.protocols.split(","):
        found = measured(given, protocol, accuracies)
        table.add_row(f"{protocol} ({len(found)})", *(f"{mean:.1f}" for mean in found.mean(0)))
    Console(width=120).print(table)


def accuracies(rows: LabelledRows) -> tuple[float, ...]:
    """How many labels are right, in percent, for each column."""
    probs = source_predictions(rows.source, rows.labels, rows.target, rows.classes)
    centre = rows.source.mean(0, dtype=np.float64)
    estimate = shares_from_predictions(rows.target - centre, probs)
    same = np.bincount(rows.labels, minlength=rows.classes) / len(rows.labels)
    expected = estimate.expected_shares(rows.labels)
    x, y, others = map(torch.from_numpy, (rows.source, rows.labels, rows.target))
    found = [probs.argmax(1)]
    for shares in (same, expected, rows.true_shares):
        labels = cluster_labels(x, y, others, rows.classes, expected=torch.from_numpy(shares))
        found.append(labels.argmax(1).numpy())
    return tuple(100.0 * float(np.mean(labels == rows.truth)) for labels in found)
