"""The feature file: one .safetensors with features, labels, domains and their origin.

Its tensors are `features`, (rows, width) or (rows, 1 + views, width) with the plain view first;
`labels` and `domains`, int64 (label -1: unknown); `content`, the SHA-256 of each image's bytes. Its
metadata `equida` are a JSON object with the names of domains and classes, the paths, the backbone,
the SHA-256 of its weights, the transforms, and the engines that have run the network. The file
depends on these alone: it does not say when or where it was made, so that the same call writes the
same bytes.
"""

import hashlib
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from equida.errors import InputError
from equida.fields import check_request
from equida.files import open_atomic
from equida.torch_modes import MOST_PROCESSES, check_count, decoding_threads

FORMAT = 1
# Readers parse the whole header to open the file, so more than a megabyte of paths is a tensor.
MAX_HEADER_PATHS = 2**20
MAX_HEADER_BYTES = 2**27

Dtype = Literal["float16", "float32"]
Engine = Literal["auto", "onnxruntime", "torch"]
MOST_IMAGES_AT_ONCE = 100_000
MOST_VIEWS = 1000
_CODES = {"float16": "F16", "float32": "F32", "int64": "I64", "uint8": "U8"}


@dataclass(frozen=True)
class ExtractionOptions:
    """How features are computed and stored, apart from the network: arguments of
    `equida.extract_features`, and flags of `equida features`."""

    dtype: Dtype = "float32"
    views: int = 0
    seed: int = 0
    batch_size: int = 64
    workers: int = decoding_threads()
    reduced_decode: bool = False
    skip_unreadable: bool = False
    engine: Engine = "auto"

    def __post_init__(self) -> None:
        check_request(self)
        check_count("workers", self.workers, f"a whole number from 1 to {MOST_PROCESSES}", 1)
        for name, value, minimum, maximum in (
            ("batch size", self.batch_size, 1, MOST_IMAGES_AT_ONCE),
            ("views", self.views, 0, MOST_VIEWS),
            ("seed", self.seed, 0, 2**63 - 1),
        ):
            if not minimum <= value <= maximum:
                raise InputError(f"{name} is {value}; it must be from {minimum} to {maximum}")


@dataclass(frozen=True)
class FeatureSettings:
    """What features depend on besides the images.

    Attributes:
        backbone: the network's name.
        weights_sha256: the SHA-256 of its weights.
        width: the number of features of one image.
        transform: the text of the transform of the plain view.
        view_transforms: the texts of the transforms of the other views, one for each domain.
        views: how many views there are besides the plain one.
        seed: the random numbers of those views are derived from it.
        dtype: the type in which features are stored.
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


def made_by(wanted: Engine, engines: Sequence[str]) -> bool:
    """Whether features that these engines have computed are taken for those that are wanted.

    Engines differ by rounding only, so "auto" takes those of all of them; an engine that is asked
    for by name stands for itself, in any version. Without a record it was PyTorch.

    >>> made_by("auto", ["torch 2.13.0"]), made_by("onnxruntime", ["torch 2.13.0"])
    (True, False)
    >>> made_by("torch", [])
    True
    """
    names = {engine.partition(" ")[0] or "torch" for engine in engines or [""]}
    return wanted == "auto" or names == {wanted}


@dataclass(frozen=True)
class RowFacts:
    """What a feature file says of its rows, besides their features.

    Attributes:
        domains: the names of the domains.
        classes: the names of the classes.
        paths: one for each row.
        labels: one for each row, -1 where it is unknown.
        owners: the number of each row's domain.
        content: (rows, 32) bytes, the SHA-256 of each image.
    """

    domains: tuple[str, ...]
    classes: tuple[str, ...]
    paths: Sequence[str]
    labels: NDArray[np.int64]
    owners: NDArray[np.int64]
    content: NDArray[np.uint8]


def header(
    settings: FeatureSettings, rows: RowFacts, engines: Sequence[str] = ()
) -> tuple[bytes, list[NDArray[Any]]]:
    """The file's first bytes, and the tensors besides `features` in the order of the file.

    Two files with the same first bytes are equal: `content` in them is a digest of the path, label,
    domain and image of every row. `features` are between the int64 and the uint8 tensors, so that
    every tensor is aligned as its type requires.
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
        **({"engines": list(engines)} if engines else {}),
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
    """Write the file with the header and tensors that `header` gave, whole or not at all.

    The writer of safetensors needs every tensor in memory; here the features come in blocks. The
    format is a header and then the bytes of the tensors, one after another.
    """
    labels, owners, *small = tensors
    with open_atomic(path) as file:
        file.write(first)
        for tensor in itertools.chain((labels, owners), features, small):
            file.write(tensor.data)


