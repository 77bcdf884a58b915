"""Source-free runs on targets whose labels are known: what they gain, and whether they are warned.

`python -m benchmarks source_free BENCHMARK FILE [--tasks A2W,...] [--protocols natural,...]
[--methods nsm,bnm] [--seeds 3] [--jobs 2]`, FILE with features. A run of source_only is trained on
each source; each method then adapts it to the target without source data, at equal class sizes and
at estimated shares. A run is harmed where it ends more than a point below its start. Labels are
read here, to judge the harm check; the check itself has seen none.
"""

import argparse
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from rich.console import Console
from rich.table import Table

import equida
from benchmarks.harm import POINT, Counts, counts_table
from benchmarks.rows import add_arguments
from equida.data import benchmark

PROTOCOLS = "natural,long-tail:10,long-tail:30,classes:15"
PRIORS = ("uniform", "estimate")


class Outcome(NamedTuple):
    """One source-free run."""

    protocol: str
    method: str
    prior: str
    before: float
    """Accuracy of the run that it started from, in percent."""
    after: float
    warned: bool


def run(*arguments: str) -> None:
    """Print two tables: accuracies, and how often the harm check is right."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks source_free")
    add_arguments(parser, PROTOCOLS, draws=False)
    parser.add_argument("--methods", default="bnm,cwsm,nsm", help="with commas")
    parser.add_argument("--seeds", type=int, default=1)
    given = parser.parse_args(arguments)
    if not given.file:
        print("needs features: python -m benchmarks source_free office31 FILE")
        return
    tasks = given.tasks.split(",") if given.tasks else benchmark(given.benchmark).tasks
    methods, protocols = given.methods.split(","), given.protocols.split(",")
    works = (
        delayed(_outcomes)(given.benchmark, given.file, task, protocol, methods, seed)
        for protocol, task, seed in product(protocols, tasks, range(given.seeds))
    )
    found = [outcome for outcomes in Parallel(given.jobs)(works) for outcome in outcomes]
    Console(width=120).print(_accuracies(found), _warnings(found))


def _outcomes(
    data: str, file: str, task: str, protocol: str, methods: list[str], seed: int
) -> list[Outcome]:
    source, target = task.split("2")
    shares = "" if protocol == "natural" else protocol
    adapt = partial(
        equida.adapt,
        target=target,
        dataset=data,
        data=file,
        target_shares=shares,
        classes="source",
        seed=seed,
        threads=1,
        progress=False,
    )
    with TemporaryDirectory() as folder:
        start = adapt(source, method="source_only", out=Path(folder) / "start")
        outcomes = []
        for method, prior in product(methods, PRIORS):
            made = adapt(
                None,
                method=method,
                method_params={"prior": prior},
                from_run=start,
                out=Path(folder) / f"{method}_{prior}",
            )
            assert start.accuracy is not None
            assert made.accuracy is not None
            assert made.result is not None
            harm = made.result["harm"]
            outcomes.append(
                Outcome(
                    protocol,
                    method,
                    prior,
                    100 * start.accuracy,
                    100 * made.accuracy,
                    harm["levelled"] or harm["collapsed"],
                )
            )
    return outcomes


def _accuracies(found: list[Outcome]) -> Table:
    table = Table(title="Accuracy (%), mean over tasks and seeds: equal sizes / estimated shares")
    table.add_column("target")
    table.add_column("start", justify="right")
    methods = list(dict.fromkeys(each.method for each in found))
    for method in methods:
        table.add_column(method, justify="right")
    for protocol, some in _by_protocol(found):
        cells = [
            " / ".join(
                f"{np.mean([x.after for x in some if (x.method, x.prior) == (method, prior)]):.1f}"
                for prior in PRIORS
            )
            for method in methods
        ]
        table.add_row(protocol, f"{np.mean([x.before for x in some]):.1f}", *cells)
    return table


def _warnings(found: list[Outcome]) -> Table:
    table = counts_table("The harm check of source-free runs")
    total = Counts()
    for protocol, some in _by_protocol(found):
        for prior in PRIORS:
            counts = Counts()
            for each in some:
                if each.prior == prior:
                    counts.add(each.after < each.before - POINT, each.warned)
            total += counts
            table.add_row(f"{protocol}, {prior} ({counts.runs})", *counts.cells())
    table.add_row(f"all ({total.runs})", *total.cells())
    return table


def _by_protocol(found: list[Outcome]) -> Iterator[tuple[str, list[Outcome]]]:
    for protocol in dict.fromkeys(each.protocol for each in found):
        yield protocol, [each for each in found if each.protocol == protocol]
