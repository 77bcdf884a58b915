"""The one table of results, in every form."""

import csv
import io
import itertools
import json
import re
import shutil
import statistics
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from tests.small_data import SHORT, blobs

import equida
from equida.data.benchmarks import BENCHMARKS
from equida.errors import InputError
from equida.evaluation.figures import FIGURES, Figure
from equida.methods import STANDARD
from equida.runs.entry import Entry
from equida.runs.formats import FORMATS, as_json, beside, escape, html, latex, markdown, ours
from equida.runs.table import Cell, Column, Printed, PrintedRow, Table, make_table
from equida.runs.terminal import print_table, rich_table
from equida.runs.variant import Variant

TASKS = BENCHMARKS["office31"].tasks
NSM = Variant("nsm")


class Published:
    """A published row for NSM: 95 on every task, the best of A2W, and an average of 90."""

    methods = ("nsm", "source_only")

    def row(self, variant: Variant) -> PrintedRow | None:
        if variant.key() != NSM.key():
            return None
        cells = {task: Printed(95.0) for task in TASKS} | {"Avg": Printed(90.0)}
        return PrintedRow("NSM*", cells | {"A2W": Printed(95.0, rank=1)})

    def notes(self, variants: Sequence[Variant]) -> list[str]:
        return [f"Published: {len(variants)} row."]


def result(accuracy: float, **more: Any) -> dict[str, Any]:
    last = {"step": 9.0, "accuracy": accuracy, "equity": 0.75, "discriminability": 0.5}
    picks = {"oracle": last | {"accuracy": accuracy + 0.1}, "bnm": last | {"accuracy": accuracy}}
    return {"metric": "accuracy", "last": last, "picks": picks, "kept": "last"} | more


def entries(accuracies: dict[str, list[float]], tasks: tuple[str, ...] = TASKS) -> list[Entry]:
    return [
        Entry(Variant(method), task, seed, result(value))
        for method, values in accuracies.items()
        for task in tasks
        for seed, value in enumerate(values)
    ]


def office(made: Sequence[Entry], seeds: Sequence[int], **more: Any) -> Table:
    return make_table(made, **({"benchmark": "office31", "tasks": TASKS, "seeds": seeds} | more))


@pytest.fixture
def table() -> Table:
    accuracies = {"nsm": [0.90, 0.92], "source_only": [0.70, 0.70], "entropy": [0.90, 0.92]}
    made = [*entries(accuracies), Entry(Variant("cwsm"), "A2W", 0, None, "no |memory| on A_1")]
    return office(made, (0, 1), measures=True, reference=Published())


def column(table: Table, key: str) -> Column:
    return next(column for column in table.columns if column.key == key)


def shown(table: Table, title: str, key: str) -> str:
    row = next(row for row in table.rows if row.title == title)
    return ours(row.cells[key], column(table, key), len(table.seeds))


def test_published_rows_come_first_and_others_in_the_order_of_methods(table: Table) -> None:
    keys = [column.key for column in table.columns]
    assert keys == [*TASKS, "Avg", "Equity", "Discriminability"]
    assert column(table, "A2W").title == "A→W"
    assert [row.title for row in table.rows] == ["NSM", "Source only", "CWSM", "Entropy"]
    plain = office(entries({"nsm": [0.9], "bnm": [0.8]}), (0,))
    assert [row.title for row in plain.rows] == ["BNM", "NSM"]


def test_a_cell_has_a_deviation_from_two_seeds_on() -> None:
    values = {0: 1.0, 1: 4.0, 2: 7.0}
    assert Cell(values).mean == statistics.mean(values.values())
    assert Cell(values).deviation == statistics.stdev(values.values())
    assert Cell({0: 1.0}).deviation is None
    assert Cell().mean is None


def test_published_numbers_stand_beside_ours_with_the_difference(table: Table) -> None:
    cell = table.rows[0].cells["A2W"]
    assert cell.difference == pytest.approx(91.0 - 95.0)
    assert beside(cell, column(table, "A2W")) == "95.0 −4.0"
    assert shown(table, "NSM", "A2W") == "91.0 ± 1.4"
    assert table.rows[1].cells["A2W"].printed is None
    assert "Published: 1 row." in table.notes


