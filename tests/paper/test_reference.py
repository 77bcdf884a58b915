"""The paper's numbers beside ours; expected numbers are copied from the paper by hand."""

from typing import Any

import pytest

from equida.data.benchmarks import BENCHMARKS
from equida.experiments.sweep import make_variant
from equida.paper.reference import RReference, reference
from equida.paper.tables import R_TABLES
from equida.runs.entry import Entry
from equida.runs.formats import beside, csv_text, markdown, ours
from equida.runs.table import Table, make_table
from equida.runs.variant import Variant

TASKS = BENCHMARKS["office31"].tasks


def result(accuracy: float, **more: Any) -> dict[str, Any]:
    last = {"step": 9.0, "accuracy": accuracy, "equity": 0.75, "discriminability": 0.5}
    return {"metric": "accuracy", "last": last, "picks": {"oracle": last}, "kept": "last"} | more


def entries(accuracies: dict[str, list[float]], tasks: tuple[str, ...] = TASKS) -> list[Entry]:
    return [
        Entry(Variant(method), task, seed, result(value))
        for method, values in accuracies.items()
        for task in tasks
        for seed, value in enumerate(values)
    ]


def office31(made: list[Entry], tasks: tuple[str, ...] = TASKS, seeds: int = 1) -> Table:
    return make_table(
        made,
        benchmark="office31",
        tasks=tasks,
        seeds=range(seeds),
        reference=reference("office31"),
    )


@pytest.fixture
def table() -> Table:
    accuracies = {"nsm": [0.90, 0.92], "source_only": [0.70, 0.70], "entropy": [0.90, 0.92]}
    failed = Entry(Variant("cwsm"), "A2W", 0, None, "no memory")
    return office31([*entries(accuracies), failed], seeds=2)


def test_rows_are_in_the_papers_order(table: Table) -> None:
    assert [row.title for row in table.rows] == ["Source only", "CWSM", "NSM", "Entropy"]


def test_rows_of_another_data_set_are_in_the_order_of_its_own_table() -> None:
    names = ("dan", "dann", "max_square", "cdan")
    made = make_table(
        [Entry(Variant(name), "Synthetic2Real", 0) for name in names],
        benchmark="visda2017",
        tasks=("Synthetic2Real",),
        seeds=(0,),
        reference=reference("visda2017"),
    )
    assert [row.variant.method for row in made.rows] == ["dann", "dan", "max_square", "cdan"]


def test_the_papers_numbers_stand_beside_ours_with_the_difference(table: Table) -> None:
    column, nsm = table.columns[0], table.rows[2]
    cell = nsm.cells["A2W"]
    assert cell.printed is not None
    assert (cell.printed.value, cell.printed.rank) == (95.4, 1)
    assert cell.difference == pytest.approx(91.0 - 95.4)
    assert beside(cell, column) == "95.4 −4.4"
    assert ours(cell, column, 2) == "91.0 ± 1.4"
    assert nsm.cells["Avg"].printed is not None
    assert nsm.cells["Avg"].printed.value == 89.9
    assert table.rows[3].cells["A2W"].printed is None
    assert beside(table.rows[1].cells["A2W"], column) == "94.5"


def test_the_papers_ranks_are_set_as_in_the_paper(table: Table) -> None:
    # The paper sets 95.4 in bold and underlines 93.8.
    row = "| *paper: NSM* | **95.4** −4.4 | 98.8 −7.8 | 99.5 −8.5 | <u>93.8</u> −2.8 |"
    assert row in markdown(table)
    assert "nsm" in csv_text(table)


def test_the_average_of_some_tasks_is_compared_with_the_same_ones() -> None:
    some = ("A2W", "D2W")
    made = office31(entries({"nsm": [0.5]}, some), some)
    printed = made.rows[0].cells["Avg"].printed
    assert printed is not None
    assert printed.value == pytest.approx((95.4 + 98.8) / 2)
    assert any("over the tasks shown" in note for note in made.notes)


