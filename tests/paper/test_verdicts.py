"""The paper's claims, judged by made-up runs."""

import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from equida.cli._parse import parse
from equida.cli.bench import arguments_for
from equida.experiments.grid import Grid, PlannedRun
from equida.experiments.sweep import Sweep, variants
from equida.paper.items import choose_groups
from equida.paper.verdicts import Verdict, paper_verdicts
from equida.runs.read import read_runs
from equida.runs.variant import Variant

CHANGES = {"iterations": 4, "dropout": 0.0}


def judged(root: Path) -> dict[str, Verdict]:
    used, left_out = choose_groups(read_runs(root))
    [group] = used.values()
    assert not left_out
    return {verdict.claim: verdict for verdict in paper_verdicts(group, "last")}


def test_a_sweep_on_one_task_says_that_pairs_are_too_few_and_how_to_get_more(
    tmp_path: Path, write_grid: Callable[..., None]
) -> None:
    both = tuple(variants(("cwsm", "nsm"), [Sweep("r", (0.5, 1.0))], "office31"))
    write_grid(tmp_path, Grid("office31", both, ("A2W",), (0, 1, 2), "features", CHANGES, "/f.npz"))
    verdict = judged(tmp_path)["CWSM: discriminability goes down from r=0.5 to r=1"]
    assert verdict.outcome_phrase == "too few pairs (3; at least 6 are needed)"
    assert verdict.test is not None
    assert verdict.test.difference == pytest.approx(-0.1)
    assert (verdict.tasks_for, verdict.tasks) == (1, 1)
    words = shlex.split(verdict.command)[2:]
    arguments: Any = parse(arguments_for(words), "bench", words)
    assert (arguments.methods, arguments.sweep, arguments.tasks) == ("cwsm,nsm", ("r=0.5,1",), "")
    assert arguments.seeds == "3"
    assert arguments.training.iterations == 4


def test_one_task_needs_a_seed_for_each_pair(
    tmp_path: Path, write_grid: Callable[..., None]
) -> None:
    both = tuple(variants(("cwsm", "nsm"), [Sweep("r", (0.5, 1.0))], "visda2017"))
    task = ("Synthetic2Real",)
    write_grid(tmp_path, Grid("visda2017", both, task, (0,), "features", CHANGES, "/f.npz"))
    command = judged(tmp_path)["NSM: equity goes up from r=0.5 to r=1"].command
    assert "--seeds 6" in command


def test_the_best_of_the_others_is_by_the_mean_of_tasks_not_of_runs(
    tmp_path: Path, write_grid: Callable[..., None]
) -> None:
    hard = {"dan": 0.5, "dann": 0.1, "nsm": 0.9}
    easy = {"dan": 0.6, "dann": 0.9, "nsm": 0.9}
    # Means of tasks: DAN 55 %, DANN 50 %; means of runs: DAN 52.5 %, DANN 70 %.
    seeds: dict[str, tuple[Sequence[int], Sequence[int]]] = {
        "dan": ((0, 1, 2), (0,)), "dann": ((0,), (0, 1, 2)), "nsm": ((0,), (0,)),
    }  # fmt: skip
    for method, by_task in seeds.items():
        for task, values, count in zip(("A2W", "D2W"), (hard, easy), by_task, strict=True):
            grid = Grid(
                "office31", (Variant(method),), (task,), tuple(count), "features", CHANGES, "/f.npz"
            )
            write_grid(tmp_path, grid, constant(values[method]))
    assert "NSM is more accurate than DAN, the best here of the others compared" in judged(tmp_path)


def constant(value: float) -> Callable[[PlannedRun], float]:
    return lambda run: value