def test_the_published_average_is_over_the_tasks_shown() -> None:
    some = ("A2W", "D2W")
    made = office(entries({"nsm": [0.5]}, some), (0,), tasks=some, reference=Published())
    printed = made.rows[0].cells["Avg"].printed
    assert printed is not None
    assert printed.value == pytest.approx(95.0)
    assert any("over the tasks shown" in note for note in made.notes)
    alone = office(entries({"nsm": [0.5]}, ("A2W",)), (0,), tasks=("A2W",))
    assert [column.key for column in alone.columns] == ["A2W"]


def test_a_published_number_of_other_data_has_no_difference() -> None:
    assert Cell({0: 50.0}, printed=Printed(60.0, comparable=False)).difference is None


def test_best_and_second_are_marked_and_ties_share(table: Table) -> None:
    assert [row.cells["A2W"].rank for row in table.rows] == [1, 2, 0, 1]
    assert {row.cells["Equity"].rank for row in table.rows} == {0}
    alone = office(entries({"nsm": [0.5]}), (0,))
    assert alone.rows[0].cells["A2W"].rank == 0


def test_ranks_within_methods_mark_the_best_variant_of_each() -> None:
    accuracies = {("cwsm", 0.5): 0.90, ("cwsm", 1.0): 0.80, ("nsm", 0.5): 0.70, ("nsm", 1.0): 0.75}
    made = [
        Entry(Variant(method, {"r": r}, shown={"r": r}), "A2W", 0, result(value))
        for (method, r), value in accuracies.items()
    ]
    table = office(made, (0,), rank_within_methods=True)
    assert [row.cells["A2W"].rank for row in table.rows] == [1, 0, 0, 1]


def test_missing_and_failed_cells_say_so(table: Table) -> None:
    assert shown(table, "CWSM", "A2W") == "failed"
    assert shown(table, "CWSM", "D2W") == "–"
    partly = office(entries({"nsm": [0.5]}), (0, 1, 2))
    assert shown(partly, "NSM", "A2W") == "50.0 (1/3)"


def test_the_average_is_over_the_seeds_that_have_every_task() -> None:
    made = [
        Entry(NSM, "A2W", 0, result(0.5)),
        Entry(NSM, "D2W", 0, result(0.7)),
        Entry(NSM, "A2W", 1, result(0.6)),
        Entry(NSM, "D2W", 1, failure="no memory"),
    ]
    cells = office(made, (0, 1), tasks=("A2W", "D2W"), measures=True).rows[0].cells
    assert cells["A2W"].by_seed == pytest.approx({0: 50.0, 1: 60.0})
    assert cells["Avg"].by_seed == pytest.approx({0: 60.0})
    assert [cells[key].failed for key in ("A2W", "D2W", "Avg")] == [False, True, True]
    assert cells["Equity"].mean == pytest.approx(0.75)


def test_a_selection_picks_its_evaluation() -> None:
    entry = Entry(NSM, "A2W", 0, result(0.5))
    assert [entry.accuracy(s) for s in ("last", "oracle", "bnm")] == pytest.approx([50, 60, 50])
    assert entry.accuracy("entropy") is None
    with pytest.raises(InputError, match="--select is 'best'; expected one of last, "):
        entry.accuracy("best")


def test_visda_is_by_class_with_the_mean_of_the_classes() -> None:
    confusion = [[int(a == b) for b in range(12)] for a in range(12)]
    confusion[0][:2] = [1, 3]
    run = result(0.9, metric="mean_class_accuracy", confusion=confusion)
    run["last"]["mean_class_accuracy"] = (11 + 0.25) / 12
    task = "Synthetic2Real"
    made = [Entry(NSM, task, 0, run)]
    table = make_table(made, benchmark="visda2017", tasks=(task,), seeds=(0,))
    assert [column.key for column in table.columns][:3] == ["plane", "bcycl", "bus"]
    cells = table.rows[0].cells
    assert (cells["plane"].mean, cells["bcycl"].mean) == (25.0, 100.0)
    assert cells["Avg"].mean == pytest.approx(100 * (11 + 0.25) / 12)
    assert made[0].class_accuracies("oracle") is None


