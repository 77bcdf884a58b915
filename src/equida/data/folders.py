"""A domain from a folder: of class folders, or of unlabelled images."""

import difflib
import os
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from equida.data.domain import ImageDomain
from equida.data.images import EXTENSIONS, is_image_name
from equida.errors import InputError

# Folders and files that systems and archives leave behind; names that start with a dot are too.
_LITTER = frozenset(("thumbs.db", "desktop.ini", "__macosx", "image_list", "lost+found"))

_Place = tuple[int, int]  # device and inode


@dataclass
class FolderScan:
    """What a walk through a folder found; paths are relative to it."""

    root: Path
    loose: list[str] = field(default_factory=list)
    """Images directly inside the folder."""
    by_class: dict[str, list[str]] = field(default_factory=dict)
    """The images of each folder inside it, at any depth, sorted."""
    shallow: set[str] = field(default_factory=set)
    """The class folders that hold an image directly, not only in folders of their own."""
    ignored: Counter[str] = field(default_factory=Counter)
    """Files left aside because their extension is not an image's, by extension."""
    loops: list[str] = field(default_factory=list)
    """Links to a folder that they are inside of."""

    def ignored_kinds(self) -> str:
        """The ignored files in words, the most frequent extensions first."""
        ranked = sorted(self.ignored.items(), key=lambda item: (-item[1], item[0]))
        return ", ".join(f"{count} {extension}" for extension, count in ranked[:4])


def image_folder(
    root: str | Path,
    *,
    classes: Sequence[str] | None = None,
    name: str | None = None,
    scan: FolderScan | None = None,
) -> ImageDomain:
    """A domain of the images in a folder.

    Folders inside it are classes (images at any depth below belong to them); without any, its
    images are unlabelled. Hidden files are passed over, and so is every file without an image's
    extension. A class folder without images stays a class.

    Args:
        root: the folder.
        classes: the class list that the folders' names are looked up in, compared without case;
            by default the folders themselves, sorted.
        name: the folder's name by default.
        scan: what `scan_folder` found there, if that was done already.
    """
    scan = scan or scan_folder(root)
    name = name or scan.root.resolve().name
    if not any(scan.by_class.values()):
        if not scan.loose:
            raise InputError(_no_images(scan))
        return ImageDomain(scan.root, sorted(scan.loose), name=name, classes=classes or ())
    if classes is None:
        _refuse_mixture(scan)
        _refuse_depth(scan)
    folders = sorted(scan.by_class)
    names = tuple(classes or [normal(folder) for folder in folders])
    numbers = match_classes(folders, names, str(scan.root))
    paths: list[str] = []
    labels: list[int] = []
    for folder, number in sorted(zip(folders, numbers, strict=True), key=lambda pair: pair[1]):
        paths += scan.by_class[folder]
        labels += [number] * len(scan.by_class[folder])
    return ImageDomain(scan.root, paths, name=name, classes=names, labels=np.array(labels))


def unlabelled_folder(root: str | Path) -> ImageDomain:
    """A domain of all images below a folder, at any depth, whose folders mean nothing."""
    scan = scan_folder(root)
    paths = [*scan.loose, *(path for paths in scan.by_class.values() for path in paths)]
    if not paths:
        raise InputError(_no_images(scan))
    return ImageDomain(scan.root, sorted(paths), name=scan.root.resolve().name)


def scan_folder(root: str | Path) -> FolderScan:
    """Every image below `root`, found without opening a file."""
    scan = FolderScan(existing(root))
    if not scan.root.is_dir():
        raise InputError(f"{root} is a file; expected a folder")
    resolved = scan.root.resolve()
    above = tuple(_place(folder) for folder in (resolved, *resolved.parents))
    for entry in _entries(scan.root):
        if _is_folder(entry):
            if _place(entry.path) in above:
                scan.loops.append(entry.name)
            else:
                scan.by_class[entry.name] = _walk(scan, entry, above)
        elif is_image_name(entry.name):
            scan.loose.append(entry.name)
        else:
            scan.ignored[_extension(entry.name)] += 1
    return scan