def _first_bytes(path: Path) -> bytes:
    """The header of a .safetensors file, with its length before it."""
    with path.open("rb") as file:
        size = file.read(8)
        length = int.from_bytes(size, "little")
        if length > MAX_HEADER_BYTES:
            raise ValueError(f"{path} has no header of safetensors")
        return size + file.read(length)


@dataclass
class HeldDomain:
    """What a feature file holds of a domain.

    Attributes:
        contents: the digests of its images.
        paths: their paths.
    """

    contents: set[bytes] = field(default_factory=set)
    paths: set[str] = field(default_factory=set)


class Existing:
    """A feature file from an earlier call, whose features can be used again.

    Attributes:
        content: the digest of the image of each row.
        domains: what it holds of each domain that has rows.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.first = path, _first_bytes(path)
        self._entries = json.loads(self.first[8:])
        self.metadata: dict[str, Any] = json.loads(self._entries["__metadata__"]["equida"])
        self.content = np.array(self._map("content"))
        self.row_shape: tuple[int, ...] = self._map("features").shape[1:]
        self.domains = self._held()

    @classmethod
    def open(cls, path: Path) -> "Existing | None":
        """The file, or None where there is no feature file; what is there will be replaced."""
        try:
            return cls(path)
        except Exception:  # damaged bytes make the readers raise nearly anything
            return None

    @staticmethod
    def is_ours(path: Path) -> bool:
        """Whether equida wrote the file, also where it is not whole."""
        try:
            entries = json.loads(_first_bytes(path)[8:])
            return "format" in json.loads(entries["__metadata__"]["equida"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            return False

    @property
    def width(self) -> int:
        """The number of features of one image."""
        return self.row_shape[-1]

    @property
    def engines(self) -> list[str]:
        """What has computed its features, with versions; [] where that is not recorded."""
        found = self.metadata.get("engines", [])
        return list(map(str, found)) if isinstance(found, list) else []

    def made_with(self, settings: FeatureSettings) -> bool:
        """Whether its features are those that `settings` would give."""
        same = all(self.metadata.get(key) == value for key, value in settings.as_json().items())
        return same and self.row_shape == settings.row_shape

    def features(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """The features of some rows; the file is mapped only while they are read."""
        return self._map("features")[rows]

    def _held(self) -> dict[str, HeldDomain]:
        names: list[str] = self.metadata["domains"]
        paths = self.metadata.get("paths")
        if paths is None:
            joined = self._map("paths").tobytes()
            paths = joined.decode("utf-8", "surrogateescape").split("\n")
        found: dict[str, HeldDomain] = {}
        owners = self._map("domains").tolist()
        for owner, content, name in zip(owners, self.content, paths, strict=True):
            held = found.setdefault(names[owner], HeldDomain())
            held.contents.add(content.tobytes())
            held.paths.add(name)
        return found

    def _map(self, name: str) -> NDArray[Any]:
        entry = self._entries[name]
        dtype = next(key for key, code in _CODES.items() if code == entry["dtype"])
        start = len(self.first) + entry["data_offsets"][0]
        shape = tuple(entry["shape"])
        if 0 in shape:
            return np.zeros(shape, dtype)
        return np.memmap(self.path, dtype, "r", start, shape)
