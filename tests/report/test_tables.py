"""The comparison in the paper's layout, in every format."""

import csv
import io
import itertools
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from equida.bench.paper_tables import RESULTS
from equida.bench.results import Record
from equida.bench.sweep import Variant, make_variant
from equida.data.benchmarks import BENCHMARKS
from equida.report.formats import FORMATS, as_json, beside, escape, latex, markdown, ours
from equida.report.tables import Comparison, comparison
from equida.report.terminal import print_table, rich_table

TASKS = BENCHMARKS["office31"].tasks


def result(accuracy: float, **more: Any) -> dict[str, Any]:
    last = {"step": 9.0, "accuracy": accuracy, "equity": 0.75, "discriminability": 0.5}
    return {"metric": "accuracy", "last": last, "picks": {"oracle": last}, "kept": "last"} | more


def records(accuracies: dict[str, list[float]], tasks: tuple[str, ...] = TASKS) -> list[Record]:
    return [
        Record(Variant(method), task, seed, result(value))
        for method, values in accuracies.items()
        for task in tasks
        for seed, value in enumerate(values)
    ]


@pytest.fixture
def table() -> Comparison:
    accuracies = {"nsm": [0.90, 0.92], "source_only": [0.70, 0.70], "entropy": [0.90, 0.92]}
    made = [*records(accuracies), Record(Variant("cwsm"), "A2W", 0, None, "no |memory| on A_1")]
    return comparison(made, "office31", TASKS, (0, 1), measures=True)


def test_rows_and_columns_are_in_the_papers_order(table: Comparison) -> None:
    assert list(table.columns) == [*TASKS, "Avg", "Equity", "Discriminability"]
    assert table.columns["A2W"] == "A→W"
    assert [line.title for line in table.lines] == ["Source only", "CWSM", "NSM", "Entropy"]


def test_the_papers_numbers_stand_beside_ours_with_the_difference(table: Comparison) -> None:
    cell = table.lines[2].cells["A2W"]
    assert cell.paper == 95.4
    assert cell.difference == pytest.approx(91.0 - 95.4)
    assert beside(cell) == "95.4 −4.4"
    assert ours(cell, 2) == "91.0 ± 1.4"
    assert table.lines[2].cells["Avg"].paper == 89.9
    assert table.lines[3].cells["A2W"].paper is None


def test_best_and_second_are_marked_and_ties_share(table: Comparison) -> None:
    marks = [line.cells["A2W"].mark for line in table.lines]
    assert marks == ["u", "", "b", "b"]
    assert {line.cells["Equity"].mark for line in table.lines} == {""}


def test_missing_and_failed_cells_say_so(table: Comparison) -> None:
    cwsm = table.lines[1]
    assert ours(cwsm.cells["A2W"], 2) == "failed"
    assert ours(cwsm.cells["D2W"], 2) == "–"
    assert beside(cwsm.cells["A2W"]) == "94.5"
    partly = comparison(records({"nsm": [0.5]}), "office31", TASKS, (0, 1, 2))
    assert ours(partly.lines[0].cells["A2W"], 3) == "50.0 (1/3)"


def test_the_average_of_some_tasks_is_compared_with_the_same_ones() -> None:
    some = ("A2W", "D2W")
    made = comparison(records({"nsm": [0.5]}, some), "office31", some, (0,))
    assert made.lines[0].cells["Avg"].paper == pytest.approx((95.4 + 98.8) / 2)
    assert any("over the tasks shown" in note for note in made.notes)
    alone = comparison(records({"nsm": [0.5]}, ("A2W",)), "office31", ("A2W",), (0,))
    assert list(alone.columns) == ["A2W"]


def test_a_row_with_r_1_stands_beside_the_papers_row_with_r_1() -> None:
    one = Variant("nsm", {"r": 1.0}, shown={"r": 1.0})
    made = comparison([Record(one, "A2W", 0, result(0.9))], "office31", TASKS, (0,))
    assert made.lines[0].title == "NSM (r=1)"
    assert made.lines[0].cells["A2W"].paper == 93.3
    other = Variant("nsm", {"alpha": 2.0}, shown={"alpha": 2.0})
    assert comparison([Record(other, "A2W", 0)], "office31", TASKS, (0,)).lines[0].paper is None


