"""A domain from an image list: one `path label` per line."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from equida.data.classes import check_class_names, class_key, composed, numbered_classes
from equida.data.domain import ArrayDomain, Domain, ImageDomain
from equida.data.images import is_image_name
from equida.data.walk import existing
from equida.errors import InputError
from equida.files import check_regular

MOST_DIGITS = 18
"""Those of the numbers that fit into 64 bits."""
EXAMPLES = 100
"""How many images of a folder are looked for, to find where a list's paths start from."""


def image_list(
    file: str | Path,
    *,
    root: str | Path | None = None,
    classes: Sequence[str] | None = None,
    name: str | None = None,
) -> ImageDomain:
    """A domain of the images that a list names.

    The label is what follows the last space, so paths may contain spaces; a list of paths without
    labels is unlabelled. A path that does not exist as it stands, such as an absolute path of
    another machine, is looked for below `root` by the longest of its endings that exists there.

    Labels must agree with the names of the class folders, because published lists of one data set
    number its classes differently.

    Args:
        file: the list.
        root: the folder that holds the images; by default the list's own, or the one above it.
        classes: the class list that the labels must agree with.
        name: the domain's name; by default the list's.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     for image in ("mug/1.jpg", "pen/1.jpg"):
    ...         Path(folder, image).parent.mkdir()
    ...         Path(folder, image).touch()
    ...     lines = Path(folder, "train.txt").write_text("mug/1.jpg 0\\npen/1.jpg 1\\n")
    ...     image_list(f"{folder}/train.txt").classes
    ('mug', 'pen')
    """
    lines = _read(existing(file))
    own = lines.file.parent
    bases = [existing(root)] if root else [own, Path(os.path.normpath(own / ".."))]
    base, places = _placed(lines, bases)
    paths = [
        f"{places[folder]}{path[len(folder) :].lstrip('/')}"
        for folder, path in zip(lines.folders, lines.paths, strict=True)
    ]
    names: tuple[str, ...] = tuple(classes or ())
    if lines.labels is not None:
        names = _class_names(lines, lines.labels.tolist(), classes)
    check_class_names(names, str(lines.file))
    return ImageDomain(
        base, paths, name=name or lines.file.stem, classes=names, labels=lines.labels
    )


def listed_samples(domain: Domain, file: str | Path) -> Domain:
    """The samples of a domain that an image list names, in the list's order.

    The domain may be images or rows of features that know the files they were computed from. A
    listed path is found by its ending: as many of its last parts as all paths of the list share
    with the domain's. Labels of the list must tell the same classes apart as the domain's do; where
    the domain is unlabelled, they become its labels.

    Args:
        domain: where the samples are chosen from.
        file: the list.
    """
    lines = _read(existing(file))
    paths = domain.paths if isinstance(domain, ImageDomain | ArrayDomain) else None
    if paths is None:
        raise InputError(
            f"{lines.file} chooses samples by their paths, but the rows of {domain.name} have none;"
            " expected '<domain>_path' in the feature file"
        )
    known = [tuple(path.split("/")) for path in paths]
    wanted = [tuple(path.split("/")) for path in lines.paths]
    rows = _matching(lines, wanted, known, domain.name)
    chosen = domain.select(rows)
    if lines.labels is None:
        return chosen
    if chosen.labels is None:
        classes = chosen.classes or numbered_classes(int(lines.labels.max()), str(lines.file))
        return chosen.relabel(classes, lines.labels)
    for one, other in ((lines.labels, chosen.labels), (chosen.labels, lines.labels)):
        _, first, inverse = np.unique(one, return_index=True, return_inverse=True)
        differing = np.flatnonzero(other != other[first][inverse])
        if len(differing):
            index = int(differing[0])
            name = chosen.classes[int(chosen.labels[index])]
            raise _disagreement(lines, index, int(lines.labels[index]), f"that of {name!r}")
    return chosen


def _matching(
    lines: "_Lines", wanted: list[tuple[str, ...]], known: list[tuple[str, ...]], name: str
) -> list[int]:
    """For each listed path the sample that it names."""
    missing = 0
    for length in range(max(map(len, wanted)), 0, -1):
        found: dict[tuple[str, ...], list[int]] = {}
        for row, parts in enumerate(known):
            found.setdefault(parts[-length:], []).append(row)
        rows = [found.get(parts[-length:], []) for parts in wanted]
        missing = next((k for k, there in enumerate(rows) if not there), -1)
        if missing >= 0:
            continue
        for index, there in enumerate(rows):
            if len(there) > 1:
                both = " and ".join("/".join(known[row]) for row in there[:2])
                raise InputError(
                    f"{lines.at(index)}: {lines.paths[index]!r} may be {both} of {name}; expected a"
                    " list whose paths name one sample each"
                )
        return [there[0] for there in rows]
    such = f", such as {'/'.join(known[0])!r}" if known else ""
    raise InputError(
        f"{lines.at(missing)}: {lines.paths[missing]!r} is not among the {len(known):,} samples of"
        f" {name}{such}; expected paths that end alike"
    )


@dataclass
class _Lines:
    file: Path
    paths: list[str]
    folders: list[str]
    labels: NDArray[np.int64] | None
    numbers: list[int]
    """The line number of each path."""

    def at(self, index: int) -> str:
        return f"{self.file}:{self.numbers[index]}"


