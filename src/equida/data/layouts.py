"""Finding a benchmark's domains in the folders that people have."""

from collections.abc import Iterator
from pathlib import Path

from equida.data.benchmarks import Benchmark, BenchmarkDomain
from equida.data.classes import class_key
from equida.data.shares import Role
from equida.data.walk import FolderTree
from equida.errors import InputError

_DEPTH = 3
LIST_FOLDERS = ("image_list", "list", "lists")
"""What folders of image lists are called."""


def find_folder(chosen: Benchmark, domain: BenchmarkDomain, base: FolderTree) -> FolderTree | None:
    """The folder whose folders are the domain's classes, at most a few levels below `base`."""
    known = set(map(class_key, chosen.classes))
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
    for folder in filter(None, (*map(base.inner, LIST_FOLDERS), base)):
        for name in folder.others if folder.listable else ():
            if name.endswith(".txt") and domain.goes_by(name[:-4].removesuffix("_list")):
                return folder.path / name
    return None


def find_choices(chosen: Benchmark, data: Path | None, lists: str | Path | None) -> Path | None:
    """The folder of the image lists that choose samples, where a data set has such lists.

    Args:
        chosen: the data set.
        data: its folder or feature file; the lists are looked for there and in a folder beside.
        lists: the folder that the user names.
    """
    if not chosen.source_list:
        if lists:
            raise InputError(f"--lists is {lists}, but {chosen.name} uses all its samples")
        return None
    beside = data if data is None or data.is_dir() else data.parent
    places = [beside / name for name in ("", *LIST_FOLDERS)] if beside else []
    tried = [Path(lists)] if lists else places
    for folder in tried:
        if all(len(choice_files(chosen, domain, folder)) == 2 for domain in chosen.domains):
            return folder.absolute()
    domain = chosen.domains[0]
    named = " and ".join(f"{domain.folder}{end}.txt" for end in _endings(chosen).values())
    place = f"--lists {lists} has" if lists else "there are"
    raise InputError(
        f"{chosen.name} chooses its samples by image lists, and {place} no {named}; give the folder"
        f" of the lists: --lists DIR (how to get them: equida doctor {chosen.name})"
    )


def choice_files(
    chosen: Benchmark, domain: BenchmarkDomain, folder: Path | None
) -> dict[Role, Path]:
    """The image lists that choose the samples of a domain as source and as target."""
    files = sorted(folder.glob("*.txt")) if folder and folder.is_dir() else ()
    return {
        role: file
        for role, ending in _endings(chosen).items()
        for file in files
        if file.stem.endswith(ending) and domain.goes_by(file.stem.removesuffix(ending))
    }


def _endings(chosen: Benchmark) -> dict[Role, str]:
    return {"source": chosen.source_list, "target": chosen.target_list}


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
    return sum(class_key(name) in classes for name in folder.folders) if folder.listable else 0
