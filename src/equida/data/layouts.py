"""Finding a benchmark's domains in the folders that people have."""

from collections.abc import Iterator
from pathlib import Path

from equida.data.benchmarks import Benchmark, BenchmarkDomain
from equida.data.walk import FolderTree

_DEPTH = 3


def find_folder(chosen: Benchmark, domain: BenchmarkDomain, base: FolderTree) -> FolderTree | None:
    """The folder whose folders are the domain's classes, at most a few levels below `base`."""
    known = {name.casefold() for name in chosen.classes}
    for folder in _below(base, _DEPTH, known):
        if domain.goes_by(folder.path.absolute().name):
            best = max(_below(folder, 1, known), key=lambda inner: _class_folders(inner, known))
            if _class_folders(best, known):
                return best
    return None


def find_list(domain: BenchmarkDomain, base: FolderTree) -> Path | None:
    """The domain's image list: `image_list/amazon.txt`, `amazon_list.txt`, ..."""
    if not base.listable:
        return None
    for folder in filter(None, (base.inner("image_list"), base.inner("list"), base)):
        for name in folder.others if folder.listable else ():
            if name.endswith(".txt") and domain.goes_by(name[:-4].removesuffix("_list")):
                return folder.path / name
    return None


def _below(base: FolderTree, depth: int, classes: set[str]) -> Iterator[FolderTree]:
    """`base` and the folders below it, nearest first; class folders are not entered."""
    level = [base]
    for step in range(depth + 1):
        yield from level
        if step < depth:
            level = [inner for folder in level for inner in _folders(folder, classes)]


def _folders(folder: FolderTree, classes: set[str]) -> list[FolderTree]:
    # One class name among them proves nothing: "train" is a domain and a class of VisDA-2017.
    if not folder.listable or _class_folders(folder, classes) > 1:
        return []
    return list(folder.folders.values())


def _class_folders(folder: FolderTree, classes: set[str]) -> int:
    return sum(name.casefold() in classes for name in folder.folders) if folder.listable else 0
