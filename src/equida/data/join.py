"""Features of several backbones side by side: each image has one row of all of them."""

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equida.data.checks import check_finite
from equida.data.domain import ArrayDomain
from equida.data.feature_file import feature_domain, feature_domains
from equida.data.npz import npz_keys
from equida.errors import InputError, counted
from equida.files import open_atomic, refuse_to_replace

MARK = "joined_from"


def join_features(files: Sequence[str | Path], out: str | Path) -> dict[str, tuple[int, int]]:
    """Write the rows of feature files side by side into one .npz.

    Each file's rows are multiplied by one number, so that their mean square norm is that of the
    first file's: no backbone outweighs another by its units.

    Args:
        files: two or more, of the same images in the same order. Labels may stand in some of them
            only.
        out: the .npz to write.

    Returns:
        Rows and columns of each domain.

    Raises:
        InputError: the files are not of the same images, or `out` cannot be written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, width in (("a.npz", 2), ("b.npz", 3)):
    ...         np.savez(f"{folder}/{name}", shop_x=np.ones((4, width)), desk_x=np.ones((5, width)))
    ...     join_features([f"{folder}/a.npz", f"{folder}/b.npz"], f"{folder}/both.npz")
    {'shop': (4, 5), 'desk': (5, 5)}
    """
    paths = [Path(file) for file in files]
    if len(paths) < 2:
        raise InputError(
            f"{len(paths) or 'no'} feature file is given; expected two or more to join"
        )
    for first, second in combinations(paths, 2):
        if first.resolve() == second.resolve():
            raise InputError(f"{second} is given twice; expected the features of several backbones")
    target = Path(out)
    if target.suffix != ".npz":
        raise InputError(f"--out is {target}; expected a name that ends in .npz")
    refuse_to_replace([target], lambda: MARK in npz_keys(target))
    names = feature_domains(paths[0])
    for path in paths[1:]:
        if sorted(feature_domains(path)) != sorted(names):
            raise InputError(
                f"{path} holds the domains {', '.join(feature_domains(path))}, and {paths[0]} holds"
                f" {', '.join(names)}; expected the same in each file"
            )
    domains = {name: [feature_domain(path, domain=name) for path in paths] for name in names}
    for name, same in domains.items():
        for (file, one), (later, other) in combinations(zip(paths, same, strict=True), 2):
            _check_same(one, file, other, later)
        for file, one in zip(paths, same, strict=True):
            check_finite(one, origin=f"{file}: {name}", skippable=False)
    labelled = {name: _labelled(same) for name, same in domains.items()}
    whole = {name: [_rows(one) for one in same] for name, same in domains.items()}
    sizes = [_size([parts[number] for parts in whole.values()]) for number in range(len(paths))]
    if not all(sizes):
        raise InputError(f"{paths[sizes.index(0.0)]}: all features are 0; there is nothing to join")
    arrays: dict[str, NDArray[Any]] = {MARK: np.array([path.name for path in paths])}
    lists = {domain.classes for domain in labelled.values() if domain.classes}
    if len(lists) == 1:
        arrays["classes"] = np.array(next(iter(lists)))
    for name, parts in whole.items():
        factors = [np.float32(sizes[0] / size) for size in sizes]
        scaled = [rows * factor for rows, factor in zip(parts, factors, strict=True)]
        known = labelled[name]
        arrays[f"{name}_x"] = np.concatenate(scaled, 1)
        if known.labels is not None:
            # Domains with classes of their own have labels that say which.
            numbers = np.asarray(known.labels)
            own = len(lists) > 1
            arrays[f"{name}_y"] = np.array(known.classes)[numbers] if own else numbers
        named = [one.paths for one in domains[name] if one.paths is not None]
        if named:
            arrays[f"{name}_path"] = np.array(list(named[0]))
    with open_atomic(target) as stream:
        np.savez(stream, **arrays)  # type: ignore[arg-type]  # numpy has a flag among the arrays
    return {name: (len(arrays[f"{name}_x"]), arrays[f"{name}_x"].shape[1]) for name in whole}


def _labelled(same: Sequence[ArrayDomain]) -> ArrayDomain:
    """The first of one domain's files that has labels; where none has, the first with classes."""
    return max(same, key=lambda one: (one.labels is not None, bool(one.classes)))


def _rows(domain: ArrayDomain) -> NDArray[np.float32]:
    rows = np.asarray(domain.values, dtype=np.float32)
    if rows.ndim != 2:
        raise InputError(
            f"{domain.name} has values of shape {rows.shape}; only one view of each image can be"
            " joined: compute the features without --views"
        )
    return rows


def _size(domains: Sequence[NDArray[np.float32]]) -> float:
    """The root of the mean square norm of all rows."""
    norms = [np.square(rows, dtype=np.float64).sum(1) for rows in domains]
    return float(np.sqrt(np.mean(np.concatenate(norms))))


def _check_same(first: ArrayDomain, file: Path, other: ArrayDomain, path: Path) -> None:
    """Refuse two domains that are not of the same images in the same order."""
    if len(first) != len(other):
        raise InputError(
            f"{path} has {counted(len(other), 'row')} of {other.name}, and {file} has"
            f" {len(first):,}; expected features of the same images"
        )
    if first.paths is not None and other.paths is not None:
        for row, (one, two) in enumerate(zip(first.paths, other.paths, strict=True)):
            if one != two:
                raise InputError(
                    f"row {row} of {first.name} is {one} in {file} and {two} in {path}; expected"
                    " the same images in the same order"
                )
    if not _same_labels(first, other):
        raise InputError(
            f"the labels of {first.name} are not the same in {file} and {path}; expected features"
            " of the same images in the same order"
        )


def _same_labels(first: ArrayDomain, other: ArrayDomain) -> bool:
    if first.labels is None or other.labels is None:
        return True
    same_classes = tuple(first.classes) == tuple(other.classes)
    return same_classes and np.array_equal(first.labels, other.labels)
