"""Arrays as a domain: values and labels of every kind, and what goes by an index."""

from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from tests.small_data import CALL, blobs
from torch import Tensor

import equida
from equida import EquidaClassifier
from equida.data import array_domain
from equida.errors import InputError


@pytest.mark.usefixtures("own_folder")
def test_missing_labels_are_no_class() -> None:
    """Before: numpy made the text "nan" of it."""
    data = blobs()
    names: list[Any] = [f"class {label}" for label in data.labels]
    names[3] = float("nan")
    with pytest.raises(InputError, match="row 3 has label nan; expected class names or integers"):
        equida.adapt((data.source, names), data.target, **CALL)


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
def test_a_column_of_missing_labels_is_unlabelled(missing: Any) -> None:
    """Before: refused, while -1 in every row was not."""
    data = blobs()
    labels = pd.Series([missing] * 60, dtype=object)
    assert array_domain(data.target, labels, name="desk").labels is None
    assert array_domain(data.target, [missing] * 60, name="desk").labels is None
    assert array_domain(data.target, (missing,) * 60, name="desk").labels is None
    column = np.full((60, 1), np.nan)
    assert array_domain(data.target, column, name="desk").labels is None
    assert array_domain(data.target, torch.from_numpy(column), name="desk").labels is None
    with pytest.raises(InputError, match="labels are not an array"):
        array_domain(data.target, torch.zeros(60, device="meta"), name="desk")
    with pytest.raises(InputError, match=r"labels have shape \(5,\)"):
        array_domain(data.target, np.full(5, None), name="desk")


@pytest.mark.usefixtures("own_folder")
def test_arrays_of_other_kinds() -> None:
    data = blobs()
    masked = np.ma.masked_array(data.source, data.source > 1)
    with pytest.raises(InputError, match="source: some values are masked"):
        equida.adapt((masked, data.labels), data.target, **CALL)
    labels = torch.tensor(data.labels, dtype=torch.float32, requires_grad=True)
    run = equida.adapt((torch.tensor(data.source), labels), data.target, **CALL)
    with pytest.raises(InputError, match="expected X alone"):
        run.predict((data.target, data.labels))


@pytest.mark.usefixtures("own_folder")
@pytest.mark.parametrize(
    ("spoilt", "said"),
    [
        (lambda rows: rows.to_sparse(), r"a sparse tensor; make them dense with \.to_dense\(\)"),
        (lambda rows: torch.quantize_per_tensor(rows, 0.1, 0, torch.qint8), "a quantized tensor"),
        (lambda rows: rows.to("meta"), "a meta tensor"),
    ],
    ids=["sparse", "quantized", "meta"],
)
def test_tensors_without_plain_values(spoilt: Callable[[Tensor], Tensor], said: str) -> None:
    """Before: torch's own messages."""
    data = blobs()
    rows = spoilt(torch.from_numpy(data.source))
    with pytest.raises(InputError, match=f"values are {said}"):
        array_domain(rows, name="desk")
    with pytest.raises(InputError, match=f"source: values are {said}"):
        equida.adapt((rows, data.labels), data.target, **CALL)


@pytest.mark.usefixtures("own_folder")
def test_labels_with_the_index_in_another_order() -> None:
    """Before: they were taken by position, which trains on wrong labels."""
    data = blobs()
    rows = pd.DataFrame(data.source).sample(frac=1.0, random_state=0)
    labels = pd.Series(data.labels)
    options = CALL | {"out": "run"}
    with pytest.raises(InputError, match="index of the labels has the rows in another order"):
        equida.adapt((rows, labels), data.target, **options)
    shuffled = labels.loc[rows.index]
    with pytest.raises(InputError, match="index of the labels has the rows in another order"):
        array_domain(pd.DataFrame(data.source), shuffled, name="shop")
    equida.adapt((rows, labels.loc[rows.index]), data.target, **options)
    equida.adapt((rows, labels.loc[rows.index].to_numpy()), data.target, **options)


def test_labels_whose_index_is_shifted() -> None:
    """Before: they were paired by position, which trains on wrong labels."""
    data = blobs()
    frame, labels = pd.DataFrame(data.source), pd.Series(data.labels)
    rows, wrong = frame.drop(index=range(5)), labels.drop(index=range(55, 60))
    said = "the index of the labels is not that of the values; give both the same index, or"
    with pytest.raises(InputError, match=said):
        array_domain(rows, wrong, name="shop")
    right = array_domain(rows, wrong.to_numpy(), name="shop")
    assert right.labels is not None
    assert right.labels.tolist() == wrong.tolist()


def test_frames_that_were_put_together_have_no_order_by_their_index() -> None:
    """Before: refused with an advice that gives wrong labels, or ended in pandas' own message."""
    data = blobs()
    one = pd.DataFrame(data.source[:30])
    both, labels = pd.concat([one, one]), pd.Series(data.labels)
    assert len(array_domain(both, labels, name="shop")) == 60
    flags = pd.Series(data.labels[:2], index=[True, False])
    assert len(array_domain(pd.DataFrame(data.source[:2], index=[False, False]), flags, name="s"))
    pairs = pd.MultiIndex.from_product([range(6), range(10)])
    assert len(array_domain(pd.DataFrame(data.source, index=pairs), labels, name="shop")) == 60


class Animal(str, Enum):  # noqa: UP042  # whose str() is another than its value
    """Names that begin alike, longer than their values."""

    CAT_A = "ab"
    CAT_B = "cd"
    DOG = "ef"
    FOX = "gh"


def test_members_of_an_enum_are_the_text_that_they_are() -> None:
    """Before: numpy cut their names to the length of the values, which merged classes."""
    data = blobs()
    labels = [list(Animal)[number] for number in data.labels]
    model = EquidaClassifier(iterations=2, batch_size=8).fit(
        data.source, labels, X_target=data.target
    )
    assert model.classes_.tolist() == ["ab", "cd", "ef", "gh"]
    domain = array_domain(data.source, labels, name="zoo")
    assert domain.classes == ("ab", "cd", "ef", "gh")
    assert domain.labels is not None
    assert domain.labels.tolist() == data.labels.tolist()
