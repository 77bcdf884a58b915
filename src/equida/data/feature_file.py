"""A domain from a feature file: .npz, or the .safetensors that `equida features` writes."""

import json
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equida.data.arrays import labels_and_classes
from equida.data.domain import ArrayDomain
from equida.data.path_table import PathTable
from equida.data.rows import NpzRows, Rows, RowSelection, SafetensorsRows, npy_header
from equida.data.walk import existing
from equida.errors import InputError

SUFFIXES = (".npz", ".safetensors")
_PLAIN = (("X", "y"), ("x", "y"), ("features", "labels"))


def feature_domain(
    file: str | Path,
    *,
    domain: str | None = None,
    classes: Sequence[str] | None = None,
    name: str | None = None,
) -> ArrayDomain:
    """A domain of the rows of a feature file; rows are read when they are asked for.

    An .npz holds `<domain>_x` with `<domain>_y` and `<domain>_path`, or one `X` and `y`
    (`features` and `labels`), and perhaps `classes`. A .safetensors holds `features`, `labels`
    (-1 where unknown) and `domains`, with their names in its metadata.

    Args:
        file: the file.
        domain: which of its domains; needed where there are several.
        classes: class names, where the file holds none.
        name: the domain's name; by default the one in the file.
    """
    path = existing(file)
    found = _stored(path)
    chosen = _choose(list(found), domain, path)
    part = found[chosen]
    origin = f"{path} ({chosen})" if len(found) > 1 else str(path)
    labels, names = labels_and_classes(
        part.labels, part.values.shape[0], part.classes or classes, origin
    )
    if len(part.values.shape) not in (2, 3, 4):
        raise InputError(
            f"{origin}: features have shape {part.values.shape}; expected (rows, features) or"
            " (rows, views, features)"
        )
    if part.paths is not None and len(part.paths) != part.values.shape[0]:
        raise InputError(
            f"{origin}: {len(part.paths)} paths for {part.values.shape[0]} rows; expected one each"
        )
    return ArrayDomain(
        part.values, name=name or chosen, classes=names, labels=labels, paths=part.paths
    )


def feature_domains(file: str | Path) -> list[str]:
    """The names of the domains in a feature file, in its order."""
    return list(_stored(existing(file)))


@dataclass(frozen=True)
class FeatureOrigin:
    """The network that the features in a file were computed with."""

    backbone: str
    """The network's name."""
    weights_sha256: str
    """The SHA-256 of its weights."""
    transform: str
    """The text of the transform that prepared the images (see `Transform.parse`)."""


def feature_origin(file: str | Path) -> FeatureOrigin | None:
    """What a feature file says of the network that made it; None where it says nothing."""
    path = Path(file).expanduser()
    if path.suffix != ".safetensors" or not path.is_file():
        return None
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as stored:
            header = json.loads((stored.metadata() or {}).get("equida", "{}"))
        return FeatureOrigin(**{field.name: header[field.name] for field in fields(FeatureOrigin)})
    except (KeyError, TypeError):
        return None
    except (SafetensorError, OSError, ValueError) as error:
        raise InputError(f"{path} is damaged: {error}; make it again") from None


@dataclass
class _Part:
    values: Rows
    labels: NDArray[Any] | None
    paths: PathTable | None
    classes: tuple[str, ...]


def _stored(path: Path) -> dict[str, _Part]:
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path}: expected a feature file, .npz or .safetensors")
    try:
        return _npz(path) if path.suffix == ".npz" else _safetensors(path)
    except (zipfile.BadZipFile, OSError, EOFError, KeyError) as error:
        raise InputError(
            f"{path} cannot be read as {path.suffix}: {error}; make it again"
        ) from None


def _choose(found: list[str], wanted: str | None, path: Path) -> str:
    listed = ", ".join(found)
    if wanted is None:
        if len(found) == 1:
            return found[0]
        raise InputError(f"{path} holds the domains {listed}; say which one is meant")
    same = [name for name in found if name.casefold() == wanted.casefold()]
    if not same:
        raise InputError(f"{path} has no domain {wanted!r}; it holds {listed}")
    return same[0]


def _npz(path: Path) -> dict[str, _Part]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            keys = archive.files
            classes = tuple(map(str, archive["classes"])) if "classes" in keys else ()

            def read(key: str) -> NDArray[Any] | None:
                return archive[key] if key in keys else None

            named = [key[:-2] for key in keys if key.endswith("_x")]
            triples = [(name, f"{name}_x", f"{name}_y", f"{name}_path") for name in named]
            plain = [(path.stem, x, y, "paths") for x, y in _PLAIN if x in keys][:1]
            return {
                name: _Part(_npz_rows(path, x), read(y), _texts(read(p)), classes)
                for name, x, y, p in triples or plain or [_no_features(path, keys)]
            }
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{path}: {error}; only arrays of numbers and text are read, never pickled objects"
        ) from None


def _no_features(path: Path, keys: Sequence[str]) -> tuple[str, str, str, str]:
    raise InputError(
        f"{path} holds {', '.join(keys) or 'nothing'}; expected '<domain>_x' and '<domain>_y', or"
        " 'X' and 'y', or 'features' and 'labels'"
    )


def _npz_rows(path: Path, key: str) -> NpzRows:
    with zipfile.ZipFile(path) as archive, archive.open(f"{key}.npy") as stream:
        shape, _, dtype = npy_header(stream)
    if dtype.kind not in "fiub":
        raise InputError(f"{path}: {key} is {dtype}; expected numbers")
    return NpzRows(path, key, shape)


def _texts(values: NDArray[Any] | None) -> PathTable | None:
    return None if values is None else PathTable(map(str, values))


def _safetensors(path: Path) -> dict[str, _Part]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="np") as stored:
            keys = set(stored.keys())
            header = dict(json.loads((stored.metadata() or {}).get("equida", "{}")))
            shape = tuple(stored.get_slice("features").get_shape()) if "features" in keys else ()
            small = {
                key: stored.get_tensor(key) for key in ("labels", "domains", "paths") if key in keys
            }
    except (SafetensorError, json.JSONDecodeError, TypeError, ValueError) as error:
        raise InputError(f"{path} is damaged: {error}; make it again") from None
    if not shape:
        raise InputError(
            f"{path} holds {', '.join(sorted(keys)) or 'nothing'}; expected a tensor 'features', as"
            " `equida features` writes it"
        )
    owners, labels, paths = small.get("domains"), small.get("labels"), _paths(header, small)
    for what, many in (("domains", owners), ("labels", labels), ("paths", paths)):
        if many is not None and len(many) != shape[0]:
            raise InputError(f"{path}: {len(many)} {what} for {shape[0]} rows; expected one each")
    rows = SafetensorsRows(path, "features", shape)
    whole = _Part(rows, labels, paths, tuple(header.get("classes", ())))
    names = [str(name) for name in header.get("domains", ())] or [path.stem]
    if owners is None or len(names) == 1:
        return {names[0]: whole}
    return {name: _portion(whole, np.flatnonzero(owners == k)) for k, name in enumerate(names)}


def _paths(header: dict[str, Any], small: dict[str, NDArray[Any]]) -> PathTable | None:
    if "paths" in small:
        return PathTable(small["paths"].tobytes().decode("utf-8", "surrogateescape").split("\n"))
    return PathTable(header["paths"]) if header.get("paths") else None


def _portion(whole: _Part, rows: NDArray[np.int64]) -> _Part:
    return _Part(
        RowSelection(whole.values, rows),
        None if whole.labels is None else whole.labels[rows],
        None if whole.paths is None else whole.paths.take(rows),
        whole.classes,
    )