def test_a_row_with_r_1_stands_beside_the_papers_row_with_r_1() -> None:
    one = Variant("nsm", {"r": 1.0}, shown={"r": 1.0})
    made = office31([Entry(one, "A2W", 0, result(0.9))])
    assert made.rows[0].title == "NSM (r=1)"
    printed = made.rows[0].cells["A2W"].printed
    assert printed is not None
    assert printed.value == 93.3
    assert "Rows with another r: Table 8." in made.notes


@pytest.mark.parametrize(
    "variant",
    [
        Variant("nsm", {"alpha": 2.0}),
        Variant("nsm", {"r": 1.0, "alpha": 2.0}),
        Variant("nsm", {"r": 0.25}),
        Variant("nsm", recipe={"iterations": 10}),
        Variant("mcc"),
        Variant("cdan+nsm"),
    ],
    ids=repr,
)
def test_what_the_paper_did_not_run_has_no_row(variant: Variant) -> None:
    for found in (reference("office31"), RReference(R_TABLES["office31"])):
        assert found is not None
        assert found.row(variant) is None


def test_other_data_have_no_reference() -> None:
    assert reference("digits") is None


def r_table(accuracies: dict[tuple[str, float], float]) -> Table:
    return make_table(
        [
            Entry(make_variant(method, {"r": r}, "office31"), "A2W", 0, result(value))
            for (method, r), value in accuracies.items()
        ],
        benchmark="office31",
        tasks=TASKS,
        seeds=(0,),
        reference=RReference(R_TABLES["office31"]),
        rank_within_methods=True,
    )


def test_of_two_r_the_better_of_each_method_is_marked() -> None:
    values = {("cwsm", 0.5): 0.90, ("cwsm", 1.0): 0.80, ("nsm", 0.5): 0.70, ("nsm", 1.0): 0.75}
    made = r_table(values)
    assert [row.cells["A2W"].rank for row in made.rows] == [1, 0, 0, 1]
    # Table 8 has 94.8 and 95.4 in bold; Table 4 has the first row's 94.5 underlined.
    style = {1: "<{}>", 2: "_{}_"}
    assert [beside(row.cells["A2W"], made.columns[0], style) for row in made.rows] == [
        "94.5 −4.5", "<94.8> −14.8", "<95.4> −25.4", "93.3 −18.3",
    ]  # fmt: skip
    assert any("Table 8, ResNet-50" in note for note in made.notes)
    assert not any("Rows with another r" in note for note in made.notes)
    assert r_table({("nsm", 1.0): 0.9}).rows[0].cells["A2W"].rank == 0


def test_visda_is_by_class_with_the_mean() -> None:
    confusion = [[int(a == b) for b in range(12)] for a in range(12)]
    run = result(0.9, metric="mean_class_accuracy", confusion=confusion)
    run["last"]["mean_class_accuracy"] = 1.0
    task = "Synthetic2Real"
    made = make_table(
        [Entry(Variant("nsm"), task, 0, run)],
        benchmark="visda2017",
        tasks=(task,),
        seeds=(0,),
        reference=reference("visda2017"),
    )
    assert (made.columns[0].key, made.columns[-1].key) == ("plane", "Avg")
    assert beside(made.rows[0].cells["truck"], made.columns[-2]) == "38.3 +61.7"
    assert beside(made.rows[0].cells["Avg"], made.columns[-1]) == "80.4 +19.6"
    assert any("Table 6, ResNet-101" in note for note in made.notes)


def test_notes_are_those_of_the_methods_shown(table: Table) -> None:
    assert any("Table 4, ResNet-50" in note for note in table.notes)
    assert any("copied" in note for note in table.notes)
    assert not any("CDAN+E" in note for note in table.notes)
    assert not any("Rows with another r" in note for note in table.notes)
    alone = office31(entries({"mcc": [0.5]}))
    assert not any("paper" in note for note in alone.notes)
