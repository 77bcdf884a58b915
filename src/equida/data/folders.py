"""A domain from a folder: of class folders, or of unlabelled images."""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from equida.data.classes import composed, match_classes
from equida.data.domain import ImageDomain
from equida.data.images import EXTENSIONS
from equida.data.walk import FolderTree, folder_tree
from equida.errors import InputError, counted


@dataclass
class FolderScan:
    """The images of a folder, by class; paths are relative to the folder."""

    root: Path
    loose: list[str] = field(default_factory=list)
    """Images directly inside the folder."""
    by_class: dict[str, list[str]] = field(default_factory=dict)
    """The images of each folder inside it, at any depth, sorted."""
    shallow: set[str] = field(default_factory=set)
    """The class folders that hold an image directly, not only in folders of their own."""
    ignored: Counter[str] = field(default_factory=Counter)
    """How many files of each extension were left aside because they are not images."""
    loops: list[str] = field(default_factory=list)
    """Links that are not followed: to a folder that they are inside of, or behind three others."""

    def ignored_kinds(self) -> str:
        """The ignored files in words, the most frequent extensions first."""
        ranked = sorted(self.ignored.items(), key=lambda item: (-item[1], item[0]))
        return ", ".join(f"{count} {extension}" for extension, count in ranked[:4])


def image_folder(
    root: str | Path | FolderTree,
    *,
    classes: Sequence[str] | None = None,
    name: str | None = None,
    scan: FolderScan | None = None,
) -> ImageDomain:
    """A domain of the images in a folder.

    The folders inside it are classes, and images at any depth below a class folder belong to that
    class; without such folders, its images are unlabelled. Hidden files are passed over, and so is
    every file without an image's extension. A class folder without images stays a class.

    Args:
        root: the folder.
        classes: the class list in which the names of the folders are looked up, without regard to
            case; by default the folders themselves, sorted.
        name: the domain's name; by default the folder's.
        scan: what `scan_folder` found there, if that was done already.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as photos:
    ...     for image in ("mug/1.jpg", "mug/2.jpg", "pen/1.jpg", "pen/notes.txt"):
    ...         Path(photos, image).parent.mkdir(exist_ok=True)
    ...         Path(photos, image).touch()
    ...     image_folder(photos, name="photos")  # images are read when they are needed
    ImageDomain('photos', 3 samples, 2 classes)
    """
    scan = scan or scan_folder(root)
    name = name or scan.root.resolve().name
    if not any(scan.by_class.values()):
        if not scan.loose:
            raise InputError(_no_images(scan))
        return ImageDomain(scan.root, scan.loose, name=name, classes=classes or ())
    if classes is None:
        _refuse_mixture(scan)
        _refuse_depth(scan)
    folders = sorted(scan.by_class)
    names = tuple(classes or [composed(folder) for folder in folders])
    numbers = match_classes(folders, names, str(scan.root))
    paths: list[str] = []
    labels: list[int] = []
    for folder, number in sorted(zip(folders, numbers, strict=True), key=lambda pair: pair[1]):
        paths += scan.by_class[folder]
        labels += [number] * len(scan.by_class[folder])
    return ImageDomain(scan.root, paths, name=name, classes=names, labels=np.array(labels))


def unlabelled_folder(root: str | Path | FolderTree) -> ImageDomain:
    """A domain of all images below a folder, at any depth; the folders are not classes."""
    scan = scan_folder(root)
    paths = [*scan.loose, *(path for paths in scan.by_class.values() for path in paths)]
    if not paths:
        raise InputError(_no_images(scan))
    return ImageDomain(scan.root, sorted(paths), name=scan.root.resolve().name)


def scan_folder(root: str | Path | FolderTree) -> FolderScan:
    """Every image below `root` by class, found without opening a file."""
    tree = folder_tree(root)
    scan = FolderScan(tree.path, loose=list(tree.images), loops=list(tree.loops))
    scan.ignored.update(map(_extension, tree.others))
    for name, folder in tree.folders.items():
        if folder.images:
            scan.shallow.add(name)
        paths: list[str] = []
        for prefix, inner in folder.walk():
            paths += [f"{name}/{prefix}{image}" for image in inner.images]
            scan.loops += [f"{name}/{prefix}{link}" for link in inner.loops]
            scan.ignored.update(map(_extension, inner.others))
        scan.by_class[name] = sorted(paths)
    return scan


def _refuse_mixture(scan: FolderScan) -> None:
    if scan.loose:
        raise InputError(
            f"{scan.root} holds {counted(len(scan.loose), 'image')} (such as"
            f" {min(scan.loose)!r}) beside {counted(len(scan.by_class), 'folder')};"
            " move images into class folders, or away"
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
    empty = (
        f"{counted(len(scan.by_class), 'empty folder')}; " if scan.by_class and not others else ""
    )
    return (
        f"{scan.root} holds no images{seen}; {empty}expected class folders or images"
        f" ({' '.join(sorted(EXTENSIONS))})"
    )


def _extension(name: str) -> str:
    return os.path.splitext(name)[1].lower() or "without extension"
