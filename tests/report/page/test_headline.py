from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from equida.report.page.content import arrange
from equida.report.page.headline import headlines
from equida.runs.read import read_runs

Writer = Callable[..., Path]


def said(runs: Path) -> list[str]:
    return headlines(arrange(read_runs(runs)))


def write_all(write: Writer, rights: Mapping[str, Sequence[int]], **more: str) -> None:
    """One run for each number of right predictions, out of 60, with the seeds in order."""
    for method, numbers in rights.items():
        for seed, right in enumerate(numbers):
            write(method=method, seed=seed, right=right, **more)


def test_one_seed_ranks_nothing(write: Writer, runs: Path) -> None:
    assert said(runs) == []
    write_all(write, {"source_only": [30], "nsm": [48]})
    assert said(runs) == [
        "Digits: adaptation gains up to 30.0 points over source only on M→U (NSM, 80.0 %), "
        "at the last step; one seed does not rank systems."
    ]


def test_it_says_so_where_adaptation_does_not_pay(write: Writer, runs: Path) -> None:
    write_all(write, {"source_only": [48], "nsm": [30]})
    (line,) = said(runs)
    assert "no adaptation does better than source only, 80.0 % on M→U" in line


def test_one_seed_without_source_only_gives_the_range(write: Writer, runs: Path) -> None:
    write_all(write, {"bnm": [48], "nsm": [30]})
    (line,) = said(runs)
    assert "accuracies range from 50.0 to 80.0 % on M→U" in line


def test_a_few_pairs_decide_nothing_however_far_apart(write: Writer, runs: Path) -> None:
    write_all(write, {"source_only": [30, 30, 30], "bnm": [42, 43, 44], "nsm": [51, 52, 53]})
    assert said(runs) == [
        "Digits: NSM has the highest mean accuracy at the last step, 86.7 ± 1.7 % on M→U, "
        "36.7 points above source only; 3 pairs of runs are too few to tell it apart from "
        "Source only and BNM."
    ]


def test_tasks_and_seeds_are_pairs_that_decide(write: Writer, runs: Path) -> None:
    # Against source only all eight pairs are far ahead; against BNM they go either way.
    one = {"source_only": [30, 31, 32, 31], "bnm": [50, 53, 48, 52], "nsm": [52, 51, 53, 52]}
    write_all(write, one)
    write_all(write, one, source="U", target="M")
    (line,) = said(runs)
    assert "over 2 tasks, 35.0 points above source only, and is ahead of Source only" in line
    assert line.endswith("; 8 pairs of runs cannot tell it apart from BNM.")


def test_the_best_of_many_is_held_to_more(write: Writer, runs: Path) -> None:
    """Six pairs have p = 0.031 at least, which is not below 0.05 / 3 pairs of systems. Before, the
    best of eleven equal systems was called ahead of some other one two times in three."""
    one = {"source_only": [30, 31, 32], "bnm": [40, 43, 38], "nsm": [52, 51, 53]}
    write_all(write, one)
    write_all(write, one, source="U", target="M")
    (line,) = said(runs)
    assert line.endswith("; 6 pairs of runs cannot tell it apart from Source only and BNM.")


def test_a_clear_lead_is_called_one(write: Writer, runs: Path) -> None:
    write_all(write, {"source_only": [30, 31, 30, 32, 31, 30], "nsm": [51, 53, 50, 52, 52, 51]})
    (line,) = said(runs)
    assert line.endswith("above source only, and is ahead of all others.")


def test_systems_that_share_no_seed_cannot_be_compared(write: Writer, runs: Path) -> None:
    for seed in (0, 1):
        write(method="bnm", seed=seed, right=30)
        write(method="nsm", seed=seed + 10, right=48)
    (line,) = said(runs)
    assert line.endswith("; 0 pairs of runs are too few to tell it apart from BNM.")
