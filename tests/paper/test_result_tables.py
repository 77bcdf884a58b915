"""The paper's tables, filled from made-up runs."""

from collections.abc import Callable
from pathlib import Path

import pytest

from equida.data.benchmarks import BENCHMARKS
from equida.experiments.grid import Grid
from equida.experiments.sweep import Sweep
from equida.paper.items import PaperContext
from equida.paper.result_tables import equity_table, result_tables
from equida.runs.formats import beside, markdown

TASKS = BENCHMARKS["office31"].tasks
Writer = Callable[..., None]
Maker = Callable[..., Grid]
ContextOf = Callable[[Path], PaperContext]


def test_the_table_of_r_is_over_the_tasks_that_all_rows_have(
    tmp_path: Path, write_grid: Writer, grid: Maker, context_of: ContextOf
) -> None:
    write_grid(tmp_path, grid(("cwsm", "nsm"), TASKS, (0, 1, 2)))
    write_grid(tmp_path, grid(("cwsm", "nsm"), ("A2W",), (0, 1, 2), Sweep("r", (1.0,))))
    made = equity_table(context_of(tmp_path))
    [table] = made.tables
    equity = [row.cells["Equity"] for row in table.rows]
    # On A→W the three seeds are 0, 0.009 and 0.003 above 0.7, and above 0.8 for r = 1.
    assert [cell.mean for cell in equity] == pytest.approx([0.704, 0.804, 0.704, 0.804])
    assert "on Office-31, A→W, heads" in table.caption
    assert "over 3 seeds" in table.caption
    assert "Over what all rows with runs have: A→W; seed(s) 0, 1, 2." in table.notes
    assert [beside(cell, table.columns[0]) for cell in equity] == [
        "0.719",
        "0.818",
        "0.774",
        "0.805",
    ]
    assert any("of Office-Home, Ar→Cl" in note for note in table.notes)
    assert made.status == "missing"


def test_rows_of_r_without_a_common_seed_are_not_compared(
    tmp_path: Path, write_grid: Writer, grid: Maker, context_of: ContextOf
) -> None:
    write_grid(tmp_path, grid(("nsm",), ("A2W",), (0,)))
    write_grid(tmp_path, grid(("nsm",), ("A2W",), (1,), Sweep("r", (1.0,))))
    [table] = equity_table(context_of(tmp_path)).tables
    assert {cell.count for row in table.rows for cell in row.cells.values()} == {0}
    assert any("no task and seed in common" in note for note in table.notes)


def test_the_papers_equity_is_shown_without_any_runs(tmp_path: Path) -> None:
    made = equity_table(PaperContext({}, tmp_path))
    assert "| *paper: CWSM (r=0.5)* | 0.719 | 0.933 |" in markdown(made.tables[0])
    assert "| *paper: NSM (r=1)* | 0.805 | 0.785 |" in markdown(made.tables[0])
    assert made.command.startswith("equida bench office_home ")


def test_a_table_with_too_few_seeds_says_how_to_make_the_rest(
    tmp_path: Path, write_grid: Writer, grid: Maker, context_of: ContextOf
) -> None:
    write_grid(tmp_path, grid(("cwsm", "nsm"), TASKS, (0,)))
    office = result_tables(context_of(tmp_path))[0]
    assert office.remarks == ("The paper's figures are means of three seeds.",)
    assert "--seeds 3" in office.command