def existing(path: str | Path) -> Path:
    """`path`, or an error that names the part that does not exist and what was likely meant."""
    path = Path(path).expanduser()
    if os.path.exists(path):
        return path
    part = path
    while not os.path.exists(part.parent):
        part = part.parent
    try:
        near = difflib.get_close_matches(part.name, os.listdir(part.parent), n=1)
    except OSError:
        near = []
    meant = f"; did you mean {part.parent / near[0]}?" if near else f"; {part.parent} exists"
    raise InputError(f"{path} does not exist{meant}")


def normal(name: str) -> str:
    """`name` with its accents composed, as one file system stores it and another does not."""
    return unicodedata.normalize("NFC", name)


def match_classes(found: Sequence[str], classes: Sequence[str], where: str) -> list[int]:
    """The index in `classes` of each name in `found`, compared without case."""
    _refuse_twins(classes, where)
    _refuse_twins(found, where)
    numbers = {normal(name).casefold(): number for number, name in enumerate(classes)}
    unknown = [name for name in found if normal(name).casefold() not in numbers]
    if unknown:
        near = difflib.get_close_matches(unknown[0], classes, n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
        raise InputError(
            f"{where}: {', '.join(map(repr, unknown[:5]))}{more} not among the {len(classes)}"
            f" classes{hint}; rename or remove"
        )
    return [numbers[normal(name).casefold()] for name in found]


def _refuse_twins(names: Sequence[str], where: str) -> None:
    seen: dict[str, str] = {}
    for name in names:
        twin = seen.setdefault(normal(name).casefold(), name)
        if twin != name:
            raise InputError(
                f"{where}: classes {twin!r} and {name!r} differ only in case; merge or rename one"
            )


def _refuse_mixture(scan: FolderScan) -> None:
    if scan.loose:
        raise InputError(
            f"{scan.root} holds {len(scan.loose)} images (such as {min(scan.loose)!r}) beside"
            f" {len(scan.by_class)} folders; move them into class folders, or away"
        )


def _refuse_depth(scan: FolderScan) -> None:
    filled = [name for name, paths in scan.by_class.items() if paths]
    if any(name in scan.shallow for name in filled):
        return
    deeper = sorted({path.rsplit("/", 2)[0] for name in filled for path in scan.by_class[name]})
    choice = ", ".join(str(scan.root / folder) for folder in deeper[:4])
    raise InputError(
        f"{scan.root} holds folders of folders; expected class folders with images inside. Give"
        f" the folder whose folders are the classes, such as {choice}"
    )


def _no_images(scan: FolderScan) -> str:
    others = scan.ignored_kinds()
    seen = f"; it holds other files ({others})" if others else ""
    empty = f"{len(scan.by_class)} empty folders; " if scan.by_class and not others else ""
    return (
        f"{scan.root} holds no images{seen}; {empty}expected class folders or images"
        f" ({' '.join(sorted(EXTENSIONS))})"
    )


def _entries(folder: str | Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as found:
            return [
                entry
                for entry in found
                if not entry.name.startswith(".") and entry.name.lower() not in _LITTER
            ]
    except PermissionError:
        raise InputError(f"{folder}: no permission to list this folder") from None


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


def _walk(scan: FolderScan, top: os.DirEntry[str], above: tuple[_Place, ...]) -> list[str]:
    """Paths of the images below one class folder, relative to the scan's root."""
    paths: list[str] = []
    waiting = [(top.name, top.path, (*above, _place(top.path)))]
    while waiting:
        prefix, folder, above = waiting.pop()
        for entry in _entries(folder):
            if _is_folder(entry):
                place = _place(entry.path)
                if place in above:
                    scan.loops.append(f"{prefix}/{entry.name}")
                else:
                    waiting.append((f"{prefix}/{entry.name}", entry.path, (*above, place)))
            elif is_image_name(entry.name):
                paths.append(f"{prefix}/{entry.name}")
                if prefix == top.name:
                    scan.shallow.add(top.name)
            else:
                scan.ignored[_extension(entry.name)] += 1
    return sorted(paths)


def _place(folder: str | Path) -> _Place:
    status = os.stat(folder)
    return status.st_dev, status.st_ino


def _extension(name: str) -> str:
    return os.path.splitext(name)[1].lower() or "without extension"
