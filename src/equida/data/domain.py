"""A domain: a sequence of samples that are read when they are needed."""

import abc
import copy
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from equida.data.images import read_image
from equida.data.path_table import PathTable
from equida.data.rows import RowSelection, Values, check_values, take_rows
from equida.data.transforms import TrainCrop
from equida.errors import InputError, printable

if TYPE_CHECKING:
    from PIL import Image

DomainT = TypeVar("DomainT", bound="Domain")


class Domain(abc.ABC):
    """Samples of one origin, with their labels where they are known.

    A domain is a sequence: `len(domain)` samples, of which `domain[index]` reads one.

    Attributes:
        name: what the domain is called in tables, such as "A" or the folder's name.
        classes: class names; the index is the label. Empty where no class list is known.
        labels: one label for each sample, or None when the domain is unlabelled.
        train_crop: how training cuts images; a benchmark's domain brings its own.
    """

    name: str
    classes: tuple[str, ...]
    labels: NDArray[np.int64] | None
    train_crop: TrainCrop = "random-crop"

    def __init__(self, name: str, classes: Sequence[str], labels: ArrayLike | None) -> None:
        self.name = printable(name)
        self.classes = tuple(classes)
        self.labels = None if labels is None else _indices(labels, self.name)

    def named_as(self, role: str) -> str:
        """The role and the name, for messages; data in memory may be called by their role alone.

        >>> [ArrayDomain(np.eye(2), name=name).named_as("source") for name in ("shop", "source")]
        ['source shop', 'source']
        """
        return role if self.name == role else f"{role} {self.name}"

    @abc.abstractmethod
    def __len__(self) -> int: ...

    @abc.abstractmethod
    def __getitem__(self, index: int) -> "Image.Image | Tensor":
        """The sample at `index`: an RGB image, or a row as a float32 tensor."""

    @abc.abstractmethod
    def identity(self, index: int) -> str:
        """The sample's name, which no other sample of the domain has: its path, or "row 17"."""

    def select(self: DomainT, indices: ArrayLike) -> DomainT:
        """A domain of the samples at `indices`, in that order; nothing is read.

        Args:
            indices: positions, or one truth value for each sample.

        >>> domain = ArrayDomain(np.eye(3), name="toy", classes=["mug", "pen"], labels=[0, 1, 1])
        >>> domain.select(domain.labels == 1)
        ArrayDomain('toy', 2 samples, 2 classes)
        """
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
        """A domain of the same samples under another class list."""
        renamed = copy.copy(self)
        renamed.classes, renamed.labels = tuple(classes), labels
        return renamed

    def class_counts(self) -> NDArray[np.int64]:
        """How many samples each class has, in the order of `classes`; zeros when unlabelled."""
        known = np.zeros(0, np.int64) if self.labels is None else self.labels
        return np.bincount(known, minlength=len(self.classes)).astype(np.int64)

    @abc.abstractmethod
    def _narrow(self, indices: NDArray[np.int64]) -> None:
        """Keep only the samples at `indices`; this is called on a copy."""

    def __repr__(self) -> str:
        labelled = "unlabelled" if self.labels is None else f"{len(self.classes)} classes"
        return f"{type(self).__name__}({self.name!r}, {len(self)} samples, {labelled})"


def _indices(labels: ArrayLike, name: str) -> NDArray[np.int64]:
    found = np.asarray(labels)
    if found.ndim != 1 or (found.size and found.dtype.kind not in "iub"):
        raise InputError(
            f"{name}: labels are {found.dtype} of shape {found.shape}; expected a row of indices"
            " into the classes"
        )
    return found.astype(np.int64)


class ImageDomain(Domain):
    """Image files; `image_folder` and `image_list` make such a domain.

    Attributes:
        root: the folder that `paths` start from.
        paths: one for each sample, with "/" in between; absolute only for a file outside `root`.

    >>> ImageDomain("photos", ["mug/1.jpg", "pen/1.jpg"], name="photos").path(1).as_posix()
    'photos/pen/1.jpg'
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
        """The file of the sample at `index`."""
        return self.root / self.paths[index]

    def identity(self, index: int) -> str:
        return self.paths[index]

    def _narrow(self, indices: NDArray[np.int64]) -> None:
        self.paths = self.paths.take(indices)


class ArrayDomain(Domain):
    """Rows of an array: features, a table, or small images; `array_domain` makes and checks one.

    Attributes:
        values: (rows, features), or (rows, views, features), where the first view of each sample
            is the plain one, or (rows, channels, height, width); numpy, torch or memory-mapped.
        paths: the file that each row was computed from, where that is known.
        columns: the names of the features, where they have names.
        index: of the data frame that held the rows; None where none did.

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
        columns: Sequence[str] = (),
    ) -> None:
        super().__init__(name, classes, labels)
        check_values(values, self.name)
        self.columns = tuple(columns)
        self.values: Values = values
        self.paths = paths if paths is None or isinstance(paths, PathTable) else PathTable(paths)
        self.index: Any = None
        self._numbers: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return int(self.values.shape[0])

    @property
    def views(self) -> int:
        """How many views of each sample there are."""
        return int(self.values.shape[1]) if len(self.values.shape) == 3 else 1

    def __getitem__(self, index: int) -> Tensor:
        return self.row(index)

    def row(self, index: int, view: int = 0) -> Tensor:
        """One view of one sample as float32."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"row {index} of {len(self)}")
        return self.rows([index % len(self)], view)[0]

    def rows(self, indices: ArrayLike | Tensor, view: int | ArrayLike | Tensor = 0) -> Tensor:
        """Many samples in one read, as float32, (batch, ...).

        Args:
            indices: the positions of the samples.
            view: which view of them: one number for all, or one for each.
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
        self.index = None if self.index is None else self.index.take(indices)
        self._numbers = indices if self._numbers is None else self._numbers[indices]
