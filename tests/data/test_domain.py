"""Domains of images and of rows: lazy, selectable, picklable."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from equida.data import ArrayDomain, ImageDomain, array_domain
from equida.errors import InputError


def test_images_are_read_when_they_are_asked_for(tmp_path: Path) -> None:
    domain = ImageDomain(tmp_path, ["mug/1.png"], name="desk", classes=["mug"], labels=[0])
    (tmp_path / "mug").mkdir()
    Image.new("RGB", (3, 2), (9, 8, 7)).save(tmp_path / "mug" / "1.png")
    assert domain[0].getpixel((0, 0)) == (9, 8, 7)
    assert domain.path(0) == tmp_path / "mug" / "1.png"
    assert domain.identity(0) == "mug/1.png"


def test_a_selection_keeps_labels_paths_and_type() -> None:
    domain = ImageDomain("root", ["a", "b", "c"], name="x", classes=["u", "v"], labels=[0, 1, 1])
    subset = domain.select([2, 0])
    assert isinstance(subset, ImageDomain)
    assert list(subset.paths) == ["c", "a"]
    assert subset.labels is not None
    assert subset.labels.tolist() == [1, 0]
    masked = domain.select(np.array([False, True, False]))
    assert [masked.identity(k) for k in range(len(masked))] == ["b"]
    assert list(domain.paths) == ["a", "b", "c"]
    with pytest.raises(IndexError):
        domain.select([3])


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_rows_are_float32_whatever_they_are_stored_as(kind: str) -> None:
    stored = np.arange(6, dtype=np.float16).reshape(3, 2)
    domain = array_domain(torch.from_numpy(stored) if kind == "torch" else stored, name="x")
    assert domain[1].dtype == torch.float32
    assert domain[-1].tolist() == [4.0, 5.0]
    assert domain.rows([2, 0]).tolist() == [[4.0, 5.0], [0.0, 1.0]]
    with pytest.raises(IndexError):
        domain[3]


def test_the_first_view_is_the_plain_one_and_the_others_can_be_asked_for() -> None:
    values = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    domain = array_domain(values, name="x")
    assert domain.views == 3
    assert domain[1].tolist() == [6.0, 7.0]
    assert domain.row(1, 2).tolist() == [10.0, 11.0]
    assert domain.rows([0, 1], view=[1, 2]).tolist() == [[2.0, 3.0], [10.0, 11.0]]


def test_features_that_still_have_a_graph() -> None:
    """As they come from a network without `no_grad`."""
    rows = torch.ones(3, 2, requires_grad=True) * 2
    domain = array_domain(rows, name="d")
    assert not domain.rows([0, 1]).requires_grad
    assert domain.rows([0]).numpy().tolist() == [[2.0, 2.0]]


def test_small_images_as_arrays_keep_their_shape() -> None:
    domain = array_domain(np.zeros((2, 1, 28, 28)), name="x")
    assert (domain.views, tuple(domain[0].shape)) == (1, (1, 28, 28))


def test_a_selected_row_knows_its_number_and_travels_to_another_process() -> None:
    domain = array_domain(np.eye(4), [0, 1, 0, 1], name="x").select([3, 1]).select([0])
    travelled = pickle.loads(pickle.dumps(domain))
    assert isinstance(travelled, ArrayDomain)
    assert travelled.identity(0) == "row 3"
    assert travelled[0].tolist() == [0.0, 0.0, 0.0, 1.0]
    assert np.asarray(travelled.values).tolist() == [[0.0, 0.0, 0.0, 1.0]]


def test_labels_may_be_names_or_numbers() -> None:
    by_name = array_domain(np.zeros((3, 1)), ["pen", "mug", "pen"], name="x")
    assert by_name.classes == ("mug", "pen")
    assert by_name.labels is not None
    assert by_name.labels.tolist() == [1, 0, 1]
    assert by_name.class_counts().tolist() == [1, 2]
    numbered = array_domain(np.zeros((2, 1)), [0, 2], name="x")
    assert numbered.classes == ("0", "2")
    assert numbered.labels is not None
    assert numbered.labels.tolist() == [0, 1]
    assert array_domain(np.zeros((2, 1)), [-1, -1], name="x").labels is None


def test_labels_in_half_precision() -> None:
    """Before: a warning of numpy, whose bound for whole numbers overflows there."""
    halves = array_domain(np.zeros((3, 1)), np.array([5, 2048, 5], np.float16), name="x")
    assert halves.classes == ("5", "2048")


@pytest.mark.parametrize(
    ("values", "labels", "classes", "said"),
    [
        (np.zeros(3), None, None, "shape (3,)"),
        (np.zeros((0, 3)), None, None, "no rows"),
        (np.array([["a"]]), None, None, "expected real numbers"),
        (np.zeros((2, 3), "c8"), None, None, "values are complex64; expected real numbers"),
        (torch.zeros((2, 3), dtype=torch.complex64), None, None, "expected real numbers"),
        (np.zeros((2, 3), "M8[s]"), None, None, "expected real numbers"),
        (np.zeros((2, 3), [("a", "f4")]), None, None, "expected real numbers"),
        (np.zeros((2, 3), object), None, None, "expected real numbers"),
        (np.zeros((2, 0)), None, None, "each row is empty"),
        (np.zeros((2, 3, 0, 4)), None, None, "each row is empty"),
        (np.float64(3.0), None, None, "shape ()"),
        ([[1.0], [1.0, 2.0]], None, None, "are not an array"),
        (np.zeros((2, 3)), ["a", None], None, "row 1 has label None"),
        (np.zeros((2, 3)), np.array(["a", float("nan")], object), None, "row 1 has label nan"),
        (np.zeros((2, 3)), ["a", ""], None, "class '' has no visible name"),
        (np.zeros((2, 3)), ["a", "b\x1b[0m"], None, r"class 'b\x1b[0m' has no visible name"),
        (np.zeros((2, 3)), [0], None, "one for each of 2 rows"),
        (np.zeros((2, 3)), [0, -1], None, "label every row, or none"),
        (np.zeros((2, 3)), [0, 5], ["a", "b"], "row 1 has label 5"),
        (np.zeros((2, 3)), [0.5, 1.0], None, "class names or integers"),
        (np.zeros((2, 3)), ["a", "z"], ["a", "b"], "'z'"),
    ],
)
def test_arrays_that_cannot_be_a_domain_are_refused_in_one_line(
    values: np.ndarray, labels: list[int] | None, classes: list[str] | None, said: str
) -> None:
    with pytest.raises(InputError, match=r"^shop: ") as error:
        array_domain(values, labels, classes=classes, name="shop")
    assert said in str(error.value)
    assert "\n" not in str(error.value)