def test_users_own_data_have_a_table_too() -> None:
    tasks = ("photos2clipart", "clipart2photos")
    made = entries({"nsm": [0.5, 0.7], "bnm": [0.6, 0.6]}, tasks)
    table = make_table(made, benchmark=None, tasks=tasks, seeds=(0, 1), data_title="own data")
    assert table.title == "Accuracy (%) on own data"
    assert table.rows[1].cells["Avg"].mean == pytest.approx(60.0)


def test_a_new_figure_is_one_entry_and_shows_in_every_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FIGURES, "_entries", dict(FIGURES._entries))
    FIGURES.add("novelty", Figure("novelty", "Novelty", "made up", lambda *_: 0.125, column=True))
    run = result(0.5)
    run["last"]["novelty"] = 0.125
    made = [Entry(Variant(name), "A2W", 0, run) for name in ("nsm", "bnm")]
    table = office(made, (0,), tasks=("A2W",), measures=True)
    forms = [text(table) for text in FORMATS.values()]
    assert all("Novelty" in text and "0.125" in text for text in [*forms, html(table), str(table)])


def test_the_caption_says_which_selection_over_how_many_seeds(table: Table) -> None:
    assert "over 2 seeds; the last step" in table.caption
    made = office(entries({"nsm": [0.5]}), (0,), select="oracle")
    assert "one seed" in made.caption
    assert "uses target labels" in made.caption
    picked = office(entries({"nsm": [0.5]}), (0,), select="bnm")
    assert "the step that nuclear norm (BNM) (label-free) picks" in picked.caption


def test_it_becomes_a_frame_and_files(table: Table, tmp_path: Path) -> None:
    frame = table.to_frame()
    assert frame.loc["NSM", ("A→W", "mean")] == pytest.approx(91.0)
    assert frame.loc["CWSM", ("A→W", "seeds")] == 0
    assert table.to_latex(tmp_path / "table.tex") == (tmp_path / "table.tex").read_text()
    assert "<td><b>91.0 ± 1.4</b></td>" in table._repr_html_()


