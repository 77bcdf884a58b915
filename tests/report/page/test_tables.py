import json
from collections.abc import Callable
from pathlib import Path

import pytest

from equida.report.page.content import arrange
from equida.report.page.tables import TableView, page_tables, selection_tables
from equida.runs.read import read_runs
from equida.training.folder import RunFolder

Writer = Callable[..., Path]


def results(runs: Path, select: str = "last") -> list[TableView]:
    return page_tables(arrange(read_runs(runs)), select)


def test_cells_are_means_over_seeds_with_their_spread(write: Writer, runs: Path) -> None:
    for seed, right in enumerate((42, 45, 51)):
        write(seed=seed, right=right)
    (table,) = results(runs)
    cell = table.rows[0].cells[0]
    # 70, 75 and 85 %: mean 76.67; deviations -6.67, -1.67, 8.33; variance 116.67 / 2.
    assert (cell.text, cell.spread) == ("76.7", "± 7.6")
    assert [line.split(",")[0] for line in cell.lines] == [
        "seed 0: 70.00 %",
        "seed 1: 75.00 %",
        "seed 2: 85.00 %",
    ]
    assert ", equity 0." in cell.lines[0]
    assert cell.lines[0].endswith(", step 100")
    assert table.caption == (
        "Accuracy (%) on Digits, lenet; mean ± standard deviation over 3 seeds; the last step."
    )


def test_best_and_second_are_marked_and_ties_share_the_mark(write: Writer, runs: Path) -> None:
    for method, right in (("source_only", 30), ("bnm", 51), ("cwsm", 51), ("nsm", 48)):
        write(method=method, right=right)
    (table,) = results(runs)
    assert [row.title for row in table.rows] == ["Source only", "BNM", "CWSM", "NSM"]
    assert [row.cells[0].rank for row in table.rows] == [0, 1, 1, 2]


def test_a_mean_over_tasks_needs_every_task(write: Writer, runs: Path) -> None:
    write(method="bnm", right=30)
    write(method="bnm", right=60, source="U", target="M")
    write(method="nsm", right=57)
    bnm, nsm = results(runs)[0].rows
    assert bnm.cells[2].text == "75.0"
    assert [cell.text for cell in nsm.cells] == ["95.0", "–", "–", "–", "–"]
    assert nsm.cells[2].lines == ("seed 0: known for 1 of 2 tasks",)


def test_a_mean_is_over_the_seeds_that_have_every_task(write: Writer, runs: Path) -> None:
    for seed, right in enumerate((30, 36, 60)):
        write(seed=seed, right=right)
    for seed, right in enumerate((54, 60)):
        write(seed=seed, right=right, source="U", target="M")
    (table,) = results(runs)
    (row,) = table.rows
    # Seed 0: (50 + 90) / 2; seed 1: (60 + 100) / 2; seed 2 has one task of two.
    assert (row.cells[2].text, row.cells[2].spread) == ("75.0", "± 7.1 (2/3)")
    assert row.cells[2].lines == (
        "seed 0: 70.00 %, mean of 2 tasks",
        "seed 1: 80.00 %, mean of 2 tasks",
        "seed 2: known for 1 of 2 tasks",
    )
    assert row.cells[3].lines[0].startswith("seed 0: 0.")
    assert table.heads == (("accuracy by task", 2), ("mean over tasks", 3))


def test_one_task_has_its_accuracy_once(write: Writer, runs: Path) -> None:
    write()
    (table,) = results(runs)
    assert table.columns == ("M→U", "Equity", "Discriminability")
    assert table.heads == (("accuracy", 1), ("target predictions", 2))
    assert len(table.rows[0].cells) == 3


def test_a_failed_run_is_said_in_its_cell(write: Writer, runs: Path) -> None:
    write()
    failed = write(source="U", target="M")
    (failed / "result.json").unlink()
    RunFolder(failed).write_json("failed.json", {"reason": "the loss is nan"})
    write(method="bnm", source="U", target="M")
    nsm = results(runs)[0].rows[1]
    assert [cell.text for cell in nsm.cells[:2]] == ["75.0", "failed"]


def test_a_task_cell_leads_to_its_first_run(write: Writer, runs: Path) -> None:
    for method in ("source_only", "nsm"):
        for seed in (0, 1):
            write(method=method, seed=seed)
    (table,) = results(runs)
    assert [[cell.run for cell in row.cells] for row in table.rows] == [
        [0, None, None],
        [2, None, None],
    ]


def test_a_data_set_judged_by_classes_has_them_as_columns(write: Writer, runs: Path) -> None:
    folder = write(benchmark="visda2017", classes=tuple("abcdefghijkl"))
    result = json.loads((folder / "result.json").read_text())
    (folder / "result.json").write_text(json.dumps(result | {"metric": "mean_class_accuracy"}))
    (table,) = results(runs)
    (row,) = table.rows
    assert table.heads == (("accuracy by class", 13), ("target predictions", 2))
    # Of 60 samples in 12 classes the first 45 are right: 4 of 5 for the first nine classes.
    assert [cell.text for cell in row.cells[:13]] == ["80.0"] * 9 + ["60.0"] * 3 + ["75.0"]
    assert row.cells[0].lines == ("seed 0: 80.00 %",)
    (early,) = results(runs, "entropy")
    assert early.rows[0].cells[0].lines == ("seed 0: unknown for this step",)


def test_the_selection_decides_which_step_is_shown(write: Writer, runs: Path) -> None:
    write(right=45)
    assert results(runs, "entropy")[0].rows[0].cells[0].text == "65.0"
    (table,) = selection_tables(arrange(read_runs(runs)))
    assert table.columns == (
        "last step",
        "source accuracy",
        "entropy",
        "oracle (uses target labels)",
    )
    assert [cell.text for cell in table.rows[0].cells] == ["75.0", "75.0", "65.0", "75.0"]


def test_what_lacks_a_task_is_not_among_the_selections(write: Writer, runs: Path) -> None:
    write()
    write(source="U", target="M")
    write(method="bnm")
    (table,) = selection_tables(arrange(read_runs(runs)))
    assert [row.title for row in table.rows] == ["NSM"]


def test_without_labels_equity_is_there_and_accuracy_is_not(write: Writer, runs: Path) -> None:
    write(labelled=False)
    content = arrange(read_runs(runs))
    cells = page_tables(content, "last")[0].rows[0].cells
    assert cells[0].text == "–"
    assert cells[0].lines[0].startswith("seed 0: no target labels, equity ")
    assert cells[1].sort_by == pytest.approx(content.finished[0].result["last"]["equity"])
    assert selection_tables(content) == []
