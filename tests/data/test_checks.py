"""Unreadable samples are all named, or left out and counted."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.small_data import CALL, blobs

import equida
from equida.data import (
    ArrayDomain,
    array_domain,
    check_readable,
    drop_samples,
    image_folder,
)
from equida.data.checks import check_finite, find_unreadable, without_unreadable
from equida.errors import InputError


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """Two classes of three images, of which one is empty and one is not an image."""
    for name in ("mug/1.png", "mug/2.png", "pen/1.png", "pen/2.png"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        Image.new("RGB", (4, 4)).save(path)
    (tmp_path / "mug" / "3.png").write_bytes(b"")
    (tmp_path / "pen" / "0.png").write_text("hello")
    return tmp_path


@pytest.mark.parametrize("deep", [False, True])
def test_every_unreadable_file_is_named(damaged: Path, deep: bool) -> None:
    counted: list[int] = []
    bad = check_readable(image_folder(damaged), deep=deep, advance=counted.append)
    assert [path for path, _ in bad] == ["mug/3.png", "pen/0.png"]
    assert sum(counted) == 6


def test_what_is_done_already_is_not_advised(tmp_path: Path) -> None:
    (tmp_path / "mug").mkdir()
    (tmp_path / "mug" / "1.png").write_text("hello")
    domain = image_folder(tmp_path)
    with pytest.raises(InputError, match=r"1 of 1 file .* replace or delete it:"):
        without_unreadable(domain, find_unreadable(domain), skip=True)


def test_without_leave_to_skip_the_job_stops_with_all_names(damaged: Path) -> None:
    domain = image_folder(damaged)
    with pytest.raises(InputError) as error:
        without_unreadable(domain, find_unreadable(domain), skip=False)
    said = str(error.value)
    assert "2 of 6 files" in said
    assert "mug/3.png: empty file" in said
    assert "pen/0.png: not an image" in said
    assert "--skip-unreadable" in said


def test_with_leave_they_are_left_out_and_counted(damaged: Path) -> None:
    domain = image_folder(damaged)
    kept = without_unreadable(domain, find_unreadable(domain), skip=True)
    assert list(kept.paths) == ["mug/1.png", "mug/2.png", "pen/1.png", "pen/2.png"]
    assert kept.labels is not None
    assert kept.labels.tolist() == [0, 0, 1, 1]


def test_nothing_readable_cannot_be_skipped(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"")
    domain = image_folder(tmp_path)
    with pytest.raises(InputError, match="1 of 1 file"):
        without_unreadable(domain, find_unreadable(domain), skip=True)


def test_rows_with_values_that_are_not_finite() -> None:
    values = np.zeros((600, 2))
    values[[3, 590]] = np.nan, np.inf
    domain = array_domain(values, name="x")
    bad = check_readable(domain)
    assert check_readable(domain, deep=True) == bad
    assert [row for row, _ in bad] == ["row 3", "row 590"]
    assert len(drop_samples(domain, find_unreadable(domain))) == 598


def test_every_view_of_a_row_is_looked_at() -> None:
    values = np.zeros((4, 3, 2))
    values[1, 2, 0], values[2, 1, 1] = np.nan, 1e300
    assert check_readable(array_domain(values, name="x")) == [
        ("row 1", "holds values that are not finite"),
        ("row 2", "holds values that are too large for float32"),
    ]


@pytest.mark.parametrize("shape", [(4, 6), (4, 1, 6), (4, 3, 6), (4, 1, 2, 3)])
def test_values_that_do_not_fit_into_float32_are_told_from_infinite_ones(
    shape: tuple[int, ...],
) -> None:
    for value, said in (
        (1e300, "column 4 that is too large for float32, 1e[+]300; scale the features down"),
        (-np.inf, "column 4 that is not finite; compute it again, remove it, or leave"),
    ):
        values = np.zeros(shape)
        values[2].reshape(-1)[-2] = value
        with pytest.raises(InputError, match=f"desk: row 2 has a value in {said}"):
            check_finite(array_domain(values, name="desk"))


def test_a_column_goes_by_its_name_and_the_advice_is_for_python_too() -> None:
    """Before: "column 1" of a data frame, and a flag of the command line alone."""
    rows = ArrayDomain(np.array([[1.0, np.nan]]), name="desk", columns=("height", "width"))
    with pytest.raises(InputError) as error:
        check_finite(rows)
    said = str(error.value)
    assert "desk: row 0 has a value in column 'width' that is not finite" in said
    assert said.endswith("leave it out with --skip-unreadable (in Python, skip_unreadable=True)")
    with pytest.raises(InputError, match=r"there: row 0 .* compute it again, or remove it$"):
        check_finite(rows, origin="there", skippable=False)


@pytest.mark.usefixtures("own_folder")
def test_values_whose_squares_overflow_are_refused() -> None:
    """Before: one of them ruined the statistics of its column, and all samples got one class."""
    data = blobs()
    rows = np.array(data.source, np.float64)
    rows[2, 1] = 1e25
    with pytest.raises(InputError, match=r"row 2 .* too large for float32, 1e\+25; scale"):
        equida.adapt((rows, data.labels), data.target, **CALL)