def test_of_two_r_the_better_of_each_method_is_marked() -> None:
    accuracies = {("cwsm", 0.5): 0.90, ("cwsm", 1.0): 0.80, ("nsm", 0.5): 0.70, ("nsm", 1.0): 0.75}
    made = comparison(
        [
            Record(make_variant(method, {"r": r}, "office31"), "A2W", 0, result(value))
            for (method, r), value in accuracies.items()
        ],
        "office31",
        TASKS,
        (0,),
        pairs=True,
    )
    assert [line.cells["A2W"].mark for line in made.lines] == ["b", "", "", "b"]
    # Table 8 has 94.8 and 95.4 in bold; Table 4 has the first row's 94.5 underlined.
    assert [beside(line.cells["A2W"], {"b": "<{}>", "u": "_{}_"}) for line in made.lines] == [
        "94.5 −4.5", "<94.8> −14.8", "<95.4> −25.4", "93.3 −18.3",
    ]  # fmt: skip
    assert any("Table 8, ResNet-50" in note for note in made.notes)
    alone = comparison(
        [Record(make_variant("nsm", {"r": 1.0}, "office31"), "A2W", 0, result(0.9))],
        "office31",
        TASKS,
        (0,),
        pairs=True,
    )
    assert alone.lines[0].cells["A2W"].mark == ""


def test_visda_is_by_class_with_the_mean() -> None:
    confusion = [[int(a == b) for b in range(12)] for a in range(12)]
    run = result(0.9, metric="mean_class_accuracy", confusion=confusion)
    run["last"]["mean_class_accuracy"] = 1.0
    task = "Synthetic2Real"
    made = comparison([Record(Variant("nsm"), task, 0, run)], "visda2017", (task,), (0,))
    assert next(iter(made.columns)) == "plane"
    assert list(made.columns)[-1] == "Avg"
    assert beside(made.lines[0].cells["truck"]) == "38.3 +61.7"


def test_the_caption_says_which_selection_over_how_many_seeds(table: Comparison) -> None:
    assert "over 2 seeds; the last step" in table.caption
    made = comparison(records({"nsm": [0.5]}), "office31", TASKS, (0,), select="oracle")
    assert "one seed" in made.caption
    assert "uses target labels" in made.caption


