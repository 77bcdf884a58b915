"""Finding a benchmark's domains in the folders and files that people have."""

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from equida.data.benchmarks import Benchmark, BenchmarkDomain, benchmark
from equida.data.digits import mnist, uci_digits
from equida.data.domain import Domain
from equida.data.feature_file import SUFFIXES, feature_domain, feature_domains
from equida.data.folders import existing, image_folder, match_classes
from equida.data.lists import image_list
from equida.data.task import Task, make_task
from equida.errors import InputError

_EMBEDDED = {"M": mnist, "U": uci_digits}
_DEPTH = 3


def load_task(
    data_set: str | Benchmark,
    source: str,
    target: str | None = None,
    data_dir: str | Path | None = None,
) -> Task:
    """A task of a benchmark: `load_task("office31", "A2W", data_dir=DIR)`, or with two domains.

    Args:
        data_set: the benchmark, in any spelling.
        source: a task ("A2W"), or the source's name if `target` is given.
        target: the target's name.
        data_dir: the folder with the domains, or a feature file; not for embedded data.
    """
    chosen = benchmark(data_set)
    pair = chosen.task(source) if target is None else (chosen.domain(source), chosen.domain(target))
    domains = [load_domain(chosen, domain.key, data_dir) for domain in pair]
    return make_task(*domains, name=f"{pair[0].key}2{pair[1].key}")


def load_domain(
    data_set: str | Benchmark, domain: str, data_dir: str | Path | None = None
) -> Domain:
    """One domain of a benchmark, labelled by the benchmark's class list.

    Class folders are preferred; an image list is used where there are none.
    """
    chosen = benchmark(data_set)
    wanted = chosen.domain(domain)
    if chosen.embedded:
        return _EMBEDDED[wanted.key]()
    if data_dir is None:
        raise InputError(
            f"{chosen.name} needs a folder with its images: --data DIR (how to get them:"
            f" equida doctor {chosen.name})"
        )
    base = existing(data_dir)
    if base.is_file():
        return _from_features(chosen, wanted, base)
    folder = find_folder(chosen, wanted, base)
    if folder is not None:
        return image_folder(folder, classes=chosen.classes, name=wanted.key)
    listed = find_list(wanted, base)
    if listed is not None:
        return image_list(listed, root=base, classes=chosen.classes, name=wanted.key)
    raise InputError(
        f"{base} has no folder for {chosen.title} {wanted.title}; expected {chosen.layout}"
        f" (equida doctor {chosen.name} --data {base})"
    )


def find_folder(chosen: Benchmark, domain: BenchmarkDomain, base: Path) -> Path | None:
    """The folder whose folders are the domain's classes, at most a few levels below `base`."""
    known = {name.casefold() for name in chosen.classes}
    for folder in _below(base.absolute(), _DEPTH, known):
        if domain.goes_by(folder.name):
            best = max(_below(folder, 1, known), key=lambda inner: _class_folders(inner, known))
            if _class_folders(best, known):
                return best
    return None


def find_list(domain: BenchmarkDomain, base: Path) -> Path | None:
    """The domain's image list: `image_list/amazon.txt`, `amazon_list.txt`, ..."""
    for folder in (base / "image_list", base / "list", base):
        for file in sorted(folder.glob("*.txt")) if folder.is_dir() else ():
            if domain.goes_by(file.stem.removesuffix("_list")):
                return file
    return None


def _below(base: Path, depth: int, classes: set[str]) -> Iterator[Path]:
    """`base` and the folders below it, nearest first; class folders are not entered."""
    level = [base]
    for step in range(depth + 1):
        yield from level
        if step < depth:
            level = [inner for folder in level for inner in _folders(folder, classes)]


def _folders(folder: Path, classes: set[str]) -> list[Path]:
    # One class name among them proves nothing: "train" is a domain and a class of VisDA-2017.
    if _class_folders(folder, classes) > 1:
        return []
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if entry.is_dir()]
    except OSError:
        return []
    return [folder / name for name in sorted(names) if not name.startswith(".")]


def _class_folders(folder: Path, classes: set[str]) -> int:
    try:
        with os.scandir(folder) as entries:
            return sum(entry.name.casefold() in classes and entry.is_dir() for entry in entries)
    except OSError:
        return 0


def _from_features(chosen: Benchmark, domain: BenchmarkDomain, file: Path) -> Domain:
    if file.suffix not in SUFFIXES:
        raise InputError(f"{file}: expected a folder or a feature file ({', '.join(SUFFIXES)})")
    names = feature_domains(file)
    same = [name for name in names if domain.goes_by(name)]
    if not same:
        raise InputError(
            f"{file} has no domain {domain.key} ({domain.title}); it holds {', '.join(names)}"
        )
    rows = feature_domain(file, domain=same[0], classes=chosen.classes, name=domain.key)
    if rows.labels is None:
        return rows.relabel(chosen.classes, None)
    order = np.array(match_classes(rows.classes, chosen.classes, str(file)), np.int64)
    return rows.relabel(chosen.classes, order[rows.labels])
