"""A domain from arrays or tensors, and what their labels mean."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from equida.data.domain import ArrayDomain
from equida.errors import InputError


def array_domain(
    values: ArrayLike | Tensor,
    labels: ArrayLike | None = None,
    *,
    classes: Sequence[str] | None = None,
    name: str,
) -> ArrayDomain:
    """A domain of the rows of `values`.

    Args:
        values: (N, D), (N, V, D) or (N, channels, height, width).
        labels: one per row: class names, or indices into `classes`.
        classes: class names; without it the names found in `labels`, sorted, or "0", "1", ...

    >>> array_domain(np.zeros((2, 5)), ["mug", "bike"], name="shop").classes
    ('bike', 'mug')
    """
    rows = values if isinstance(values, Tensor) else np.asarray(values)
    shape = tuple(rows.shape)
    if len(shape) not in (2, 3, 4):
        raise InputError(
            f"{name}: values have shape {shape}; expected (rows, features), (rows, views, features)"
            " or (rows, channels, height, width)"
        )
    if not isinstance(rows, Tensor) and rows.dtype.kind not in "fiub":
        raise InputError(f"{name}: values are {rows.dtype}; expected numbers")
    if shape[0] == 0:
        raise InputError(f"{name}: values have no rows; expected at least one")
    known, names = labels_and_classes(labels, shape[0], classes, name)
    return ArrayDomain(rows, name=name, classes=names, labels=known)


def labels_and_classes(
    labels: ArrayLike | None, count: int, classes: Sequence[str] | None, name: str
) -> tuple[NDArray[np.int64] | None, tuple[str, ...]]:
    """Labels as indices and the class list they point into; -1 in every row means unlabelled."""
    names = tuple(classes or ())
    found = None if labels is None else np.asarray(labels)
    if found is not None and found.dtype.kind in "iu" and (found == -1).all():
        found = None
    if found is None:
        return None, names
    if found.shape != (count,):
        raise InputError(
            f"{name}: labels have shape {found.shape}; expected one for each of {count} rows"
        )
    if found.dtype.kind in "UO":
        return _from_names([str(label) for label in found], names, name)
    if found.dtype.kind not in "iub":
        raise InputError(f"{name}: labels are {found.dtype}; expected class names or integers")
    if found.min() < 0:
        raise InputError(
            f"{name}: {int((found < 0).sum())} of {count} labels are negative;"
            " label every row, or none of them (-1 everywhere)"
        )
    names = names or numbered_classes(int(found.max()), name)
    if found.max() >= len(names):
        row = int(np.argmax(found >= len(names)))
        raise InputError(
            f"{name}: row {row} has label {found[row]}; expected 0 to {len(names) - 1},"
            f" an index into its {len(names)} classes"
        )
    return found.astype(np.int64), names


def numbered_classes(highest: int, where: str) -> tuple[str, ...]:
    """Class names "0", "1", ... up to a label."""
    if highest >= 100_000:
        raise InputError(f"{where}: label {highest}; expected class numbers, counted from 0")
    return tuple(map(str, range(highest + 1)))


def _from_names(
    labels: list[str], classes: tuple[str, ...], name: str
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    names = classes or tuple(sorted(set(labels)))
    index = {known: number for number, known in enumerate(names)}
    unknown = sorted(set(labels) - set(names))
    if unknown:
        raise InputError(
            f"{name}: labels {', '.join(map(repr, unknown[:5]))} are not among its"
            f" {len(names)} classes"
        )
    return np.array([index[label] for label in labels], np.int64), names
