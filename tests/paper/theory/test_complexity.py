"""Slopes on times that are known, and what is measured."""

import dataclasses
import time

import pytest
import torch
from torch import Tensor

from equida.paper.theory.checks import Budget, Context
from equida.paper.theory.complexity import (
    ROWS,
    ComplexityRow,
    complexity_checks,
    log_log_slope,
    measure_slope,
    order_check,
)

TINY = Context(Budget(scale=1, repeats=2, seconds=0.0))


@pytest.mark.parametrize("exponent", [0.5, 1.0, 2.0, 3.0])
def test_slope_of_a_power_is_its_exponent(exponent: float) -> None:
    sizes = [3, 7, 20, 50]
    assert log_log_slope(sizes, [0.2 * size**exponent for size in sizes]) == pytest.approx(exponent)


def test_a_loss_whose_time_is_the_square_of_its_rows_has_slope_2() -> None:
    def burn(logits: Tensor) -> Tensor:
        end = time.thread_time() + 2e-7 * logits.shape[0] ** 2
        while time.thread_time() < end:
            pass
        return logits.sum()

    row = ComplexityRow(
        "burn",
        "burn",
        "O(B^2)",
        burn,
        {"B": 2, "C": 0},
        {"B": 2, "C": 50},
        {"B": (64, 128, 256), "C": (2, 4)},
    )
    assert measure_slope(row, "B", TINY).slope == pytest.approx(2.0, abs=0.2)
    assert measure_slope(row, "C", TINY).slope == pytest.approx(0.0, abs=0.2)


def test_exponents_are_those_of_the_paper() -> None:
    printed = {
        row.name: (row.printed_order, row.exponents["B"], row.exponents["C"]) for row in ROWS
    }
    assert printed == {
        "MaxSquare": ("O(BC)", 1, 1),
        "BNM, B < C": ("min{O(B^2 C), O(B C^2)}", 2, 1),
        "BNM, B > C": ("min{O(B^2 C), O(B C^2)}", 1, 2),
        "CWSM": ("O(BC)", 1, 1),
        "NSM, r = 1": ("O(BC)", 1, 1),
        "NSM, r = 0.5": ("O(B^2 C)", 2, 1),
    }


def test_sizes_are_in_the_regime_that_is_named() -> None:
    for row in ROWS:
        if "<" in row.name or ">" in row.name:
            shapes = [(b, row.fixed["B"]) for b in row.growing["B"]]
            shapes += [(row.fixed["C"], c) for c in row.growing["C"]]
            assert all((rows < classes) == ("<" in row.name) for rows, classes in shapes)


def test_no_gradient_is_recorded() -> None:
    seen = []

    def look(logits: Tensor) -> Tensor:
        seen.append(torch.is_grad_enabled())
        return logits.sum()

    row = ComplexityRow(
        "look", "look", "", look, {"B": 1, "C": 1}, {"B": 2, "C": 2}, {"B": (2, 4), "C": (2, 4)}
    )
    measure_slope(row, "B", TINY)
    assert set(seen) == {False}


def test_the_sentence_on_complexity_is_refuted_by_the_printed_order_of_nsm_at_r_1() -> None:
    check = order_check()
    assert (check.verdict, check.as_documented) == ("paper wrong", True)
    assert check.computed["CWSM"] == check.computed["NSM, r = 1"] == "O(BC)"
    assert "NSM, r = 1" in check.found


def test_the_sentence_on_complexity_would_stand_against_another_table() -> None:
    slower = [
        dataclasses.replace(row, exponents={"B": 2, "C": 1}) if row.name == "NSM, r = 1" else row
        for row in ROWS
    ]
    check = order_check(slower)
    assert (check.verdict, check.as_documented) == ("differs", False)
    faster_bnm = [
        dataclasses.replace(row, exponents={"B": 1, "C": 1}) if row.method == "bnm" else row
        for row in ROWS
    ]
    assert not order_check(faster_bnm).as_documented


def test_every_time_says_where_it_stands_in_table_2() -> None:
    checks = complexity_checks(TINY)
    places = [(check.row, check.column) for check in checks if check.table == 2]
    assert places == [(row.name, axis) for row in ROWS for axis in ("B", "C")]
    orders = {check.row: check.computed["printed_order"] for check in checks if check.table == 2}
    assert orders["NSM, r = 0.5"] == "O(B^2 C)"
