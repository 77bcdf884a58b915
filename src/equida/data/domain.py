"""A domain: a sequence of samples that are read when they are asked for."""

import abc
import copy
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from equida.data.images import read_image
from equida.data.path_table import PathTable
from equida.data.rows import RowSelection, Values, take_rows

if TYPE_CHECKING:
    from PIL import Image

DomainT = TypeVar("DomainT", bound="Domain")


class Domain(abc.ABC):
    """Samples of one origin, with their labels where they are known.

    Attributes:
        name: what it is called in tables, e.g. "A" or the folder's name.
        classes: class names, the index is the label; empty when unlabelled and unknown.
        labels: one per sample, or None when the domain is unlabelled.
    """

    name: str
    classes: tuple[str, ...]
    labels: NDArray[np.int64] | None

    def __init__(self, name: str, classes: Sequence[str], labels: ArrayLike | None) -> None:
        self.name = name
        self.classes = tuple(classes)
        self.labels = None if labels is None else np.asarray(labels, np.int64)

    @abc.abstractmethod
    def __len__(self) -> int: ...

    @abc.abstractmethod
    def __getitem__(self, index: int) -> "Image.Image | Tensor":
        """The sample: an RGB image, or a row as a float32 tensor."""

    @abc.abstractmethod
    def identity(self, index: int) -> str:
        """What tells this sample from the others: its path, or "row 17"."""

    def select(self: DomainT, indices: ArrayLike) -> DomainT:
        """The samples at `indices`, in that order, still unread."""
        chosen = np.asarray(indices)
        chosen = np.flatnonzero(chosen) if chosen.dtype == bool else chosen.astype(np.int64)
        if len(chosen) and not -len(self) <= chosen.min() <= chosen.max() < len(self):
            raise IndexError(
                f"{self.name}: samples {chosen.min()} to {chosen.max()} of {len(self)}"
            )
        chosen = chosen % max(len(self), 1)
        subset = copy.copy(self)
        subset.labels = None if self.labels is None else self.labels[chosen]
        subset._narrow(chosen)
        return subset

    def relabel(self: DomainT, classes: Sequence[str], labels: NDArray[np.int64] | None) -> DomainT:
        """The same samples under another class list."""
        renamed = copy.copy(self)
        renamed.classes, renamed.labels = tuple(classes), labels
        return renamed

    def class_counts(self) -> NDArray[np.int64]:
        """Samples per class, in the order of `classes`; zeros when unlabelled."""
        known = np.zeros(0, np.int64) if self.labels is None else self.labels
        return np.bincount(known, minlength=len(self.classes)).astype(np.int64)

    @abc.abstractmethod
    def _narrow(self, indices: NDArray[np.int64]) -> None:
        """Keep the samples at `indices`; called on a copy."""

    def __repr__(self) -> str:
        labelled = "unlabelled" if self.labels is None else f"{len(self.classes)} classes"
        return f"{type(self).__name__}({self.name!r}, {len(self)} samples, {labelled})"


class ImageDomain(Domain):
    """Image files.

    Attributes:
        root: the folder that `paths` start from.
        paths: one per sample, '/' separated; absolute only for a file outside `root`.
    """

    def __init__(
        self,
        root: str | Path,
        paths: Sequence[str],
        *,
        name: str,
        classes: Sequence[str] = (),
        labels: ArrayLike | None = None,
    ) -> None:
        super().__init__(name, classes, labels)
        self.root = Path(root)
        self.paths = paths if isinstance(paths, PathTable) else PathTable(paths)

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> "Image.Image":
        return read_image(self.path(index))

    def path(self, index: int) -> Path:
        """The sample's file."""
        return self.root / self.paths[index]

    def identity(self, index: int) -> str:
        return self.paths[index]

    def _narrow(self, indices: NDArray[np.int64]) -> None:
        self.paths = self.paths.take(indices)


class ArrayDomain(Domain):
    """Rows of an array: features, a table, or small images as arrays.

    Attributes:
        values: (N, D), or (N, V, D) where each sample has V views and the first is the plain one,
            or (N, channels, height, width); numpy, torch or memory-mapped.
        paths: what each row was computed from, where that is known.

    >>> domain = ArrayDomain(np.eye(3, dtype=np.float16), name="toy")
    >>> domain[1], domain.select([2]).identity(0)
    (tensor([0., 1., 0.]), 'row 2')
    """

    def __init__(
        self,
        values: Values,
        *,
        name: str,
        classes: Sequence[str] = (),
        labels: ArrayLike | None = None,
        paths: Sequence[str] | None = None,
    ) -> None:
        super().__init__(name, classes, labels)
        self.values: Values = values
        self.paths = paths if paths is None or isinstance(paths, PathTable) else PathTable(paths)
        self._numbers: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return int(self.values.shape[0])

    @property
    def views(self) -> int:
        """How many views of each sample are stored."""
        return int(self.values.shape[1]) if len(self.values.shape) == 3 else 1

    def __getitem__(self, index: int) -> Tensor:
        return self.row(index)

    def row(self, index: int, view: int = 0) -> Tensor:
        """One view of one sample as float32."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"row {index} of {len(self)}")
        return self.rows([index % len(self)], view)[0]

    def rows(self, indices: ArrayLike | Tensor, view: int | ArrayLike | Tensor = 0) -> Tensor:
        """Many samples at once as float32, (batch, ...): one read for a whole batch.

        Args:
            indices: which samples.
            view: which view of them, one for all or one for each.
        """
        batch = take_rows(self.values, np.asarray(indices, np.int64))
        if len(self.values.shape) == 3:
            batch = batch[torch.arange(len(batch)), torch.as_tensor(np.asarray(view, np.int64))]
        return batch.to(torch.float32)

    def identity(self, index: int) -> str:
        if self.paths is not None:
            return self.paths[index]
        return f"row {index if self._numbers is None else int(self._numbers[index])}"

    def _narrow(self, indices: NDArray[np.int64]) -> None:
        self.values = RowSelection(self.values, indices)
        self.paths = None if self.paths is None else self.paths.take(indices)
        self._numbers = indices if self._numbers is None else self._numbers[indices]
