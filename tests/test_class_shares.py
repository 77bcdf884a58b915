"""Class shares as users write them."""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from equida.class_shares import shares_text, shares_title
from equida.errors import InputError


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("mug 0.7\npen 0.3\n", {"mug": 0.7, "pen": 0.3}),
        ("# counts\nphone box 3\npen 1\n", {"phone box": 0.75, "pen": 0.25}),
        ('class,share\n"mug, red",0.7\npen,0.3\n', {"mug, red": 0.7, "pen": 0.3}),
        ("mug,7\npen,3\n", {"mug": 0.7, "pen": 0.3}),
        ('{"mug": 0.7, "pen": 0.3}', {"mug": 0.7, "pen": 0.3}),
        ("[0.7, 0.3]", [0.7, 0.3]),
        ("0.7\n0.3\n", [0.7, 0.3]),
        ("\ufeffmug 1\n", {"mug": 1.0}),
    ],
)
def test_files(tmp_path: Path, content: str, expected: object) -> None:
    file = tmp_path / "shares.txt"
    file.write_text(content, encoding="utf-8")
    text = shares_text(str(file), "prior")
    assert json.loads(text) == expected
    assert shares_text(text, "prior") == text


@pytest.mark.parametrize(
    "given", ["0.7,0.3", [0.7, 0.3], (7, 3), np.array([0.7, 0.3]), "[7, 3]", " 0.7 , 0.3 "]
)
def test_lists(given: object) -> None:
    assert shares_text(given, "prior") == "[0.7, 0.3]"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("mug 0.7\npen\n", r"shares\.txt:2: read 'pen'; expected a class and its share"),
        ("mug 0.7\nmug 0.3\n", r"shares\.txt:2: read 'mug 0\.3'; expected a class once"),
        ("mug 0.7\n0.3\n", r"holds 1 shares with a class and 1 without"),
        ("mug 0.7\npen 0.2\n", r"2 shares sum to 0\.9; expected 1, or whole counts"),
        ("mug 1.2\npen -0.2\n", r"the share of 'pen' is -0\.2; expected 0 or more"),
        ("mug nan\npen 1\n", r"the share of 'mug' is nan"),
        ("", r"holds 0 shares with a class and 0 without"),
        ("{broken", r"shares\.txt is not JSON"),
        ('{"mug": "much"}', r"expected a share for each class"),
    ],
)
def test_bad_files_are_one_line(tmp_path: Path, content: str, message: str) -> None:
    file = tmp_path / "shares.txt"
    file.write_text(content)
    with pytest.raises(InputError, match=message) as error:
        shares_text(str(file), "prior")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("given", [None, 3, [], {}, ["a"], "nowhere.txt", [[0.5], [0.5]]])
def test_what_is_no_shares_is_one_line(given: object) -> None:
    with pytest.raises(InputError, match="prior is") as error:
        shares_text(given, "prior")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "given",
    ["[" * 100_000, f"[{10**400}, 0]", "[1e308, 1e308]", "[NaN, 1]", "~nobody/x", "a" * 5000, "\0"],
)
def test_hostile_text_is_an_input_error(given: str) -> None:
    with pytest.raises(InputError):
        shares_text(given, "prior")


def test_shares_of_a_class_whose_name_is_not_text_have_a_title() -> None:
    assert shares_title(shares_text({os.fsdecode(b"m\xfcg"): 1.0}, "prior")).startswith("shares ")


def test_a_series_of_pandas_is_read_by_its_labels() -> None:
    """`y.value_counts(normalize=True)` is sorted by size, not by class."""
    pandas = pytest.importorskip("pandas")
    counted = pandas.Series(["pen"] * 4 + ["mug"]).value_counts(normalize=True)
    assert json.loads(shares_text(counted, "prior")) == {"pen": 0.8, "mug": 0.2}
    numbered = pandas.Series([1.0, 1.0, 0.0, 1.0]).value_counts(normalize=True)
    assert json.loads(shares_text(numbered, "prior")) == {"1": 0.75, "0": 0.25}
    assert shares_text(pandas.Series([0.7, 0.3]), "prior") == "[0.7, 0.3]"
    with pytest.raises(InputError, match="expected a share for each class"):
        shares_text(pandas.DataFrame({"share": [0.7, 0.3]}, index=["mug", "pen"]), "prior")


@pytest.mark.parametrize(
    ("series", "expected"),
    [
        (pd.Series([0.7, 0.2, 0.1]), [0.7, 0.2, 0.1]),
        (pd.Series({2: 0.1, 1: 0.2, 0: 0.7}), {"2": 0.1, "1": 0.2, "0": 0.7}),
        (pd.Series([0.7, 0.2, 0.1])[::-1], {"2": 0.1, "1": 0.2, "0": 0.7}),
        (pd.Series([0.7, 0.3], index=range(1, 3)), {"1": 0.7, "2": 0.3}),
    ],
)
def test_a_series_whose_labels_do_not_count_from_0_is_read_by_them(
    series: "pd.Series[float]", expected: object
) -> None:
    assert json.loads(shares_text(series, "prior")) == expected
