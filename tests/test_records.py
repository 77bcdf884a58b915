"""What is read from JSON has the types that its reader counts on."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from equida.errors import InputError
from equida.records import conform, construct


@dataclass(frozen=True)
class Inner:
    names: list[str]
    share: float = 0.5


@dataclass(frozen=True)
class Record:
    inner: Inner | None
    kind: Literal["a", "b"] = "a"
    params: Mapping[str, Any] | None = None


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (1, int), (1, float), (0.5, float), ("a", str), (True, bool), (None, int | None),
        ([1, 2], list[int]), ({"a": [None, 1.5]}, Mapping[str, list[float | None]]),
        ({"inner": {"names": ["a"], "share": 1}, "kind": "b", "other": object()}, Record),
        ({"inner": None, "params": {"r": 0.5, "eps": None, "on": True}}, Record), ({}, Record),
    ],
)  # fmt: skip
def test_what_fits(value: Any, hint: Any) -> None:
    conform(value, hint, "f.json")


@pytest.mark.parametrize(
    ("value", "hint", "said"),
    [
        ("1", int, "it is '1'; expected a whole number"),
        (True, int, "it is True; expected a whole number"),
        (1.0, int, "it is 1.0; expected a whole number"),
        (10**30, int, "expected a whole number"),
        (10**400, float, "expected a number"),
        (False, float, "it is False; expected a number"),
        (None, str, "it is None; expected a text"),
        ([1, "a"], list[int], "[1] is 'a'; expected a whole number"),
        ({"a": 1}, list[int], "it is a dict; expected a list"),
        ("abc", list[str], "it is 'abc'; expected a list"),
        ({"inner": {"names": "a"}}, Record, "inner.names is 'a'; expected a list"),
        ({"inner": 7}, Record, "inner is 7; expected a table of names and values or nothing"),
        ({"kind": "c"}, Record, "kind is 'c'; expected one of a, b"),
        ({"kind": []}, Record, "kind is a list; expected one of a, b"),
        ({"params": {"r": [1]}}, Record, "params.r is a list; expected a plain value"),
        ([], Record, "it is a list; expected a table"),
        ("x" * 500, int, "...; expected a whole number"),
    ],
)
def test_what_does_not_fit_is_said_on_one_short_line(value: Any, hint: Any, said: str) -> None:
    with pytest.raises(InputError) as error:
        conform(value, hint, "f.json")
    message = str(error.value)
    assert message.startswith("f.json: ")
    assert said in message
    assert "\n" not in message
    assert len(message) < 150


def test_a_record_is_made_of_known_fields_and_lacks_none() -> None:
    assert construct(Inner, {"names": ["a"]}, "f.json: inner") == Inner(["a"], 0.5)
    for values, said in (
        ({"share": 1.0}, "f.json: inner has no 'names'; it is damaged"),
        ({"names": [], "b": 1}, "f.json: inner has a field 'b' that this version"),
        (7, "f.json: inner is 7; expected a table"),
    ):
        with pytest.raises(InputError, match=re.escape(said)):
            construct(Inner, values, "f.json: inner")  # type: ignore[arg-type]
