"""The exhibits: which runs they are made from, and what they say of how many."""

from collections.abc import Callable
from pathlib import Path

import pytest

from equida.bench.grid import Grid, Planned
from equida.bench.paper_tables import LAMBDAS
from equida.bench.settings import settings
from equida.bench.store import read_runs
from equida.bench.sweep import Sweep, variants
from equida.data.benchmarks import BENCHMARKS
from equida.report.equity import equity_table
from equida.report.exhibit import Exhibit, Material
from equida.report.exhibits import result_tables
from equida.report.formats import beside, markdown
from equida.report.parameters import Curve, parameter_figure

TASKS = BENCHMARKS["office31"].tasks
Writer = Callable[..., None]


def grid(
    methods: tuple[str, ...], tasks: tuple[str, ...], seeds: tuple[int, ...], *sweeps: Sweep
) -> Grid:
    found = tuple(variants(methods, sweeps, "office31"))
    changes = {"iterations": 4, "dropout": 0.0}
    return Grid("office31", found, tasks, seeds, "features", changes, "/f.npz")


def material(root: Path) -> Material:
    return Material({name: found[0] for name, found in settings(read_runs(root)).items()}, root)


def test_the_table_of_r_is_over_the_tasks_that_all_rows_have(
    tmp_path: Path, write_grid: Writer
) -> None:
    write_grid(tmp_path, grid(("cwsm", "nsm"), TASKS, (0, 1, 2)))
    write_grid(tmp_path, grid(("cwsm", "nsm"), ("A2W",), (0, 1, 2), Sweep("r", (1.0,))))
    made = equity_table(material(tmp_path))
    [table] = made.tables
    equity = [line.cells["Equity"] for line in table.lines]
    # On A→W the three seeds are 0, 0.009 and 0.003 above 0.7, and above 0.8 for r = 1.
    assert [cell.ours.mean for cell in equity] == pytest.approx([0.704, 0.804, 0.704, 0.804])
    assert "on Office-31, A→W, heads" in table.caption
    assert "over 3 seeds" in table.caption
    assert "Over what all rows with runs have: A→W; seed(s) 0, 1, 2." in table.notes
    assert [beside(cell) for cell in equity] == ["0.719", "0.818", "0.774", "0.805"]
    assert any("of Office-Home, Ar→Cl" in note for note in table.notes)
    assert made.status == "missing"


def test_rows_of_r_without_a_common_seed_are_not_compared(
    tmp_path: Path, write_grid: Writer
) -> None:
    write_grid(tmp_path, grid(("nsm",), ("A2W",), (0,)))
    write_grid(tmp_path, grid(("nsm",), ("A2W",), (1,), Sweep("r", (1.0,))))
    [table] = equity_table(material(tmp_path)).tables
    assert {cell.ours.count for line in table.lines for cell in line.cells.values()} == {0}
    assert any("no task and seed in common" in note for note in table.notes)


def test_the_papers_equity_is_shown_without_any_runs(tmp_path: Path) -> None:
    made = equity_table(Material({}, tmp_path))
    assert "| *paper: CWSM (r=0.5)* | 0.719 | 0.933 |" in markdown(made.tables[0])
    assert "| *paper: NSM (r=1)* | 0.805 | 0.785 |" in markdown(made.tables[0])
    assert made.command.startswith("equida bench office_home ")


def by_seed(run: Planned) -> float:
    return (0.8, 0.9, 0.9)[run.seed]


def drawn(curves: list[Curve]) -> list[str]:
    return [f"{curve.method} {len(curve.seeds)}" for curve in curves if curve.drawn]


def test_all_points_of_a_panel_are_over_the_same_seeds(tmp_path: Path, write_grid: Writer) -> None:
    write_grid(tmp_path, grid(("cwsm",), ("A2W",), (0,), Sweep("trade_off", LAMBDAS)), by_seed)
    write_grid(tmp_path, grid(("cwsm",), ("A2W",), (0, 1, 2)), by_seed)
    made = parameter_figure(material(tmp_path), drawn)
    points = made.data["curves"][0]["accuracy_by_lambda"].values()
    assert [point["mean"] for point in points] == pytest.approx([80.0] * 5)
    assert [point["seeds"] for point in points] == [1] * 5
    assert made.figures == ("cwsm 1",)
    assert made.status == "5 of 50, 1 seed"
    assert "CWSM on A→W: 80.0 to 80.0 % over lambda, each point over 1 seed." in made.remarks
    assert made.command.splitlines()[0].startswith("equida bench office31 ")


def test_without_a_common_seed_a_panel_has_the_seed_of_most_points(
    tmp_path: Path, write_grid: Writer
) -> None:
    few, most = Sweep("trade_off", LAMBDAS[:1]), Sweep("trade_off", LAMBDAS[2:])
    write_grid(tmp_path, grid(("cwsm",), ("A2W",), (0,), few), by_seed)
    write_grid(tmp_path, grid(("cwsm",), ("A2W",), (1,), most), by_seed)
    made = parameter_figure(material(tmp_path), drawn)
    points = made.data["curves"][0]["accuracy_by_lambda"]
    assert points["0.5"]["mean"] is None
    assert points["2.5"]["mean"] == pytest.approx(90.0)
    assert made.status == "3 of 50, 1 seed"


def test_the_status_counts_seeds(tmp_path: Path, write_grid: Writer) -> None:
    write_grid(tmp_path, grid(("nsm",), TASKS, (0,)))
    write_grid(tmp_path, grid(("nsm",), ("A2W",), (1, 2)))
    office = result_tables(material(tmp_path))[0]
    assert office.status == "7 of 77, 1 to 3 seeds"
    assert not Exhibit("", "", 77, 77, seeds=(1, 3)).complete
    assert Exhibit("", "", 77, 77, seeds=(1, 3)).status == "77 of 77, 1 to 3 seeds"
    assert Exhibit("", "", 77, 77, seeds=(3, 3)).status == "complete, 3 seeds"
    assert Exhibit("", "", 0, 77).status == "missing"


def test_a_table_with_too_few_seeds_says_how_to_make_the_rest(
    tmp_path: Path, write_grid: Writer
) -> None:
    write_grid(tmp_path, grid(("cwsm", "nsm"), TASKS, (0,)))
    office = result_tables(material(tmp_path))[0]
    assert office.remarks == ("The paper's figures are means of three seeds.",)
    assert "--seeds 3" in office.command
