"""Fields of dataclasses: what is read, what is refused, and in which words."""

import pickle
import subprocess
import sys
from dataclasses import dataclass
from typing import Any, Literal, Optional

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from equida.errors import InputError
from equida.fields import FieldError, bounded, exact_text, field_docstrings, normalise, specs


@dataclass(frozen=True)
class Example:
    count: int = bounded(3, minimum=1)
    """How many,
    on two lines."""
    share: float = bounded(0.5, minimum=0, below=1)
    ratio: float = bounded(0.5, minimum=0, maximum=1)
    rate: float = 1.0
    limit: float | None = bounded(None, minimum=0)
    switch: bool = False
    """Whether."""
    name: str = ""
    mode: Literal["fast", "slow"] = "fast"
    level: Literal[1, 2] = 1
    label: Optional[str] = None  # noqa: UP045 the old spelling is understood too

    def __post_init__(self) -> None:
        normalise(self)


SPECS = specs(Example)


@pytest.mark.parametrize(
    ("field", "text", "expected"),
    [
        ("count", "7", 7),
        ("count", "1e3", 1000),
        ("share", "0", 0.0),
        ("rate", "-1e-3", -0.001),
        ("limit", "none", None),
        ("limit", "None", None),
        ("limit", "2", 2.0),
        ("switch", "yes", True),
        ("switch", "False", False),
        ("name", "none", "none"),
        ("name", "3", "3"),
        ("mode", "slow", "slow"),
        ("level", "2", 2),
        ("label", "none", None),
        ("label", "x", "x"),
    ],
)
def test_text_is_read_as_the_type_of_the_field(field: str, text: str, expected: Any) -> None:
    got = SPECS[field].read(text)
    assert got == expected
    assert type(got) is type(expected)


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("count", np.int64(7), 7),
        ("count", np.float64(7.0), 7),
        ("count", 7.0, 7),
        ("rate", 2, 2.0),
        ("rate", np.float32(0.5), 0.5),
        ("switch", np.bool_(True), True),
        ("limit", None, None),
        ("name", np.str_("a"), "a"),
    ],
)
def test_values_of_python_and_numpy_get_the_type_of_the_field(
    field: str, value: Any, expected: Any
) -> None:
    got = SPECS[field].check(value)
    assert got == expected
    assert type(got) is type(expected)
    assert getattr(Example(**{field: value}), field) == expected


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("count", 0, "count is 0; it must be a whole number of at least 1"),
        ("count", 1.5, "count is 1.5; it must be a whole number of at least 1"),
        ("count", True, "count is True; it must be a whole number of at least 1"),
        ("count", "7", "count is '7'; it must be a whole number of at least 1"),
        ("count", float("inf"), "count is inf; it must be a whole number of at least 1"),
        ("share", 1.0, "share is 1.0; it must be a number of at least 0 and below 1"),
        ("ratio", 1.5, "ratio is 1.5; it must be a number from 0 to 1"),
        ("rate", float("nan"), "rate is nan; it must be a finite number"),
        ("rate", 10**400, "; it must be a finite number"),
        ("rate", None, "rate is None; it must be a finite number"),
        ("limit", -1, "limit is -1; it must be a finite number of at least 0, or none"),
        ("switch", 1, "switch is 1; it must be true or false"),
        ("switch", "yes", "switch is 'yes'; it must be true or false"),
        ("name", 3, "name is 3; it must be a text"),
        ("mode", "slwo", "mode is 'slwo'; it must be one of fast, slow"),
        ("level", True, "level is True; it must be one of 1, 2"),
        ("rate", np.ones(2), "it must be a finite number"),
    ],
)
def test_values_that_are_not_allowed_are_refused_in_one_style(
    field: str, value: Any, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        SPECS[field].check(value)
    assert message in str(caught.value)
    with pytest.raises(InputError):
        Example(**{field: value})


def test_a_text_that_is_not_a_number_is_quoted_under_the_name_that_the_user_knows() -> None:
    with pytest.raises(FieldError, match=r"nsm\.r is 'much'; it must be a number from 0 to 1"):
        SPECS["ratio"].read("much", "nsm.r")


def test_the_parts_of_a_complaint_survive_a_process_pool() -> None:
    error = pickle.loads(pickle.dumps(FieldError("r", 7, "a number")))
    assert (error.name, error.value, error.expected) == ("r", 7, "a number")
    assert str(error) == "r is 7; it must be a number"


@given(st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers(), st.booleans()))
def test_exact_text_is_read_as_the_same_value(value: Any) -> None:
    field = {float: "rate", int: "level", bool: "switch"}[type(value)]
    if field == "level":
        assert int(exact_text(value)) == value
    else:
        assert SPECS[field].read(exact_text(value)) == value


def test_docstrings_become_one_line() -> None:
    assert field_docstrings(Example) == {"count": "How many, on two lines.", "switch": "Whether."}
    assert SPECS["count"].meaning == "How many, on two lines."


def test_a_class_without_source_has_no_docstrings() -> None:
    import dataclasses

    made = dataclasses.make_dataclass("Made", [("a", int, 1)])
    assert field_docstrings(made) == {}
    assert specs(made)["a"].read("2") == 2


def test_a_field_of_another_type_is_a_mistake_of_the_class() -> None:
    @dataclass
    class Wrong:
        sizes: tuple[int, ...] = ()

    with pytest.raises(TypeError, match=r"Wrong.sizes is of type tuple\[int, ...\]"):
        specs(Wrong)


def test_importing_fields_imports_no_torch() -> None:
    code = "import sys, equida.fields; print('torch' in sys.modules or 'numpy' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout == "False\n"
