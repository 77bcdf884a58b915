from collections.abc import Callable
from pathlib import Path

import pytest

from equida.bench.store import read_runs
from equida.report.page.comparison import comparison, headline, selection_tables
from equida.report.page.grid import arrange

Writer = Callable[..., Path]


def test_cells_are_means_over_seeds_with_their_spread(write: Writer, runs: Path) -> None:
    for seed, right in enumerate((42, 45, 51)):
        write(seed=seed, right=right)
    (table,) = comparison(arrange(read_runs(runs)), "last")
    cell = table.rows[0].cells[0]
    # 70, 75 and 85 %: mean 76.67; deviations -6.67, -1.67, 8.33; variance 116.67 / 2.
    assert cell.text == "76.7"
    assert cell.spread_text == "7.6"
    assert [line.split(",")[0] for line in cell.lines] == [
        "seed 0: 70.00 %",
        "seed 1: 75.00 %",
        "seed 2: 85.00 %",
    ]
    assert table.caption == "Digits: target accuracy in %, last step, 3 seeds"


def test_best_and_second_are_marked_and_ties_share_the_mark(write: Writer, runs: Path) -> None:
    for method, right in (("source_only", 30), ("bnm", 51), ("cwsm", 51), ("nsm", 48)):
        write(method=method, right=right)
    (table,) = comparison(arrange(read_runs(runs)), "last")
    assert [row.cells[0].rank for row in table.rows] == [0, 1, 1, 2]


def test_a_mean_over_tasks_needs_every_task(write: Writer, runs: Path) -> None:
    write(method="bnm", right=30)
    write(method="bnm", right=60, source="U", target="M")
    write(method="nsm", right=57)
    bnm, nsm = comparison(arrange(read_runs(runs)), "last")[0].rows
    assert bnm.cells[2].text == "75.0"
    assert [cell.text for cell in nsm.cells] == ["95.0", "–", "–", "–", "–"]
    assert nsm.cells[2].lines == ("1 of 2 tasks have this figure",)


def test_the_selection_decides_which_step_is_shown(write: Writer, runs: Path) -> None:
    write(right=45)
    grid = arrange(read_runs(runs))
    assert comparison(grid, "entropy")[0].rows[0].cells[0].text == "65.0"
    (table,) = selection_tables(grid)
    assert table.columns == ("last step", "source accuracy", "entropy", "oracle")
    assert [cell.text for cell in table.rows[0].cells] == ["75.0", "75.0", "65.0", "75.0"]


def test_without_labels_equity_is_there_and_accuracy_is_not(write: Writer, runs: Path) -> None:
    write(labelled=False)
    grid = arrange(read_runs(runs))
    cells = comparison(grid, "last")[0].rows[0].cells
    assert cells[0].text == cells[1].text == "–"
    assert cells[0].lines[0].startswith("seed 0: no target labels, equity ")
    assert cells[2].value == pytest.approx(grid.finished[0].result["last"]["equity"])
    assert selection_tables(grid) == []


def test_the_headline_names_the_best_system_and_its_gain(write: Writer, runs: Path) -> None:
    assert headline(arrange(read_runs(runs))) == []
    for method, right in (("source_only", 30), ("nsm", 48)):
        write(method=method, right=right)
    assert headline(arrange(read_runs(runs))) == [
        "Digits: NSM has the best accuracy, 80.0 % on M2U, 30.0 points above source only "
        "(last step)."
    ]


def test_the_headline_says_so_where_adaptation_does_not_pay(write: Writer, runs: Path) -> None:
    for method, right in (("source_only", 48), ("nsm", 30)):
        write(method=method, right=right)
    (line,) = headline(arrange(read_runs(runs)))
    assert "Source only has the best accuracy, 80.0 % on M2U, and no adaptation" in line
