"""Paths in two buffers behave like the list they were made from."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from equida.data.path_table import PathTable

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@given(st.lists(NAMES, max_size=20))
def test_it_is_the_sequence_it_was_made_from(paths: list[str]) -> None:
    table = PathTable(paths)
    assert list(table) == paths
    assert list(pickle.loads(pickle.dumps(table))) == paths
    assert list(table[1:4]) == paths[1:4]


@given(st.lists(NAMES, min_size=1, max_size=9), st.data())
def test_a_selection_of_a_selection(paths: list[str], data: st.DataObject) -> None:
    rows = st.lists(st.integers(0, len(paths) - 1), min_size=1, max_size=9)
    first = data.draw(rows)
    second = data.draw(st.lists(st.integers(0, len(first) - 1), max_size=9))
    chosen = PathTable(paths).take(first).take(second)
    assert list(chosen) == [paths[first[k]] for k in second]


def test_negative_and_outside_indices_are_those_of_a_list() -> None:
    table = PathTable(["a", "b"])
    assert (table[-1], table.take([0, 1])[-2]) == ("b", "a")
    for outside in (2, -3):
        with pytest.raises(IndexError):
            table[outside]


def test_a_name_that_is_not_utf8_survives() -> None:
    name = b"caf\xe9.jpg".decode("utf-8", "surrogateescape")
    assert PathTable([name])[0] == name


def test_it_takes_a_few_bytes_more_than_its_text() -> None:
    paths = [f"class/{number:09d}.jpg" for number in range(10_000)]
    assert len(pickle.dumps(PathTable(paths))) < sum(map(len, paths)) + 8 * 10_000 + 1_000
