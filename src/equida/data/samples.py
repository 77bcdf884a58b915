"""What loading and the feature cache ask of a domain, and what they give back."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from equida.data.transforms import Transform
from equida.errors import InputError

if TYPE_CHECKING:
    from PIL import Image


class Batch(NamedTuple):
    """Some samples of a domain.

    Attributes:
        x: images or rows, float32, (batch, ...).
        labels: (batch,), -1 where unknown.
        indices: (batch,), positions in the domain.
    """

    x: Tensor
    labels: Tensor
    indices: Tensor


class Samples(Protocol):
    """A domain, as far as batches are concerned."""

    @property
    def name(self) -> str: ...
    @property
    def labels(self) -> NDArray[np.int64] | None: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> "Image.Image | Tensor": ...


@runtime_checkable
class RowSamples(Protocol):
    """A domain that reads many rows at once, each in one of its views."""

    @property
    def views(self) -> int: ...
    def rows(self, indices: Any, view: Any = 0) -> Tensor: ...


@runtime_checkable
class FileSamples(Protocol):
    """A domain whose samples are files."""

    @property
    def name(self) -> str: ...
    @property
    def labels(self) -> NDArray[np.int64] | None: ...
    @property
    def classes(self) -> tuple[str, ...]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> "Image.Image | Tensor": ...
    def identity(self, index: int) -> str: ...
    def path(self, index: int) -> Path: ...


def read(domain: Samples, index: int, transform: Transform) -> "Image.Image":
    """The image at `index`, at reduced scale where the transform asks for it."""
    if isinstance(domain, FileSamples):
        reduced = transform.open_reduced(domain.path(index))
        if reduced is not None:
            return reduced
    image = domain[index]
    if isinstance(image, Tensor):
        raise InputError(f"{domain.name} holds rows; its batches need no image transform")
    return image
