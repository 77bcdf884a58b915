"""The paper's tables in the package are the paper's: against its LaTeX, and in themselves."""

import re
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import pytest

from equida.data.benchmarks import BENCHMARKS
from equida.methods import METHODS
from equida.paper.tables import (
    ALPHAS,
    ELEVEN,
    EQUITY_TABLE,
    LAMBDAS,
    R_TABLES,
    RESULTS,
    PaperTable,
)
from equida.runs.table import AVERAGE

SHARED = Path(__file__).resolve().parents[3] / "shared" / "paper"
PERCENT = [*RESULTS.values(), *R_TABLES.values()]
TABLES = [*PERCENT, EQUITY_TABLE]


def tables_of(latex: str) -> dict[str, tuple[str, list[list[str]]]]:
    """By label, the caption and the cells of every row, LaTeX comments left out."""
    found = {}
    text = re.sub(r"(?<!\\)%.*", "", latex)
    for body in re.findall(r"\\begin\{table\*?\}(.*?)\\end\{table\*?\}", text, re.S):
        label, caption = (
            re.search(rf"\\{k}{{(.*?)}}\s*$", body, re.M) for k in ("label", "caption")
        )
        inner = re.search(r"\\begin\{tabular\}\{c+\}(.*?)\\end\{tabular\}", body, re.S)
        if not (label and caption and inner):
            continue
        lines = inner[1].replace("\\hline", "").split("\\\\")
        rows = [[cell.strip() for cell in line.split("&")] for line in lines if "&" in line]
        found[label[1]] = (caption[1].replace("\\%", "%"), rows)
    return found


def plain(cell: str) -> str:
    """A cell's number and rank."""
    rank = 1 if "\\bf" in cell else 2 if "\\underline" in cell else 0
    number = re.search(r"\d+\.\d+", cell)
    assert number, cell
    return f"{number[0]} {rank}"


def heading(cell: str) -> str:
    return cell.strip("{}").replace("$\\to$", "2")


def row_title(cell: str) -> str:
    return re.sub(r"\\cite\{.*?\}", "", cell).replace("$", "").strip(" {}")


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.label)
def test_every_entry_is_as_in_the_latex(table: PaperTable) -> None:
    files = sorted(SHARED.glob("*.txt"))
    if not files:
        pytest.skip(f"needs the paper's LaTeX in {SHARED}")
    caption, (head, *rows) = tables_of(files[0].read_text())[table.label]
    assert caption == table.caption
    assert table is EQUITY_TABLE or table.network in caption
    assert [heading(cell) for cell in head[1:]] == list(table.columns)
    assert [row_title(row[0]) for row in rows] == [row.title for row in table.rows]
    digits = 3 if table is EQUITY_TABLE else 1
    for printed, ours in zip(rows, table.rows, strict=True):
        cells = [f"{e.value:.{digits}f} {e.rank}" for e in ours.cells.values()]
        assert cells == [plain(cell) for cell in printed[1:]], ours.title


@pytest.mark.parametrize("table", PERCENT, ids=lambda table: table.label)
def test_the_average_is_the_mean_of_the_columns_rounded_half_up(table: PaperTable) -> None:
    for row in table.rows:
        numbers = [Decimal(str(row.cells[c].value)) for c in table.columns if c != AVERAGE]
        mean = sum(numbers, Decimal(0)) / len(numbers)
        rounded = mean.quantize(Decimal("0.1"), ROUND_HALF_UP)
        assert rounded == Decimal(str(row.cells[AVERAGE].value)), row.title


@pytest.mark.parametrize("table", RESULTS.values(), ids=lambda table: table.label)
def test_bold_and_underline_mark_best_and_second_but_for_one_column(table: PaperTable) -> None:
    wrong = []
    for column in table.columns:
        ranked = sorted({row.cells[column].value for row in table.rows}, reverse=True)
        for rank, value in ((1, ranked[0]), (2, ranked[1])):
            for row in table.rows:
                cell = row.cells[column]
                if (cell.rank == rank) != (cell.value == value):
                    wrong.append((column, row.title))
    expected = {
        "tab:office": set(),
        "tab:office_home": set(),
        "tab:visda": {"car"},
    }[table.label]
    assert {column for column, _ in wrong} == expected
    if expected:
        assert any("74.8" in note.text for note in table.notes)


def test_the_r_tables_repeat_the_result_tables_at_one_half() -> None:
    for name, table in R_TABLES.items():
        for method in ("cwsm", "nsm"):
            row, result = table.row(method, {"r": 0.5}), RESULTS[name].row(method)
            assert row is not None
            assert result is not None
            assert [e.value for e in row.cells.values()] == [e.value for e in result.cells.values()]


def test_equity_goes_up_and_discriminability_down_with_r() -> None:
    for method in ("cwsm", "nsm"):
        half, one = (EQUITY_TABLE.row(method, {"r": r}) for r in (0.5, 1.0))
        assert half is not None
        assert one is not None
        assert half.cells["Equity"].value < one.cells["Equity"].value
        assert half.cells["Discriminability"].value > one.cells["Discriminability"].value


def test_columns_methods_and_grids_are_those_of_the_package() -> None:
    assert len(ELEVEN) == 11
    assert all(method in METHODS for method in ELEVEN)
    for name, table in RESULTS.items():
        benchmark = BENCHMARKS[name]
        by_class = benchmark.metric == "mean_class_accuracy"
        columns = benchmark.display_classes if by_class else benchmark.tasks
        assert table.columns == (*columns, AVERAGE)
    assert LAMBDAS == (0.5, 1.0, 1.5, 2.0, 2.5)
    assert ALPHAS == (1.0, 1.5, 2.0, 2.5)


def test_notes_come_with_the_rows_they_are_about() -> None:
    table = RESULTS["office31"]
    assert any("CDAN+E" in note for note in table.notes_on(["cdan"]))
    assert not any("CDAN+E" in note for note in table.notes_on(["nsm"]))
    assert any("copied" in note for note in table.notes_on(["source_only"]))
    assert not any("copied" in note for note in table.notes_on(["nsm", "bnm"]))