def _read(file: Path) -> _Lines:
    check_regular(file)
    try:
        text = file.read_text(encoding="utf-8-sig", errors="surrogateescape")
    except OSError as error:
        raise InputError(f"{file}: {os.strerror(error.errno or 0).lower()}") from None
    paths: list[str] = []
    labels: list[int] = []
    numbers: list[int] = []
    for number, line in enumerate(map(str.strip, text.split("\n")), 1):
        if not line:
            continue
        path, label = _split(line)
        if not is_image_name(path) or (label is not None and label < 0):
            raise InputError(
                f"{file}:{number}: read {_cut_line(line)!r}; expected the path of an image and,"
                " where it is labelled, the number of its class, from 0"
            )
        if paths and (label is None) == bool(labels):
            raise InputError(
                f"{file}:{number}: {_cut_line(line)!r} is {'not ' if labels else ''}labelled,"
                " unlike the lines before; expected 'path label' on every line, or only paths"
            )
        paths.append(path)
        numbers.append(number)
        if label is not None:
            labels.append(label)
    if not paths:
        raise InputError(f"{file} is empty; expected lines of 'path label'")
    folders = [path.rpartition("/")[0] for path in paths]
    return _Lines(file, paths, folders, np.array(labels, np.int64) if labels else None, numbers)


def _cut_line(line: str) -> str:
    return line if len(line) <= 200 else f"{line[:100]}...{line[-50:]}"


def _split(line: str) -> tuple[str, int | None]:
    path, *rest = line.rsplit(None, 1)
    label = None
    if rest and (digits := rest[0].removeprefix("-")).isdecimal():
        # A longer number is no label, and Python refuses to read one of thousands of digits.
        label = int(rest[0]) if len(digits) <= MOST_DIGITS else -1
    else:
        path = line
    return path if "/" in path else path.replace("\\", "/"), label


def _placed(lines: _Lines, bases: Sequence[Path]) -> tuple[Path, dict[str, str]]:
    """The base under which the list's folders exist, and the prefix of each of them below it."""
    examples: dict[str, list[str]] = {}
    for folder, path in zip(lines.folders, lines.paths, strict=True):
        some = examples.setdefault(folder, [])
        if len(some) < EXAMPLES:
            some.append(path)
    for base in bases:
        found = {folder: _ending(base, folder, paths) for folder, paths in examples.items()}
        if any(place is not None for place in found.values()):
            # A missing folder keeps its path; its files are named when they are read.
            places = {folder: folder if at is None else at for folder, at in found.items()}
            return base, {folder: f"{at}/" if at else "" for folder, at in places.items()}
    tried = " or ".join(dict.fromkeys(map(str, bases)))
    raise InputError(
        f"{lines.at(0)}: {lines.paths[0]!r} does not exist, nor does any ending of it under"
        f" {tried}; move the list into the folder that holds the images, or (in Python) give that"
        " folder as root"
    )


def _ending(base: Path, folder: str, examples: Sequence[str]) -> str | None:
    """A folder that exists as it stands, or its longest ending under `base`; None without either.

    What lies below `base` is given from there. A folder is looked for as a whole: asking for each
    of 150,000 files would take minutes on a network disk.
    """
    if os.path.isabs(folder) and os.path.isdir(folder):
        inside = os.path.relpath(folder, base.absolute())
        if inside.split(os.sep)[0] == os.pardir:
            return folder
        return "" if inside == os.curdir else inside
    parts = [part for part in folder.split("/") if part not in ("", ".")]
    for start in range(len(parts)):
        ending = "/".join(parts[start:])
        if (base / ending).is_dir():
            return ending
    found = any((base / os.path.basename(path)).is_file() for path in examples)
    return "" if found else None


def _class_names(
    lines: _Lines, labels: list[int], classes: Sequence[str] | None
) -> tuple[str, ...]:
    """The class list of a labelled list, after its labels have been compared with it."""
    raw = {folder: folder.rpartition("/")[2] for folder in set(lines.folders)}
    check_class_names(sorted(filter(None, set(raw.values()))), str(lines.file))
    named = {folder: composed(name) for folder, name in raw.items()}
    if classes is None:
        return _own_names(lines, labels, named)
    numbers = {class_key(known): number for number, known in enumerate(classes)}
    right = {folder: numbers.get(class_key(name)) for folder, name in named.items()}
    if all(number is None for number in right.values()):
        for index, label in enumerate(labels):
            if label >= len(classes):
                raise _disagreement(lines, index, label, f"0 to {len(classes) - 1}")
        return tuple(classes)
    for index, (folder, label) in enumerate(zip(lines.folders, labels, strict=True)):
        if right[folder] is None:
            raise InputError(
                f"{lines.at(index)}: folder {named[folder]!r} is not one of the"
                f" {len(classes)} classes"
            )
        if right[folder] != label:
            expected = f"{right[folder]} for {named[folder]!r}"
            raise _disagreement(lines, index, label, expected)
    return tuple(classes)


def _own_names(lines: _Lines, labels: list[int], named: dict[str, str]) -> tuple[str, ...]:
    """Class names from the list's own folders, each of which must have a label of its own."""
    names = list(numbered_classes(max(labels), str(lines.file)))
    if len(named) == 1 and (len(set(labels)) > 1 or not all(named.values())):
        return tuple(names)
    numbers: dict[str, int] = {}
    owners: dict[int, str] = {}
    for index, (folder, label) in enumerate(zip(lines.folders, labels, strict=True)):
        name = named[folder]
        first = numbers.setdefault(name, label)
        if first != label:
            raise _disagreement(lines, index, label, f"{first} for {name!r} as on a line before")
        owner = owners.setdefault(label, name)
        if owner != name:
            raise _disagreement(lines, index, label, f"a number other than that of {owner!r}")
        names[label] = name
    return tuple(names)


def _disagreement(lines: _Lines, index: int, label: int, expected: str) -> InputError:
    return InputError(
        f"{lines.at(index)}: label {label} of {lines.paths[index]!r}; expected {expected}. Lists of"
        " different origin number classes differently: use one origin, or the class folders"
        " without a list"
    )
