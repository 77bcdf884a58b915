"""A domain from arrays or tensors, and what their labels mean."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from equida.data.classes import check_class_names, match_classes
from equida.data.domain import ArrayDomain
from equida.data.rows import check_values
from equida.errors import InputError, counted

MOST_WHOLE = 2.0**53
"""From here on, floats are too coarse to tell whole numbers apart."""


def array_domain(
    values: ArrayLike | Tensor,
    labels: ArrayLike | None = None,
    *,
    classes: Sequence[str] | None = None,
    name: str,
) -> ArrayDomain:
    """A domain of data in memory: rows of features or of a table, or small images as arrays.

    Args:
        values: (rows, features), (rows, views, features) or (rows, channels, height, width); of a
            data frame, the names of its columns are kept, and domains whose columns differ are
            refused.
        labels: one for each row: class names, or indices into `classes`; None for unlabelled data.
        classes: class names; by default the names or numbers found in `labels`, sorted.
        name: the domain's name in tables and messages.

    >>> shop = array_domain(np.zeros((2, 5)), ["mug", "bike"], name="shop")
    >>> shop
    ArrayDomain('shop', 2 samples, 2 classes)
    >>> shop.classes, shop.labels
    (('bike', 'mug'), array([1, 0]))
    >>> array_domain(np.zeros((3, 5)), name="desk").labels is None
    True
    """
    if isinstance(values, Tensor):
        _check_tensor(values, name)
    rows = values.detach() if isinstance(values, Tensor) else _numbers(values, name)
    check_values(rows, name)
    if len(rows) == 0:
        raise InputError(f"{name}: values have no rows; expected at least one")
    _check_index(values, labels, name)
    known, names = labels_and_classes(labels, len(rows), classes, name)
    columns = _column_names(values)
    domain = ArrayDomain(rows, name=name, classes=names, labels=known, columns=columns)
    domain.index = getattr(values, "index", None) if hasattr(values, "columns") else None
    return domain


def _check_tensor(values: Tensor, name: str) -> None:
    """Refuse a tensor whose values cannot be read as they are."""
    if values.layout != torch.strided:
        raise InputError(f"{name}: values are a sparse tensor; make them dense with .to_dense()")
    if values.is_quantized:
        raise InputError(f"{name}: values are a quantized tensor; give .dequantize()")
    if values.is_meta:
        raise InputError(f"{name}: values are a meta tensor, which has none; give the real ones")


def _check_index(values: Any, labels: Any, name: str) -> None:
    """Refuse labels of a pandas Series whose index is not the rows', but shares some of it.

    An index that does not tell its rows apart says nothing of their order.
    """
    rows: Any = getattr(values, "index", None)
    theirs: Any = getattr(labels, "index", None)
    if not hasattr(rows, "equals") or not hasattr(theirs, "equals") or rows.equals(theirs):
        return
    if not (rows.is_unique and theirs.is_unique) or len(rows) != len(theirs):
        return
    shared = len(set(rows) & set(theirs))
    if shared:
        seen, cure = "is not that of", "give both the same index"
        if shared == len(rows):
            seen, cure = "has the rows in another order than", "give y.loc[X.index]"
        raise InputError(
            f"{name}: the index of the labels {seen} the values; {cure}, or y.to_numpy() where they"
            " are in one order all the same"
        )


def labels_and_classes(
    labels: ArrayLike | None, count: int, classes: Sequence[str] | None, name: str
) -> tuple[NDArray[np.int64] | None, tuple[str, ...]]:
    """Labels as indices, and the class list that they point into.

    Args:
        labels: class names or indices, one for each row (as floats, too, if they are whole); None,
            or -1 in every row: unlabelled.
        count: how many rows there are.
        classes: the class list, if it is known.
        name: where the labels come from, for error messages.
    """
    names = tuple(classes or ())
    check_class_names(names, name)
    missing = labels is None or _all_missing(labels, count)
    found = None if missing else label_array(labels, name)
    if found is not None and found.dtype.kind in "iu" and (found == -1).all():
        found = None
    if found is None:
        return None, names
    if found.shape != (count,):
        raise InputError(
            f"{name}: labels have shape {found.shape}; expected one for each of"
            f" {counted(count, 'row')}" + (", as .ravel() gives" if found.size == count else "")
        )
    if found.dtype.kind == "b" and not names:
        found = found.astype(str)  # as truth values among objects are read
    if found.dtype.kind in "UO":
        for row, label in enumerate(found.tolist()):
            if not isinstance(label, str | int | np.integer):
                raise InputError(
                    f"{name}: row {row} has label {label!r}; expected class names or integers, and"
                    " rows without a label left out"
                )
        # A member of an Enum that is text has another str().
        texts = [str.__str__(each) if isinstance(each, str) else str(each) for each in found]
        return _from_names(texts, names, name)
    if found.dtype.kind not in "iub":
        raise InputError(f"{name}: labels are {found.dtype}; expected class names or integers")
    if found.min() < 0:
        wrong = int((found < 0).sum())
        raise InputError(
            f"{name}: {wrong:,} of {counted(count, 'label')} {'is' if wrong == 1 else 'are'}"
            " negative, which means unlabelled; label every row, or none of them (-1 everywhere),"
            " and give classes that are negative numbers as text, such as y.astype(str)"
        )
    if not names:  # numbers are names then: labels 1, 2 and 5 are three classes, not six
        numbers, indices = np.unique(found, return_inverse=True)
        return indices, tuple(map(str, numbers))
    if found.max() >= len(names):
        row = int(np.argmax(found >= len(names)))
        raise InputError(
            f"{name}: row {row} has label {found[row]}; expected 0 to {len(names) - 1},"
            f" an index into its {len(names)} classes"
        )
    return found.astype(np.int64), names


def _all_missing(labels: Any, count: int) -> bool:
    """Whether there are labels for every row, each of them missing: None, NaN, or what pandas has
    in their place."""
    values = labels.to_numpy() if hasattr(labels, "to_numpy") else labels
    if isinstance(values, Tensor):
        if not values.is_floating_point() or values.is_meta or values.layout != torch.strided:
            return False
        values = values.detach().flatten().tolist()
    elif isinstance(values, np.ndarray):
        if values.dtype.kind not in "fOM":  # every other kind has a value in each row
            return False
        values = values.ravel().tolist()
    if not isinstance(values, list | tuple) or len(values) != count:
        return False
    missing = ("NoneType", "NAType", "NaTType")
    return all(
        type(each).__name__ in missing or (isinstance(each, float) and each != each)
        for each in values
    )


def label_array(labels: Any, name: str) -> NDArray[Any]:
    """Labels as an array, in which whole numbers are integers.

    Args:
        labels: an array, a tensor, a list or a column of a table.
        name: where they come from, for error messages.
    """
    values = labels.to_numpy() if hasattr(labels, "to_numpy") else labels
    found = _as_array(values, "labels", name)
    if found.dtype.kind == "U" and isinstance(labels, list | tuple):
        # numpy makes text of whatever stands among names, so that nan would be a class.
        found = np.array(labels, dtype=object)
    return whole_numbers(found, name)


def whole_numbers(labels: NDArray[Any], name: str) -> NDArray[Any]:
    """Labels that a table holds as floats or among objects as integers, if they are whole numbers.

    Class names stay as they are.

    Args:
        labels: class names or numbers.
        name: where they come from, for error messages.

    Raises:
        InputError: an array of floats has one that is not whole.

    >>> whole_numbers(np.array([1.0, 5.0]), "desk").tolist()
    [1, 5]
    """
    if labels.dtype.kind == "O":
        return labels.astype(np.int64) if all(map(_is_whole, labels.flat)) else labels
    if labels.dtype.kind != "f":
        return labels
    labels = labels.astype(np.float64)  # half precision ends long before MOST_WHOLE
    wrong = np.flatnonzero((labels != np.floor(labels)) | (np.abs(labels) >= MOST_WHOLE))
    if len(wrong):
        row = int(wrong[0])
        number = labels.reshape(-1)[row]
        raise InputError(
            f"{name}: row {row} has label {number:g}; expected class names or integers"
            + (", and rows without a label left out" if np.isnan(number) else "")
        )
    return labels.astype(np.int64)


def _is_whole(label: object) -> bool:
    if isinstance(label, float | np.floating):
        return float(label).is_integer() and abs(float(label)) < MOST_WHOLE
    return isinstance(label, int | np.integer) and not isinstance(label, bool)


def _from_names(
    labels: list[str], classes: tuple[str, ...], name: str
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    found = sorted(set(labels))
    names = classes or tuple(found)
    index = dict(zip(found, match_classes(found, names, name), strict=True))
    return np.array([index[label] for label in labels], np.int64), names


def _numbers(values: Any, name: str) -> NDArray[Any]:
    """The values as an array; a data frame's columns may hold different kinds of numbers."""
    if hasattr(values, "nnz") and hasattr(values, "toarray"):
        raise InputError(f"{name}: values are a sparse matrix; make them dense with .toarray()")
    dtypes: Any = getattr(values, "dtypes", None)
    if not hasattr(dtypes, "items") or not hasattr(values, "to_numpy"):
        return _as_array(values, "values", name)
    for column, dtype in dtypes.items():
        if getattr(dtype, "kind", "O") not in "fiub":
            cure = "; if they are, give .astype(float)" if getattr(dtype, "kind", "") == "O" else ""
            raise InputError(
                f"{name}: column {column!r} holds {dtype}; expected real numbers{cure}"
            )
    found = np.asarray(values.to_numpy())
    # Columns of several kinds, or of pandas' own, become objects unless a type is asked for.
    return found if found.dtype.kind != "O" else values.to_numpy(dtype=float, na_value=np.nan)


def _column_names(values: Any) -> tuple[str, ...]:
    """The names of a data frame's columns as text; () for an array, and for the numbers that a
    frame without names has."""
    names = tuple(getattr(values, "columns", ())) if hasattr(values, "to_numpy") else ()
    return () if names == tuple(range(len(names))) else tuple(map(str, names))


def _as_array(values: ArrayLike, what: str, name: str) -> NDArray[Any]:
    if np.ma.is_masked(values):
        raise InputError(f"{name}: some {what} are masked; leave these rows out, or fill them")
    try:
        return np.asarray(values.detach().cpu() if isinstance(values, Tensor) else values)
    except (ValueError, TypeError, RuntimeError, OverflowError) as error:  # such as ragged lists
        raise InputError(f"{name}: {what} are not an array ({error})") from None
