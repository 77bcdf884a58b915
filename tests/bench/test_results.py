"""Means and deviations over seeds, averages over tasks, and what a selection picks."""

import statistics
from typing import Any

import pytest

from equida.bench.results import Figures, Record, by_column, percent, recalls
from equida.bench.sweep import Variant
from equida.data.benchmarks import BENCHMARKS
from equida.errors import InputError

NSM = Variant("nsm")


def result(accuracy: float, **more: Any) -> dict[str, Any]:
    last = {"step": 9.0, "accuracy": accuracy, "equity": 0.7, "discriminability": 0.9}
    picks = {
        "oracle": last | {"accuracy": accuracy + 0.1},
        "bnm": last | {"accuracy": accuracy - 0.1},
    }
    return {"metric": "accuracy", "last": last, "picks": picks, "kept": "last"} | more


def test_a_figure_has_a_deviation_from_two_seeds_on() -> None:
    values = {0: 1.0, 1: 4.0, 2: 7.0}
    assert Figures(values).mean == statistics.mean(values.values())
    assert Figures(values).deviation == statistics.stdev(values.values())
    assert Figures({0: 1.0}).deviation is None
    assert Figures().mean is None


def test_a_selection_picks_its_evaluation() -> None:
    run = result(0.5)
    assert [percent(run, s) for s in ("last", "oracle", "bnm")] == pytest.approx([50, 60, 40])
    assert percent(run, "entropy") is None
    with pytest.raises(InputError, match="--select is 'best'"):
        percent(run, "best")


def test_the_average_is_over_the_seeds_that_have_every_task() -> None:
    records = [
        Record(NSM, "A2W", 0, result(0.5)),
        Record(NSM, "D2W", 0, result(0.7)),
        Record(NSM, "A2W", 1, result(0.6)),
        Record(NSM, "D2W", 1, failure="no memory"),
    ]
    columns = by_column(records, BENCHMARKS["office31"], ("A2W", "D2W"), "last")
    assert columns["A2W"].by_seed == pytest.approx({0: 50.0, 1: 60.0})
    assert columns["Avg"].by_seed == pytest.approx({0: 60.0})
    assert (columns["A2W"].failed, columns["D2W"].failed, columns["Avg"].failed) == (
        False,
        True,
        True,
    )
    assert columns["Equity"].mean == pytest.approx(0.7)


def test_visda_is_shown_by_class_with_the_mean_of_the_classes() -> None:
    confusion = [[1 if a == b else 0 for b in range(12)] for a in range(12)]
    confusion[0][:2] = [1, 3]
    run = result(0.9, metric="mean_class_accuracy", confusion=confusion)
    run["last"]["mean_class_accuracy"] = (11 + 0.25) / 12
    records = [Record(NSM, "Synthetic2Real", 0, run)]
    columns = by_column(records, BENCHMARKS["visda2017"], ("Synthetic2Real",), "last")
    assert list(columns)[:3] == ["plane", "bcycl", "bus"]
    assert (columns["plane"].mean, columns["bcycl"].mean) == (25.0, 100.0)
    assert columns["Avg"].mean == pytest.approx(100 * (11 + 0.25) / 12)
    assert recalls(run, "oracle") is None
