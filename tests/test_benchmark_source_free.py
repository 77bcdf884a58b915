"""The tables that `python -m benchmarks source_free` prints, of runs made by hand."""

from collections.abc import Sequence
from typing import Any

import pytest
from rich.table import Table

from benchmarks import source_free
from benchmarks.source_free import Outcome

FOUND = [
    Outcome("natural", "nsm", "uniform", before=80.0, after=78.0, warned=True),  # harmed, found
    Outcome("natural", "bnm", "uniform", before=80.0, after=78.0, warned=False),  # harmed
    Outcome("natural", "nsm", "estimate", before=80.0, after=79.5, warned=True),  # in vain
    Outcome("natural", "bnm", "estimate", before=80.0, after=84.0, warned=False),
    Outcome("classes:4", "nsm", "uniform", before=60.0, after=90.0, warned=True),  # in vain
]


def rows(table: Table) -> list[Sequence[Any]]:
    return list(zip(*(column.cells for column in table.columns), strict=True))


def test_the_harm_check_is_counted_by_protocol_and_prior() -> None:
    assert rows(source_free._warnings(FOUND)) == [
        ("natural, uniform (2)", "2", "1", "0", "0"),
        ("natural, estimate (2)", "0", "0", "2", "1"),
        ("classes:4, uniform (1)", "0", "0", "1", "1"),
        ("classes:4, estimate (0)", "0", "0", "0", "0"),
        ("all (5)", "2", "1", "3", "2"),
    ]


def test_accuracies_are_means_at_equal_sizes_and_at_estimated_shares() -> None:
    both = [*FOUND[:4], FOUND[0]._replace(after=82.0)]
    assert rows(source_free._accuracies(both)) == [
        ("natural", "80.0", "80.0 / 79.5", "78.0 / 84.0")
    ]


def test_classes_cannot_be_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    """Before: --classes and --draws were taken, and changed nothing."""
    with pytest.raises(SystemExit):
        source_free.run("office31", "file.npz", "--classes", "7")
    assert "unrecognized arguments: --classes 7" in capsys.readouterr().err
