from collections.abc import Callable
from pathlib import Path

import pytest

from equida.bench.paper_tables import AVERAGE
from equida.bench.results import Record, by_column
from equida.bench.store import read_runs
from equida.bench.sweep import Variant
from equida.data import BENCHMARKS
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
    assert nsm.cells[2].lines == ("seed 0: 1 of 2 tasks have this figure",)


def test_a_mean_is_over_the_seeds_that_have_every_task(write: Writer, runs: Path) -> None:
    for seed, right in enumerate((30, 36, 60)):
        write(seed=seed, right=right)
    for seed, right in enumerate((54, 60)):
        write(seed=seed, right=right, source="U", target="M")
    grid = arrange(read_runs(runs))
    (row,) = comparison(grid, "last")[0].rows
    # Seed 0: (50 + 90) / 2; seed 1: (60 + 100) / 2; seed 2 has one task of two.
    assert (row.cells[2].text, row.cells[2].spread_text) == ("75.0", "7.1")
    assert row.cells[2].lines == (
        "seed 0: 70.00 %, mean of 2 tasks",
        "seed 1: 80.00 %, mean of 2 tasks",
        "seed 2: 1 of 2 tasks have this figure",
    )
    assert row.cells[3].spread is not None
    assert row.cells[3].lines[0].startswith("seed 0: 0.")
    # The terminal's table of the same runs has the same mean.
    records = [Record(Variant("nsm"), e.task.name, e.seed, e.result) for e in grid.finished]
    figures = by_column(records, BENCHMARKS["digits"], ("M2U", "U2M"), "last")
    assert figures[AVERAGE].mean == pytest.approx(100 * (row.cells[2].value or 0))


def test_one_task_has_its_accuracy_once(write: Writer, runs: Path) -> None:
    write()
    (table,) = comparison(arrange(read_runs(runs)), "last")
    assert table.columns == ("M2U", "equity", "discriminability")
    assert sum(span for _, span in table.groups) == len(table.rows[0].cells) == 3


def test_the_selection_decides_which_step_is_shown(write: Writer, runs: Path) -> None:
    write(right=45)
    grid = arrange(read_runs(runs))
    assert comparison(grid, "entropy")[0].rows[0].cells[0].text == "65.0"
    (table,) = selection_tables(grid)
    assert table.columns == ("last step", "source accuracy", "entropy", "oracle")
    assert [cell.text for cell in table.rows[0].cells] == ["75.0", "75.0", "65.0", "75.0"]


def test_what_lacks_a_task_is_not_among_the_selections(write: Writer, runs: Path) -> None:
    write()
    write(source="U", target="M")
    write(method="bnm")
    (table,) = selection_tables(arrange(read_runs(runs)))
    assert [row.system.title for row in table.rows] == ["NSM"]


def test_without_labels_equity_is_there_and_accuracy_is_not(write: Writer, runs: Path) -> None:
    write(labelled=False)
    grid = arrange(read_runs(runs))
    cells = comparison(grid, "last")[0].rows[0].cells
    assert cells[0].text == "–"
    assert cells[0].lines[0].startswith("seed 0: no target labels, equity ")
    assert cells[1].value == pytest.approx(grid.finished[0].result["last"]["equity"])
    assert selection_tables(grid) == []


def test_one_seed_ranks_nothing(write: Writer, runs: Path) -> None:
    assert headline(arrange(read_runs(runs))) == []
    for method, right in (("source_only", 30), ("nsm", 48)):
        write(method=method, right=right)
    assert headline(arrange(read_runs(runs))) == [
        "Digits: adaptation gains up to 30.0 points over source only on M2U (NSM, 80.0 %), "
        "last step; one seed does not rank systems."
    ]


def test_the_headline_says_so_where_adaptation_does_not_pay(write: Writer, runs: Path) -> None:
    for method, right in (("source_only", 48), ("nsm", 30)):
        write(method=method, right=right)
    (line,) = headline(arrange(read_runs(runs)))
    assert "no adaptation does better than source only, 80.0 % on M2U" in line


def test_one_seed_without_source_only_gives_the_range(write: Writer, runs: Path) -> None:
    for method, right in (("bnm", 48), ("nsm", 30)):
        write(method=method, right=right)
    (line,) = headline(arrange(read_runs(runs)))
    assert "accuracies from 50.0 to 80.0 % on M2U" in line


def test_systems_that_seeds_do_not_tell_apart_are_named(write: Writer, runs: Path) -> None:
    for method, rights in {
        "source_only": (30, 30, 30),
        "max_square": (42, 43, 44),
        "bnm": (50, 51, 52),
        "nsm": (51, 52, 53),
    }.items():
        for seed, right in enumerate(rights):
            write(method=method, seed=seed, right=right)
    # NSM 86.7 ± 1.7, BNM 85.0 ± 1.7: 1.7 apart, noise 2.4; MaxSquare is 15 below.
    assert headline(arrange(read_runs(runs))) == [
        "Digits: NSM has the highest mean accuracy, 86.7 ± 1.7 % on M2U, last step, 36.7 points "
        "above source only; within seed noise of BNM."
    ]


def test_a_clear_lead_is_called_one(write: Writer, runs: Path) -> None:
    for method, rights in {"source_only": (30, 31), "nsm": (51, 52)}.items():
        for seed, right in enumerate(rights):
            write(method=method, seed=seed, right=right)
    (line,) = headline(arrange(read_runs(runs)))
    assert line.endswith("ahead of all others by more than seed noise.")