def test_markdown_is_a_table_with_one_width(table: Comparison) -> None:
    lines = [line for line in markdown(table).splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {len(table.columns) + 2}
    assert "**91.0 ± 1.4**" in lines[6]
    # The paper sets 95.4 in bold and underlines 93.8.
    assert "| *paper: NSM* | **95.4** −4.4 | 98.8 −7.8 | 99.5 −8.5 | <u>93.8</u> −2.8 |" in lines[7]
    assert "- Failed: CWSM A2W seed 0: no |memory| on A\\_1" in markdown(table)


def test_csv_has_a_line_for_each_figure(table: Comparison) -> None:
    rows = list(csv.DictReader(io.StringIO(FORMATS["csv"](table))))
    assert len(rows) == 4 * len(table.columns)
    row = next(r for r in rows if r["method"] == "nsm" and r["column"] == "A2W")
    assert (row["mean"], row["seeds"], row["paper"], row["mark"]) == (
        "91.0000",
        "2",
        "95.4",
        "best",
    )
    assert next(r for r in rows if r["method"] == "cwsm")["mean"] == ""


def test_json_holds_every_seed(table: Comparison) -> None:
    read = json.loads(FORMATS["json"](table))
    assert read == as_json(table)
    cell = read["rows"][2]["cells"]["A2W"]
    assert cell["by_seed"] == {"0": 90.0, "1": 92.0}
    assert read["failures"] == {"CWSM A2W seed 0": "no |memory| on A_1"}


def test_latex_is_balanced_and_escaped(table: Comparison) -> None:
    text = latex(table)
    assert "A$\\to$W" in text
    assert "\\textbf{91.0\\,$\\pm$\\,1.4}" in text
    assert "no \\textbar{}memory\\textbar{} on A\\_1" in text
    body = text.split("\\midrule")[1].split("\\bottomrule")[0]
    rows = [line for line in body.splitlines() if line.endswith("\\\\")]
    assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {len(table.columns)}
    for name in ("table", "tabular", "itemize"):
        assert text.count(f"\\begin{{{name}}}") == text.count(f"\\end{{{name}}}") == 1
    assert not set(escape("±→−–<>|")) & set("±→−–<>|")


def full_table(benchmark: str, *, measures: bool = False) -> Comparison:
    """Every row of the paper's table over three seeds, so that all cells have a deviation."""
    data_set, classes = BENCHMARKS[benchmark], len(BENCHMARKS[benchmark].classes)
    made = []
    for row, task, seed in itertools.product(RESULTS[benchmark].rows, data_set.tasks, range(3)):
        hits = 80 + 3 * seed
        confusion = [
            [hits if a == b else 17 if b == (a + 1) % classes else 0 for b in range(classes)]
            for a in range(classes)
        ]
        run = result(0.7 + 0.11 * seed, metric=data_set.metric, confusion=confusion)
        run["last"]["mean_class_accuracy"] = 0.7 + 0.11 * seed
        made.append(Record(Variant(row.method), task, seed, run))
    return comparison(made, benchmark, data_set.tasks, (0, 1, 2), measures=measures)


def compiled(text: str, folder: Path) -> str:
    """The log of a document with the packages that the first line of the text asks for."""
    compiler = shutil.which("pdflatex")
    if compiler is None:
        pytest.skip("needs pdflatex")
    packages = "".join(re.findall(r"\\usepackage\{\w+\}", text.splitlines()[0]))
    document = f"\\documentclass{{article}}{packages}\\begin{{document}}\n{text}\\end{{document}}"
    (folder / "table.tex").write_text(document)
    command = [compiler, "-interaction=nonstopmode", "-halt-on-error", "table.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
    return (folder / "table.log").read_text(errors="replace")


def test_latex_compiles(table: Comparison, tmp_path: Path) -> None:
    assert "Output written on table.pdf" in compiled(latex(table), tmp_path)


@pytest.mark.parametrize(
    ("benchmark", "measures"),
    [("office31", False), ("office31", True), ("office_home", False), ("visda2017", False)],
)
def test_latex_is_no_wider_than_the_text_and_fits_on_a_page(
    benchmark: str, measures: bool, tmp_path: Path
) -> None:
    log = compiled(latex(full_table(benchmark, measures=measures)), tmp_path)
    wide = [float(points) for points in re.findall(r"Overfull \\hbox \(([\d.]+)pt", log)]
    assert max(wide, default=0.0) < 3
    assert "Float too large" not in log


def test_many_columns_are_in_blocks_and_each_once() -> None:
    text = latex(full_table("office_home"))
    assert text.count("\\begin{tabular}{lrrrrrrr}") == 1
    assert text.count("\\begin{tabular}{lrrrrrr}") == 1
    heads = [line for line in text.splitlines() if line.startswith("Method & ")]
    columns = [head for line in heads for head in line.removesuffix(r" \\").split(" & ")[1:]]
    tasks = [task.replace("2", "$\\to$") for task in BENCHMARKS["office_home"].tasks]
    assert columns == [*tasks, "Avg"]


def printed(table: Comparison, width: int) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(rich_table(table, width))
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def test_a_narrow_terminal_gets_the_columns_in_blocks(table: Comparison) -> None:
    wide, narrow = printed(table, 200), printed(table, 70)
    assert wide.count("Method") == 1
    assert narrow.count("Method") > 1
    for column in table.columns.values():
        assert column in narrow
    assert "…" not in narrow


@pytest.mark.parametrize("width", [40, 60, 72, 80, 81, 90, 99, 100, 101, 110, 120, 132, 160, 200])
def test_no_number_is_cut_at_any_width(width: int) -> None:
    accuracies = {"source_only": [0.7, 0.72, 0.71], "nsm": [0.9, 0.92, 0.6]}
    made = comparison(records(accuracies), "office31", TASKS, (0, 1, 2), measures=True)
    shown = printed(made, width)
    assert "…" not in shown
    assert shown.count("80.7 ±17.9") == len(TASKS) + 1
    for column in made.columns.values():
        assert f" {column} " in shown
    assert max(map(len, shown.splitlines())) <= width


def test_columns_are_in_as_few_blocks_as_fit() -> None:
    made = comparison(records({"nsm": [0.9, 0.92, 0.6]}), "office31", TASKS, (0, 1, 2))
    # A margin of 1, 13 letters of " paper, diff.", 7 columns of 10 letters and 3 blanks, and 1.
    assert printed(made, 106).count("Method") == 1
    assert printed(made, 105).count("Method") == 2


def test_long_names_wrap_where_numbers_would_be_cut() -> None:
    long = Variant("nsm", {}, shown={"alpha": 1.5, "trade_off": 1.5, "iterations": 100})
    made = comparison([Record(long, "A2W", 0, result(0.9))], "office31", ("A2W",), (0,))
    shown = printed(made, 24)
    assert "90.0" in shown
    assert "…" not in shown


def test_into_a_file_nothing_is_wrapped(table: Comparison) -> None:
    file = io.StringIO()
    print_table(table, Console(file=file, width=40))
    assert file.getvalue().count("Method") == 1