def test_markdown_is_a_table_with_one_width(table: Table) -> None:
    lines = [line for line in markdown(table).splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {len(table.columns) + 2}
    assert "**91.0 ± 1.4**" in lines[2]
    # The published figure of A2W is set as it was printed.
    assert "| *paper: NSM\\** | **95.0** −4.0 | 95.0 −4.0 |" in lines[3]
    assert "- Failed: CWSM A2W seed 0: no |memory| on A\\_1" in markdown(table)


def test_csv_has_a_line_for_each_figure(table: Table) -> None:
    rows = list(csv.DictReader(io.StringIO(FORMATS["csv"](table))))
    assert len(rows) == 4 * len(table.columns)
    row = next(r for r in rows if r["method"] == "nsm" and r["column"] == "A2W")
    found = (row["mean"], row["seeds"], row["paper"], row["mark"])
    assert found == ("91.0000", "2", "95", "best")
    assert next(r for r in rows if r["method"] == "cwsm")["mean"] == ""


def test_json_holds_every_seed(table: Table) -> None:
    read = json.loads(FORMATS["json"](table))
    assert read == as_json(table)
    cell = read["rows"][0]["cells"]["A2W"]
    assert cell["by_seed"] == {"0": 90.0, "1": 92.0}
    assert read["failures"] == {"CWSM A2W seed 0": "no |memory| on A_1"}


def test_latex_is_balanced_and_escaped(table: Table) -> None:
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


def full_table(benchmark: str, *, measures: bool = False) -> Table:
    """All standard systems over three seeds, so that all cells have a deviation."""
    data_set, classes = BENCHMARKS[benchmark], len(BENCHMARKS[benchmark].classes)
    made = []
    for method, task, seed in itertools.product(STANDARD, data_set.tasks, range(3)):
        hits = 80 + 3 * seed
        confusion = [
            [hits if a == b else 17 if b == (a + 1) % classes else 0 for b in range(classes)]
            for a in range(classes)
        ]
        run = result(0.7 + 0.11 * seed, metric=data_set.metric, confusion=confusion)
        run["last"]["mean_class_accuracy"] = 0.7 + 0.11 * seed
        made.append(Entry(Variant(method), task, seed, run))
    return make_table(
        made, benchmark=benchmark, tasks=data_set.tasks, seeds=(0, 1, 2), measures=measures
    )


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


def test_latex_compiles(table: Table, tmp_path: Path) -> None:
    assert "Output written on table.pdf" in compiled(latex(table), tmp_path)


@pytest.mark.parametrize(
    ("dataset", "measures"),
    [("office31", False), ("office31", True), ("office_home", False), ("visda2017", False)],
)
def test_latex_is_no_wider_than_the_text_and_fits_on_a_page(
    dataset: str, measures: bool, tmp_path: Path
) -> None:
    log = compiled(latex(full_table(dataset, measures=measures)), tmp_path)
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


def printed(table: Table, width: int) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(rich_table(table, width))
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def test_a_narrow_terminal_gets_the_columns_in_blocks(table: Table) -> None:
    wide, narrow = printed(table, 200), printed(table, 70)
    assert wide.count("Method") == 1
    assert narrow.count("Method") > 1
    for column in table.columns:
        assert column.title in narrow
    assert "…" not in narrow


@pytest.mark.parametrize("width", [40, 60, 72, 80, 81, 90, 99, 100, 101, 110, 120, 132, 160, 200])
def test_no_number_is_cut_at_any_width(width: int) -> None:
    accuracies = {"source_only": [0.7, 0.72, 0.71], "nsm": [0.9, 0.92, 0.6]}
    made = office(entries(accuracies), (0, 1, 2), measures=True)
    text = printed(made, width)
    assert "…" not in text
    assert text.count("80.7 ±17.9") == len(TASKS) + 1
    for column in made.columns:
        assert f" {column.title} " in text
    assert max(map(len, text.splitlines())) <= width


def test_columns_are_in_as_few_blocks_as_fit() -> None:
    made = office(entries({"nsm": [0.9, 0.92, 0.6]}), (0, 1, 2), reference=Published())
    # A margin of 1, 13 letters of " paper, diff.", 7 columns of 10 letters and 3 blanks, and 1.
    assert printed(made, 106).count("Method") == 1
    assert printed(made, 105).count("Method") == 2


def test_long_names_wrap_where_numbers_would_be_cut() -> None:
    long = Variant("nsm", {}, shown={"alpha": 1.5, "trade_off": 1.5, "iterations": 100})
    made = office([Entry(long, "A2W", 0, result(0.9))], (0,), tasks=("A2W",))
    text = printed(made, 24)
    assert "90.0" in text
    assert "…" not in text


def test_into_a_file_nothing_is_wrapped(table: Table) -> None:
    file = io.StringIO()
    print_table(table, Console(file=file, width=40))
    assert file.getvalue().count("Method") == 1


@pytest.mark.usefixtures("own_folder")
def test_tables_say_where_they_cannot_be_written_and_hold_numbers() -> None:
    data = blobs()
    table = equida.compare(
        (data.source, data.labels), (data.target, data.labels), methods=["nsm"], seeds=1, jobs=1,
        recipe_params=SHORT, out="compared", progress=False,
    )  # fmt: skip
    with pytest.raises(InputError, match="cannot write nowhere/x: No such file or directory"):
        table.to_csv("nowhere/x")
    frame = table.to_frame()
    assert all(frame[column].dtype.kind in "fi" for column in frame.columns)
