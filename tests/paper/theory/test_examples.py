"""The printed tables, against the paper's own digits and numpy."""

import numpy as np

from equida.paper.theory.checks import Context
from equida.paper.theory.examples import MATRICES, example_checks

# Typed from the paper: Table 1 (columns 2 to 4) and Table 3 (columns 2 to 4).
TABLE_1 = {"P1": (1, 1, "2"), "P2": (2, 2, "2.73"), "P3": (2, 2, "2.82")}
TABLE_3 = {"P1": ("2", "1", "0.25"), "P2": ("2.73", "1.37", "0.4"), "P3": ("2.82", "1.41", "0.5")}


def test_every_printed_figure_is_there_and_only_the_truncated_norm_differs() -> None:
    checks = {check.id: check for check in example_checks(Context())}
    for name, (categories, rank, norm) in TABLE_1.items():
        assert checks[f"table-1.{name}.categories"].computed == categories
        assert checks[f"table-1.{name}.rank"].computed == rank
        assert checks[f"table-1.{name}.nuclear-norm"].printed == norm
    for name, (norm, cws, ns) in TABLE_3.items():
        printed = [checks[f"table-3.{name}.{key}"].printed for key in ("nuclear-norm", "CWS", "NS")]
        assert printed == [norm, cws, ns]
    differing = {key for key, check in checks.items() if check.verdict == "differs"}
    assert differing == {"table-1.P3.nuclear-norm", "table-3.P3.nuclear-norm"}
    assert "2.8284 rounds to 2.83" in checks["table-1.P3.nuclear-norm"].explanation
    assert all(check.as_documented for check in checks.values())


def test_every_printed_figure_says_where_it_stands() -> None:
    places = {
        (check.table, check.row, check.column): check.printed
        for check in example_checks(Context())
        if check.table is not None
    }
    assert len(places) == 18
    assert places[1, "P2", "nuclear norm"] == "2.73"
    assert places[3, "P3", "NS"] == "0.5"


def test_the_nuclear_norms_are_those_of_numpy() -> None:
    checks = {check.id: check for check in example_checks(Context())}
    for name, probs in MATRICES.items():
        expected = np.linalg.norm(probs.numpy(), "nuc")
        assert abs(checks[f"table-1.{name}.nuclear-norm"].computed - expected) < 1e-12


def test_the_unsaid_parameters_are_found() -> None:
    parameters = {check.id: check for check in example_checks(Context())}["table-3.parameters"]
    assert parameters.computed == {"cws_r": [0.5], "ns_r_by_alpha": {"1": [0.01, 1.0]}}
    assert parameters.verdict == "paper silent"
