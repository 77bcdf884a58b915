"""Paired tests of the paper's claims."""

import itertools
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from equida.bench.grid import Grid, Planned
from equida.bench.settings import settings
from equida.bench.store import read_runs
from equida.bench.sweep import Sweep, Variant, variants
from equida.cli import parse
from equida.cli.bench import arguments_for
from equida.report.verdicts import FEWEST_PAIRS, Verdict, paired_test, verdicts

CHANGES = {"iterations": 4, "dropout": 0.0}


def judged(root: Path) -> dict[str, Verdict]:
    [[setting]] = settings(read_runs(root)).values()
    return {verdict.claim: verdict for verdict in verdicts(setting, "last")}


def test_the_interval_and_p_are_those_of_scipys_own_tests() -> None:
    generator = np.random.default_rng(0)
    first, second = generator.normal(0.6, 1, 18), generator.normal(0, 1, 18)
    test = paired_test((first - second).tolist())
    expected = stats.ttest_rel(first, second).confidence_interval(0.95)
    assert test.interval == pytest.approx((expected.low, expected.high))
    assert test.p == pytest.approx(stats.wilcoxon(first, second).pvalue)
    assert test.difference == pytest.approx(np.mean(first - second))


def test_a_claim_is_decided_only_by_enough_pairs_of_one_sign() -> None:
    clear = [1.0, 1.2, 0.9, 1.1, 1.3, 0.8]
    assert paired_test(clear).outcome == "holds"
    assert paired_test([-value for value in clear]).outcome == "does not hold"
    assert paired_test(clear, downward=True).outcome == "does not hold"
    assert paired_test([-value for value in clear], downward=True).outcome == "holds"
    assert paired_test(clear[:5]).outcome == "too few pairs"
    # With ties, p may come from an approximation that is too small for five pairs.
    assert paired_test([1.0] * 5).outcome == "too few pairs"
    assert paired_test([1.0, -1.0, 2.0, -2.0, 0.5, -0.4]).outcome == "undecided"
    assert paired_test([1.0]).outcome == "too few pairs"
    assert paired_test([0.0] * 6).outcome == "undecided"


def smallest_p(pairs: int) -> float:
    """Of all signs that n distinct ranks can have, the share as extreme as all of one sign."""
    ranks = range(1, pairs + 1)
    sums = [
        sum(rank for rank, sign in zip(ranks, signs, strict=True) if sign)
        for signs in itertools.product((False, True), repeat=pairs)
    ]
    return 2 * sums.count(0) / len(sums)


def test_six_pairs_are_the_fewest_that_can_decide() -> None:
    assert smallest_p(FEWEST_PAIRS - 1) == 0.0625
    assert smallest_p(FEWEST_PAIRS) == 0.03125


def test_a_sweep_on_one_task_says_that_pairs_are_too_few_and_how_to_get_more(
    tmp_path: Path, write_grid: Callable[..., None]
) -> None:
    both = tuple(variants(("cwsm", "nsm"), [Sweep("r", (0.5, 1.0))], "office31"))
    write_grid(tmp_path, Grid("office31", both, ("A2W",), (0, 1, 2), "features", CHANGES, "/f.npz"))
    verdict = judged(tmp_path)["CWSM: discriminability goes down from r=0.5 to r=1"]
    assert verdict.said == "too few pairs (3; at least 6 are needed)"
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


def constant(value: float) -> Callable[[Planned], float]:
    return lambda run: value
