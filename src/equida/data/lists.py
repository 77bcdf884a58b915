"""A domain from an image list: one `path label` per line."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from equida.data.domain import ImageDomain
from equida.data.folders import existing, normal
from equida.data.images import is_image_name
from equida.errors import InputError


def image_list(
    file: str | Path,
    *,
    root: str | Path | None = None,
    classes: Sequence[str] | None = None,
    name: str | None = None,
) -> ImageDomain:
    """A domain of the images that a list names.

    The label is what follows the last space, so paths may hold spaces; a list of paths alone is
    unlabelled. A path that does not exist as it stands, such as an absolute one of another machine,
    is taken from `root` by the longest of its endings that exists there.

    Numbers are only trusted as far as they agree with the names of the class folders: published
    lists of one data set number its classes differently.

    Args:
        file: the list.
        root: the folder that holds the images; by default the list's own, or the one above it.
        classes: the class list that the numbers must agree with.
        name: the list's name by default.
    """
    lines = _read(existing(file))
    folders = sorted({os.path.dirname(path) for path in lines.paths})
    bases = [existing(root)] if root else [lines.file.parent, lines.file.parent.parent]
    base, places = _placed(lines, folders, bases)
    paths = [_join(places[os.path.dirname(path)], os.path.basename(path)) for path in lines.paths]
    names: tuple[str, ...] = tuple(classes or ())
    if lines.labels is not None:
        names = _class_names(lines, classes)
    return ImageDomain(
        base, paths, name=name or lines.file.stem, classes=names, labels=lines.labels
    )


@dataclass
class _Lines:
    file: Path
    paths: list[str]
    labels: NDArray[np.int64] | None
    numbers: list[int]
    """The line each path stands on."""

    def at(self, index: int) -> str:
        return f"{self.file}:{self.numbers[index]}"


def _read(file: Path) -> _Lines:
    try:
        text = file.read_text(encoding="utf-8-sig", errors="surrogateescape")
    except OSError as error:
        raise InputError(f"{file}: {os.strerror(error.errno or 0).lower()}") from None
    paths: list[str] = []
    labels: list[int] = []
    numbers: list[int] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        path, label = _split(line, f"{file}:{number}")
        if paths and (label is None) == bool(labels):
            raise InputError(
                f"{file}:{number}: {line.strip()!r} is {'not ' if labels else ''}labelled, unlike"
                f" the lines before; expected 'path label' on every line, or only paths"
            )
        paths.append(path)
        numbers.append(number)
        if label is not None:
            labels.append(label)
    if not paths:
        raise InputError(f"{file} is empty; expected lines of 'path label'")
    return _Lines(file, paths, np.array(labels, np.int64) if labels else None, numbers)


def _split(line: str, where: str) -> tuple[str, int | None]:
    fields = line.strip().rsplit(None, 1)
    path, label = fields[0], None
    if len(fields) == 2 and fields[1].lstrip("-").isdecimal():
        label = int(fields[1])
    else:
        path = line.strip()
    if "/" not in path:
        path = path.replace("\\", "/")
    if not is_image_name(path) or (label is not None and label < 0):
        raise InputError(
            f"{where}: read {line.strip()!r}; expected the path of an image and one label from 0"
        )
    return path, label


def _placed(
    lines: _Lines, folders: Sequence[str], bases: Sequence[Path]
) -> tuple[Path, dict[str, str]]:
    """The base under which the list's folders exist, and where each of them is below it."""
    example = {os.path.dirname(path): path for path in reversed(lines.paths)}
    for base in bases:
        places = {folder: _ending(base, folder, example[folder]) for folder in folders}
        if any(place is not None for place in places.values()):
            # What is missing keeps its path, and is named with all the others when it is read.
            return base, {
                folder: folder if place is None else place for folder, place in places.items()
            }
    tried = " or ".join(map(str, bases))
    raise InputError(
        f"{lines.at(0)}: {lines.paths[0]!r} does not exist, nor does any ending of it under"
        f" {tried}; give the folder that holds the images as root"
    )


def _ending(base: Path, folder: str, example: str) -> str | None:
    """The longest ending of `folder` that exists under `base`, or None.

    A whole folder is placed at once: asking for each of 150,000 files would take minutes on a
    network disk.
    """
    parts = [part for part in folder.split("/") if part not in ("", ".")]
    for start in range(len(parts)):
        ending = "/".join(parts[start:])
        if (base / ending).is_dir():
            return ending
    if (base / os.path.basename(example)).is_file():
        return ""
    return folder if os.path.isabs(folder) and os.path.isdir(folder) else None


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _class_names(lines: _Lines, classes: Sequence[str] | None) -> tuple[str, ...]:
    """The class list of a labelled list, after its numbers have been held against it."""
    assert lines.labels is not None
    folders = [normal(os.path.basename(os.path.dirname(path))) for path in lines.paths]
    if classes is None:
        return _own_names(lines, folders)
    numbers = {normal(known).casefold(): number for number, known in enumerate(classes)}
    named = [folder.casefold() in numbers for folder in folders]
    for index, label in enumerate(lines.labels.tolist()):
        if not any(named):
            _expect(lines, index, label < len(classes), f"0 to {len(classes) - 1}")
        elif not named[index]:
            raise InputError(
                f"{lines.at(index)}: folder {folders[index]!r} is not one of the {len(classes)}"
                " classes"
            )
        else:
            right = numbers[folders[index].casefold()]
            _expect(lines, index, label == right, f"{right} for {folders[index]!r}")
    return tuple(classes)


def _own_names(lines: _Lines, folders: Sequence[str]) -> tuple[str, ...]:
    """Class names from the list's own folders, each of which must have one number of its own."""
    assert lines.labels is not None
    labels = lines.labels.tolist()
    names = [str(number) for number in range(max(labels) + 1)]
    if len(set(folders)) == 1 and len(set(labels)) > 1:
        return tuple(names)
    numbers: dict[str, int] = {}
    owners: dict[int, str] = {}
    for index, (folder, label) in enumerate(zip(folders, labels, strict=True)):
        first = numbers.setdefault(folder, label)
        _expect(lines, index, first == label, f"{first} for {folder!r} as on the lines before")
        owner = owners.setdefault(label, folder)
        _expect(lines, index, owner == folder, f"a number other than that of {owner!r}")
        names[label] = folder
    return tuple(names)


def _expect(lines: _Lines, index: int, right: bool, expected: str) -> None:
    if not right:
        assert lines.labels is not None
        raise InputError(
            f"{lines.at(index)}: label {lines.labels[index]} of {lines.paths[index]!r}; expected"
            f" {expected}. Lists of different origin number classes differently: use one origin, or"
            " the class folders without a list"
        )
