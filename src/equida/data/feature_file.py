"""A domain from a feature file: .npz, or the .safetensors that `equida features` writes."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equida.data.arrays import labels_and_classes
from equida.data.classes import class_key
from equida.data.domain import ArrayDomain
from equida.data.npz import Header, open_npz
from equida.data.path_table import PathTable
from equida.data.rows import (
    SAFETENSORS_DTYPES,
    NpzRows,
    Rows,
    RowSelection,
    SafetensorsRows,
    check_values,
    open_safetensors,
)
from equida.data.walk import existing
from equida.errors import InputError, counted
from equida.files import parse_json

SUFFIXES = (".npz", ".safetensors")
_PLAIN = (("X", "y"), ("x", "y"), ("features", "labels"))
"""What the only domain of an .npz calls its rows, and their labels."""
_LABELS = ("y", "Y", "labels")
"""What labels may be called as well, where there are none beside these rows."""


def feature_domain(
    file: str | Path,
    *,
    domain: str | None = None,
    classes: Sequence[str] | None = None,
    name: str | None = None,
) -> ArrayDomain:
    """A domain of the rows of a feature file; rows are read when they are asked for.

    An .npz holds `<domain>_x` with `<domain>_y` and `<domain>_path`, or one `X` and `y`
    (`features` and `labels`), and perhaps `classes` and `columns`, the names of the features. A
    .safetensors holds `features`, `labels` (-1 where unknown) and `domains`, with their names in
    its metadata.

    Args:
        file: the file.
        domain: which of its domains; needed where there are several.
        classes: class names, where the file holds none.
        name: the domain's name; by default the one in the file.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/office.npz", amazon_x=np.zeros((3, 8)), amazon_y=[0, 1, 1])
    ...     feature_domain(f"{folder}/office.npz")
    ArrayDomain('amazon', 3 samples, 2 classes)
    """
    path = existing(file)
    found = _stored(path)
    chosen = _choose(list(found), domain, path)
    part = found[chosen]
    origin = f"{path} ({chosen})" if len(found) > 1 else str(path)
    check_values(part.values, origin)
    labels, names = labels_and_classes(
        part.labels, part.values.shape[0], part.classes or classes, origin
    )
    if part.paths is not None and len(part.paths) != part.values.shape[0]:
        raise InputError(
            f"{origin}: {counted(len(part.paths), 'path')} for"
            f" {counted(len(part.values), 'row')}; expected one each"
        )
    if part.columns and (len(part.columns),) != part.values.shape[1:]:
        raise InputError(
            f"{origin}: {counted(len(part.columns), 'column')} for rows of shape"
            f" {part.values.shape[1:]}; expected a name for each feature"
        )
    return ArrayDomain(
        part.values,
        name=name or chosen,
        classes=names,
        labels=labels,
        paths=part.paths,
        columns=part.columns,
    )


def feature_domains(file: str | Path) -> list[str]:
    """The names of the domains in a feature file, in its order.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/office.npz", amazon_x=np.zeros((3, 8)), webcam_x=np.ones((2, 8)))
    ...     feature_domains(f"{folder}/office.npz")
    ['amazon', 'webcam']
    """
    return list(_stored(existing(file)))


@dataclass(frozen=True)
class FeatureOrigin:
    """The network that the features in a file were computed with.

    >>> FeatureOrigin("resnet50", weights_sha256="0" * 64, transform="resize 256").backbone
    'resnet50'
    """

    backbone: str
    """The network's name."""
    weights_sha256: str
    """The SHA-256 of its weights."""
    transform: str
    """The text of the transform that prepared the images (see `Transform.parse`)."""


def feature_origin(file: str | Path) -> FeatureOrigin | None:
    """What a feature file says of the network that made it; None where it says nothing.

    >>> feature_origin("features_from_elsewhere.npz") is None
    True
    """
    path = Path(file).expanduser()
    if path.suffix != ".safetensors" or not path.is_file():
        return None
    with open_safetensors(path) as stored:
        header = parse_json((stored.metadata() or {}).get("equida", "{}"), f"the header of {path}")
    try:
        found = {field.name: header[field.name] for field in fields(FeatureOrigin)}
    except (KeyError, TypeError):
        return None
    return FeatureOrigin(**found) if all(isinstance(v, str) for v in found.values()) else None


@dataclass
class _Part:
    values: Rows
    labels: NDArray[Any] | None
    paths: PathTable | None
    classes: tuple[str, ...]
    columns: tuple[str, ...] = ()


def _stored(path: Path) -> dict[str, _Part]:
    if path.suffix not in SUFFIXES:
        raise InputError(f"{path}: expected a feature file, .npz or .safetensors")
    return _npz(path) if path.suffix == ".npz" else _safetensors(path)


def _choose(found: list[str], wanted: str | None, path: Path) -> str:
    listed = ", ".join(found)
    if wanted is None:
        if len(found) == 1:
            return found[0]
        raise InputError(f"{path} holds the domains {listed}; say which one to use")
    same = [name for name in found if class_key(name) == class_key(wanted)]
    if wanted in found or len(same) == 1:
        return wanted if wanted in found else same[0]
    if same:
        raise InputError(f"{path} holds the domains {', '.join(same)}; give the exact name")
    raise InputError(f"{path} has no domain {wanted!r}; it holds {listed}")


