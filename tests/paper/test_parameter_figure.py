"""The figure of lambda and alpha: its points, its seeds and its remarks."""

from collections.abc import Callable
from pathlib import Path

import pytest

from equida.experiments.grid import Grid, PlannedRun
from equida.experiments.sweep import Sweep
from equida.paper.items import PaperContext
from equida.paper.parameter_figure import parameter_figure
from equida.paper.tables import LAMBDAS

Writer = Callable[..., None]
Maker = Callable[..., Grid]
ContextOf = Callable[[Path], PaperContext]


def by_seed(run: PlannedRun) -> float:
    return (0.8, 0.9, 0.9)[run.seed]


def test_all_points_of_a_panel_are_over_the_same_seeds(
    tmp_path: Path, write_grid: Writer, grid: Maker, context_of: ContextOf
) -> None:
    write_grid(tmp_path, grid(("cwsm",), ("A2W",), (0,), Sweep("trade_off", LAMBDAS)), by_seed)
    write_grid(tmp_path, grid(("cwsm",), ("A2W",), (0, 1, 2)), by_seed)
    made = parameter_figure(context_of(tmp_path), tmp_path)
    points = made.data["curves"][0]["accuracy_by_lambda"].values()
    assert [point["mean"] for point in points] == pytest.approx([80.0] * 5)
    assert [point["seeds"] for point in points] == [1] * 5
    assert made.figures == ("parameters.png", "parameters.svg")
    assert "CWSM, Office-31 A→W, 1 seed" in (tmp_path / "parameters.svg").read_text()
    assert made.status == "5 of 50, 1 seed"
    assert "CWSM on A→W: 80.0 to 80.0 % over lambda, each point over 1 seed." in made.remarks
    assert made.command.splitlines()[0].startswith("equida bench office31 ")


def test_without_a_common_seed_a_panel_has_the_seed_of_most_points(
    tmp_path: Path, write_grid: Writer, grid: Maker, context_of: ContextOf
) -> None:
    few, most = Sweep("trade_off", LAMBDAS[:1]), Sweep("trade_off", LAMBDAS[2:])
    write_grid(tmp_path, grid(("cwsm",), ("A2W",), (0,), few), by_seed)
    write_grid(tmp_path, grid(("cwsm",), ("A2W",), (1,), most), by_seed)
    made = parameter_figure(context_of(tmp_path), tmp_path)
    points = made.data["curves"][0]["accuracy_by_lambda"]
    assert points["0.5"]["mean"] is None
    assert points["2.5"]["mean"] == pytest.approx(90.0)
    assert made.status == "3 of 50, 1 seed"
