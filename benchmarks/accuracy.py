"""What equida's loop reaches on real features, beside the bare loop with the same mathematics.

`python -m benchmarks.accuracy FILE [SEEDS [METHOD ...]]`, FILE with the features of Office-31. Mean
over the six tasks, last step, no selection. The two loops draw other random numbers: their figures
should differ by no more than seeds do.
"""

import os
import statistics
import sys
from pathlib import Path

import torch
from joblib import Parallel, delayed
from rich.console import Console
from rich.table import Table

from benchmarks.bare import LOSSES, Loss, bare, rows
from equida.data import load_task
from equida.data.benchmarks.office31 import OFFICE31
from equida.training.config import RunConfig
from equida.training.loop import train
from equida.training.recipe import Recipe

KNOWN: dict[str, tuple[float, Loss | None]] = {"source_only": (0.0, None), **LOSSES}
JOBS = os.cpu_count() or 1


def both(file: str, method: str, task: str, seed: int) -> tuple[float, float]:
    """The target accuracy in percent that the bare loop and ours end with."""
    torch.set_num_threads(1)
    source, target = OFFICE31.task(task)
    opened, recipe = load_task("office31", source.key, target.key, file), Recipe()
    torch.manual_seed(seed)
    *_, network = bare(opened, recipe, *KNOWN[method])
    with torch.inference_mode():
        predicted = network.eval()(rows(opened.target)).argmax(1)
    right = predicted == torch.from_numpy(opened.target.labels)
    ours = train(RunConfig(method, recipe, seed=seed), opened).result["last"]["accuracy"]
    return 100 * float(right.float().mean()), 100 * float(ours)


def run(file: str = "", seeds: int = 3, methods: tuple[str, ...] = tuple(KNOWN)) -> None:
    """Print both means with their deviations over seeds, and their difference."""
    if not file:
        print("needs the features of Office-31: python -m benchmarks.accuracy FILE")
        return
    table = Table(title=f"Office-31, {Path(file).name}, mean of six tasks, {seeds} seeds")
    for column in ("method", "bare loop", "equida", "difference", "standard error"):
        table.add_column(column, justify="left" if column == "method" else "right")
    with Parallel(JOBS) as parallel:
        for method in methods:
            places = [(task, seed) for seed in range(seeds) for task in OFFICE31.tasks]
            found = parallel(delayed(both)(file, method, *place) for place in places)
            table.add_row(method, *_cells(found, len(OFFICE31.tasks)))
    Console(width=120).print(table)


def _cells(found: list[tuple[float, float]], tasks: int) -> list[str]:
    bares, ours = (
        [statistics.fmean(values[i : i + tasks]) for i in range(0, len(values), tasks)]
        for values in zip(*found, strict=True)
    )
    shown = [f"{statistics.fmean(each):.2f}" for each in (bares, ours)]
    difference = statistics.fmean(ours) - statistics.fmean(bares)
    if len(ours) == 1:
        return [*shown, f"{difference:+.2f}", ""]
    spreads = [statistics.stdev(each) for each in (bares, ours)]
    error = (sum(spread**2 for spread in spreads) / len(ours)) ** 0.5
    cells = [f"{mean} ±{spread:.2f}" for mean, spread in zip(shown, spreads, strict=True)]
    return [*cells, f"{difference:+.2f}", f"{error:.2f}"]


if __name__ == "__main__":
    given = sys.argv[1:]
    run(
        given[0] if given else "",
        int(given[1]) if given[1:] else 3,
        tuple(given[2:]) or tuple(KNOWN),
    )