def _npz(path: Path) -> dict[str, _Part]:
    with open_npz(path) as stored:
        keys = stored.keys
        classes, columns = (
            tuple(_texts(stored.read(key), key, path)) if key in keys else ()
            for key in ("classes", "columns")
        )

        def part(x: str, y: str, p: str) -> _Part:
            header = stored.header(x)
            rows = NpzRows(path, x, header.shape, header.dtype)
            paths = PathTable(_texts(stored.read(p), p, path)) if p in keys else None
            labels = stored.read(y) if y in keys else None
            return _Part(rows, labels, paths, classes, columns)

        named = [key[:-2] for key in keys if key.endswith("_x")]
        triples = [(name, f"{name}_x", f"{name}_y", f"{name}_path") for name in named]

        others = [key for key in _LABELS if key in keys and _may_be_labels(stored.header(key))]
        other = others[0] if others else ""
        plain = [
            (path.stem, x, y if y in keys else other, "paths") for x, y in _PLAIN if x in keys
        ][:1]
        found = triples or plain or [_no_features(path, keys)]
        return {name: part(x, y, p) for name, x, y, p in found}


def _may_be_labels(header: Header) -> bool:
    """Whether an array has one class name or number for each row, and no figures."""
    return len(header.shape) == 1 and header.dtype.kind in "iuUb"


def _no_features(path: Path, keys: Sequence[str]) -> tuple[str, str, str, str]:
    raise InputError(
        f"{path} holds {', '.join(keys) or 'nothing'}; expected '<domain>_x' and '<domain>_y', or"
        " 'X' and 'y', or 'features' and 'labels'"
    )


def _texts(values: NDArray[Any], what: str, path: Path) -> list[str]:
    """An array of texts, or of numbers that are names."""
    if values.ndim != 1 or values.dtype.kind not in "Uiu":
        raise InputError(
            f"{path}: {what} is {values.dtype} of shape {values.shape}; expected a row of texts"
        )
    return [str(value) for value in values]


def _safetensors(path: Path) -> dict[str, _Part]:
    small, header, rows = _read_safetensors(path)
    count, held = len(rows), counted(len(rows), "row")
    owners, labels, paths = small.get("domains"), small.get("labels"), _paths(header, small, path)
    for what, many in (("domains", owners), ("labels", labels)):
        if many is not None and (many.dtype.kind not in "iu" or many.shape != (count,)):
            seen = f"{len(many)}" if many.ndim == 1 and many.dtype.kind in "iu" else f"{many.dtype}"
            raise InputError(f"{path}: {seen} {what} for {held}; expected an integer each")
    if paths is not None and len(paths) != count:
        raise InputError(f"{path}: {counted(len(paths), 'path')} for {held}; expected one each")
    whole = _Part(rows, labels, paths, tuple(_names(header, "classes", path)))
    names = _names(header, "domains", path) or [path.stem]
    if len(set(names)) < len(names):
        raise InputError(f"{path}: a domain is listed twice ({', '.join(names)}); make it again")
    if owners is None or len(names) == 1:
        return {names[0]: whole}
    if count and not 0 <= owners.min() <= owners.max() < len(names):
        raise InputError(
            f"{path}: rows of the domains {owners.min()} to {owners.max()}; expected 0 to"
            f" {len(names) - 1}, as it names {len(names)}"
        )
    return {name: _portion(whole, np.flatnonzero(owners == k)) for k, name in enumerate(names)}


def _read_safetensors(
    path: Path,
) -> tuple[dict[str, NDArray[Any]], dict[str, Any], SafetensorsRows]:
    """The small tensors of a file, its metadata, and its features, which are not read yet."""
    with open_safetensors(path) as stored:
        keys = set(stored.keys())
        if "features" not in keys:
            raise InputError(
                f"{path} holds {', '.join(sorted(keys)) or 'nothing'}; expected a tensor"
                " 'features', as `equida features` writes it"
            )
        features = stored.get_slice("features")
        code = features.get_dtype()
        if code not in SAFETENSORS_DTYPES:
            raise InputError(f"{path}: features are {code}; expected real numbers")
        rows = SafetensorsRows(
            path, "features", tuple(features.get_shape()), SAFETENSORS_DTYPES[code]
        )
        small = {
            key: stored.get_tensor(key) for key in ("labels", "domains", "paths") if key in keys
        }
        header = parse_json((stored.metadata() or {}).get("equida", "{}"), f"the header of {path}")
    if not isinstance(header, dict):
        raise InputError(f"{path}: its header is not a table of names; make it again")
    check_values(rows, str(path))
    return small, header, rows


def _names(header: dict[str, Any], what: str, path: Path) -> list[str]:
    names = header.get(what, [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError(f"{path}: {what} in its header are not a list of names; make it again")
    return names


def _paths(header: dict[str, Any], small: dict[str, NDArray[Any]], path: Path) -> PathTable | None:
    if "paths" in small:
        return PathTable(small["paths"].tobytes().decode("utf-8", "surrogateescape").split("\n"))
    paths = _names(header, "paths", path)
    return PathTable(paths) if paths else None


def _portion(whole: _Part, rows: NDArray[np.int64]) -> _Part:
    return _Part(
        RowSelection(whole.values, rows),
        None if whole.labels is None else whole.labels[rows],
        None if whole.paths is None else whole.paths.take(rows),
        whole.classes,
    )
