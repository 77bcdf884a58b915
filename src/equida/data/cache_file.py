"""The feature file: one .safetensors with features, labels, domains and what they were made of.

Tensors: `features` (N, D), or (N, 1 + K, D) with K augmented views behind the plain one; `labels`
and `domains`, int64 (label -1: unknown); `content`, the SHA-256 of each image's bytes. Metadata
`equida`: a JSON object with the names of domains and classes, the paths, the backbone, its weights'
SHA-256 and the transforms. The file is a function of these alone: nothing in it tells when or
where it was made.
"""

import hashlib
import itertools
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

FORMAT = 1
# Readers parse the whole header to open the file; beyond a megabyte the paths become a tensor.
MAX_HEADER_PATHS = 2**20

Dtype = Literal["float16", "float32"]
_CODES = {"float16": "F16", "float32": "F32", "int64": "I64", "uint8": "U8"}


@dataclass(frozen=True)
class Settings:
    """What features depend on besides the images.

    Attributes:
        backbone: the network's name.
        weights_sha256: of its weights.
        width: features of one image.
        transform: the text of the transform of the plain view.
        view_transforms: of the other views, one text for each domain.
        views: how many other views.
        seed: what their random numbers are derived from.
        dtype: how features are stored.
    """

    backbone: str
    weights_sha256: str
    width: int
    transform: str
    view_transforms: tuple[str, ...] = ()
    views: int = 0
    seed: int = 0
    dtype: Dtype = "float32"

    @property
    def row_shape(self) -> tuple[int, ...]:
        """Shape of one image's features in the file."""
        return (1 + self.views, self.width) if self.views else (self.width,)

    def as_json(self) -> dict[str, Any]:
        """The metadata that describes these settings."""
        described: dict[str, Any] = {
            "backbone": self.backbone,
            "weights_sha256": self.weights_sha256,
            "transform": self.transform,
            "views": self.views,
            "dtype": self.dtype,
        }
        if self.views:
            described |= {"view_transforms": list(self.view_transforms), "seed": self.seed}
        return described


@dataclass(frozen=True)
class Rows:
    """What the rows of a feature file are, besides their features.

    Attributes:
        domains: names of the domains.
        classes: names of the classes.
        paths: one per row.
        labels: one per row, -1 where unknown.
        owners: the number of each row's domain.
        content: (N, 32) bytes, the SHA-256 of each image.
    """

    domains: tuple[str, ...]
    classes: tuple[str, ...]
    paths: Sequence[str]
    labels: NDArray[np.int64]
    owners: NDArray[np.int64]
    content: NDArray[np.uint8]


def header(settings: Settings, rows: Rows) -> tuple[bytes, list[NDArray[Any]]]:
    """The file's first bytes, and the tensors besides `features` in the order of the file.

    Two files with the same first bytes are the same: `content` in them is a digest of every row's
    path, label, domain and image.

    `features` lies between the int64 and the uint8 tensors, so that every tensor starts where its
    type wants to be aligned.
    """
    joined = "\n".join(rows.paths).encode("utf-8", "surrogateescape")
    digest = hashlib.sha256(joined)
    for tensor in (rows.labels, rows.owners, rows.content):
        digest.update(tensor.tobytes())
    described = {
        "format": FORMAT,
        "domains": list(rows.domains),
        "classes": list(rows.classes),
        **settings.as_json(),
        "content": digest.hexdigest(),
    }
    tensors: dict[str, NDArray[Any]] = {"labels": rows.labels, "domains": rows.owners}
    small: dict[str, NDArray[Any]] = {"content": rows.content}
    if len(joined) <= MAX_HEADER_PATHS:
        described["paths"] = list(rows.paths)
    else:
        small["paths"] = np.frombuffer(joined, np.uint8)
    shape = (len(rows.paths), *settings.row_shape)
    size = int(np.prod(shape)) * np.dtype(settings.dtype).itemsize
    entries: dict[str, Any] = {"__metadata__": {"equida": json.dumps(described)}}
    end = 0
    for name, tensor in tensors.items():
        entries[name], end = _entry(tensor.dtype.name, tensor.shape, end, tensor.nbytes)
    entries["features"], end = _entry(settings.dtype, shape, end, size)
    for name, tensor in small.items():
        entries[name], end = _entry(tensor.dtype.name, tensor.shape, end, tensor.nbytes)
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text, [*tensors.values(), *small.values()]


def _entry(dtype: str, shape: tuple[int, ...], start: int, size: int) -> tuple[dict[str, Any], int]:
    end = start + size
    return {"dtype": _CODES[dtype], "shape": list(shape), "data_offsets": [start, end]}, end


def write(
    path: Path, first: bytes, tensors: list[NDArray[Any]], features: Iterator[NDArray[Any]]
) -> None:
    """Write the file whose header and tensors `header` gave; it is there whole or not at all.

    safetensors' own writer wants every tensor in memory, here the features pass through in blocks;
    the format is a header and the bytes of the tensors one after another.
    """
    labels, owners, *small = tensors
    part = path.with_name(f"{path.name}.part") / "whole"
    with part.open("wb") as file:
        file.write(first)
        for tensor in itertools.chain((labels, owners), features, small):
            file.write(tensor.data)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


class Existing:
    """A feature file that is already there, as far as its features can be used again."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            size = file.read(8)
            self.first = size + file.read(int.from_bytes(size, "little"))
        entries = json.loads(self.first[8:])
        self.metadata: dict[str, Any] = json.loads(entries["__metadata__"]["equida"])
        self.path, self._entries = path, entries
        self.content = np.array(self._map("content"))
        self.row_shape: tuple[int, ...] = self._map("features").shape[1:]

    @classmethod
    def open(cls, path: Path) -> "Existing | None":
        """The file, or None where there is none or something else: it will be replaced."""
        try:
            return cls(path)
        except (OSError, ValueError, KeyError, TypeError, OverflowError, MemoryError):
            return None

    @property
    def width(self) -> int:
        """Features of one image."""
        return self.row_shape[-1]

    def made_with(self, settings: Settings) -> bool:
        """Whether its features are what `settings` would give."""
        same = all(self.metadata.get(key) == value for key, value in settings.as_json().items())
        return same and self.row_shape == settings.row_shape

    def features(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """The features of some rows; the file is mapped only as long as that takes."""
        return self._map("features")[rows]

    def _map(self, name: str) -> NDArray[Any]:
        entry = self._entries[name]
        dtype = next(key for key, code in _CODES.items() if code == entry["dtype"])
        start = len(self.first) + entry["data_offsets"][0]
        shape = tuple(entry["shape"])
        if 0 in shape:
            return np.zeros(shape, dtype)
        return np.memmap(self.path, dtype, "r", start, shape)
