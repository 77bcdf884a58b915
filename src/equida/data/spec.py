"""The data of a run: where they are, the task that is opened from them, and their digest."""

import dataclasses
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from equida.data.benchmarks import Benchmark, benchmark
from equida.data.checks import Unreadable, check_finite, find_unreadable, named, without_unreadable
from equida.data.domain import ArrayDomain, Domain, DomainT, ImageDomain
from equida.data.folders import unlabelled_folder
from equida.data.layouts import choice_files
from equida.data.open import load_domain, open_domain, split_path
from equida.data.own import OwnBenchmark
from equida.data.shares import protocol_title, recorded_shares, subsampled
from equida.data.task import ClassRule, Task, make_task, of_classes, present_classes
from equida.data.walk import FolderTree
from equida.errors import InputError
from equida.files import file_sha256
from equida.records import construct


@dataclass(frozen=True)
class DataSpec:
    """Where a task comes from: a benchmark's task, or two folders, lists or feature files."""

    source: str
    """A domain of the benchmark, or a path; "" where a finished run takes the source's place."""
    target: str
    """A domain of the benchmark, or a path."""
    benchmark: str | None = None
    """The name of a benchmark, or None for the user's own data."""
    data: str | None = None
    """The benchmark's folder, or a feature file of it."""
    skip_unreadable: bool = False
    """Leave out images that cannot be read, instead of stopping."""
    ignore_target_labels: bool = False
    """The target's folders are not classes: all images below it are used, without labels."""
    classes: ClassRule = "source"
    """Which classes the task has where the domains' differ."""
    own: OwnBenchmark | None = None
    """The user's data set whose domains `source` and `target` are, as it was found in `data`."""
    source_shares: str = ""
    """What the source's classes are cut down to, such as "long-tail:30" (see `data.shares`)."""
    target_shares: str = ""
    """The same for the target."""
    lists: str | None = None
    """Folder of the image lists that choose the samples of a benchmark that has such lists."""

    @property
    def protocol(self) -> str:
        """What is made of the data besides opening them, in words; "" for nothing.

        >>> DataSpec("A", "W", "office31", target_shares="long-tail:30").protocol
        'target long-tail:30'
        """
        pairs = (("source", self.source_shares), ("target", self.target_shares))
        return ", ".join(f"{role} {protocol_title(text)}" for role, text in pairs if text)

    @property
    def data_set(self) -> Benchmark | None:
        """The data set that the domains belong to; None for two paths."""
        if self.own is not None:
            return self.own.benchmark()
        return None if self.benchmark is None else benchmark(self.benchmark)

    def identity(self) -> dict[str, Any]:
        """The fields as plain values; those of later versions only where they are in use.

        Names of run folders depend on this form, so that runs made earlier are found again.
        """
        first = ("source", "target", "benchmark", "data", "skip_unreadable", "ignore_target_labels")
        unused = DataSpec("", "")
        return {
            name: value
            for name, value in dataclasses.asdict(self).items()
            if name in first or value != getattr(unused, name)
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any], name: str = "the record") -> "DataSpec":
        """The data as a run's record names them.

        Args:
            stored: the fields as `dataclasses.asdict` and JSON have stored them.
            name: where they stand, for error messages.
        """
        spec = construct(cls, stored, name)
        return dataclasses.replace(
            spec,
            own=None if stored.get("own") is None else OwnBenchmark.from_json(stored["own"]),
            source_shares=recorded_shares(spec.source_shares, f"{name}.source_shares"),
            target_shares=recorded_shares(spec.target_shares, f"{name}.target_shares"),
        )


class DataPlaces:
    """The folders and files of one command: each is listed, checked, or read for its digest, once.

    `places[path]` is the `FolderTree` of a folder, and the path of anything else.
    """

    def __init__(self) -> None:
        self._trees: dict[Path, FolderTree] = {}
        self._digests: dict[Path, str] = {}
        self._unreadable: dict[tuple[Path, bytes, bool], dict[int, str]] = {}

    def __getitem__(self, path: str | Path) -> Path | FolderTree:
        absolute = Path(path).expanduser().absolute()
        if absolute not in self._trees and absolute.is_dir():
            self._trees[absolute] = FolderTree(absolute)
        return self._trees.get(absolute, absolute)

    def digest(self, path: str | Path) -> str:
        """The digest of one folder or file (see `data_sha256`)."""
        place = self[path]
        known = place.path if isinstance(place, FolderTree) else place
        if known not in self._digests:
            self._digests[known] = _digest(place)
        return self._digests[known]

    def unreadable(self, domain: Domain, *, deep: bool) -> dict[int, str]:
        """The samples of a domain that cannot be read (see `find_unreadable`).

        A domain is in many tasks of a data set, and its files are looked at for the first of them.
        """
        if not isinstance(domain, ImageDomain):
            return find_unreadable(domain, deep=deep)
        key = (domain.root, domain.paths.digest(), deep)
        if key not in self._unreadable:
            self._unreadable[key] = find_unreadable(domain, deep=deep)
        return self._unreadable[key]


@dataclass(frozen=True)
class OpenedTask:
    """The data of a run."""

    spec: DataSpec
    task: Task
    left_out: Unreadable
    """The samples that were left out because they cannot be read, each with the reason."""
    places: DataPlaces
    """The folders that were listed, for whoever opens more of them."""

    @cached_property
    def digest(self) -> str:
        """What two runs on the same data share (see `data_sha256`); no folder is listed again."""
        return data_sha256(self.spec, places=self.places)


def open_task(
    spec: DataSpec, classes: tuple[str, ...] | None = None, *, places: DataPlaces | None = None
) -> OpenedTask:
    """The task that a run's config names, checked: what cannot be trained on is refused.

    Every folder is listed once, for both domains and the digest together, and every image file of
    the two domains is opened once, also where `places` has been used for other tasks before.

    Args:
        spec: what to open.
        classes: in source-free adaptation, the classes of the finished run.
        places: the folders that were looked into before, so that they are not listed again.
    """
    places = places or DataPlaces()
    target, test = _target(spec, places), _test(spec, places)
    source, name = _source(spec, places, target) if spec.source else (None, None)
    task, left_out = task_of(
        source,
        target,
        test=test,
        classes=classes or (),
        class_rule=spec.classes,
        name=name,
        skip_unreadable=spec.skip_unreadable,
        places=places,
    )
    return OpenedTask(spec, task, left_out, places)


def task_of(
    source: Domain | None,
    target: Domain,
    *,
    test: Domain | None = None,
    classes: tuple[str, ...] = (),
    class_rule: ClassRule = "source",
    name: str | None = None,
    skip_unreadable: bool = False,
    places: DataPlaces | None = None,
) -> tuple[Task, Unreadable]:
    """The task of two opened domains, checked, and the samples that were left out as unreadable.

    Args:
        source: None in source-free adaptation.
        target: the domain to adapt to.
        test: samples that the result is judged by instead of the target's.
        classes: in source-free adaptation, the classes of the finished run.
        class_rule: which classes the task has, as for `make_task`.
        name: of the task; made from the names of the domains by default.
        skip_unreadable: leave out samples that cannot be read, instead of stopping.
        places: what was looked into before, so that no file is looked at again.
    """
    places = places or DataPlaces()
    target, left_out = _readable(target, skip_unreadable, places)
    if test is not None:
        test, more = _readable(test, skip_unreadable, places)
        left_out = [*left_out, *more]
    if source is None:
        task = _source_free(classes, target, test)
    else:
        source, more = _readable(source, skip_unreadable, places)
        left_out = [*more, *left_out]
        _refuse_mostly_absent(source)
        task = make_task(source, target, name=name, class_rule=class_rule, test=test)
    for domain in dict.fromkeys((task.source, task.target, task.judged)):
        if isinstance(domain, ArrayDomain):
            check_finite(domain)
    return task, left_out


def open_target(spec: DataSpec) -> Domain:
    """Only the samples that a task is judged by, unchecked."""
    places = DataPlaces()
    return _test(spec, places) or _target(spec, places)


def data_sha256(spec: DataSpec, *, places: DataPlaces | None = None) -> str:
    """A digest of the data of a task; "" for data that come inside a package.

    Files (features, lists) count by their content, folders by the path and size of each image below
    them: reading all images would take longer than many a run. Other files, such as runs and notes,
    do not matter, nor do hidden files.

    Args:
        spec: the data.
        places: the folders that were looked into before, so that they are not listed again.
    """
    places = places or DataPlaces()
    paths = [spec.data] if spec.data_set else [spec.source, spec.target]
    paths += own_files(spec)
    found = [places.digest(split_path(path)[0]) for path in paths if path]
    if spec.lists and spec.benchmark:
        chosen = benchmark(spec.benchmark)
        for domain in chosen.domains:
            files = choice_files(chosen, domain, Path(spec.lists))
            found += [places.digest(file) for file in files.values()]
    return hashlib.sha256("".join(found).encode()).hexdigest() if found else ""


def own_files(spec: DataSpec) -> list[str]:
    """The lists and feature files that the domains of a user's data set are read from."""
    if spec.own is None or spec.data is None or not os.path.isdir(spec.data):
        return []
    named = [path for domain in spec.own.domains for path in (domain.place, domain.test) if path]
    files = [split_path(os.path.join(spec.data, path))[0] for path in named]
    return [str(file) for file in dict.fromkeys(files) if file.is_file()]


def _digest(place: Path | FolderTree) -> str:
    if not isinstance(place, FolderTree):
        return file_sha256(place) if place.is_file() else hashlib.sha256().hexdigest()
    digest = hashlib.sha256()
    for prefix, folder in place.walk(skip_forbidden=True):
        inside = os.fspath(folder.path)
        for name in folder.images:
            try:
                size = os.stat(os.path.join(inside, name)).st_size
            except OSError:  # a link to a file that is gone
                continue
            digest.update(f"{prefix}{name}\0{size}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _source(spec: DataSpec, places: DataPlaces, target: Domain) -> tuple[Domain, str | None]:
    """The source, and the name of the task, or None for the usual name."""
    chosen = spec.data_set
    if chosen is None:
        source = subsampled(_at(spec.source, places), spec.source_shares, "source")
        if spec.source_shares:
            source = of_classes(source, tuple(present_classes(source)))
        if source.name == target.name:
            source.name, target.name = _apart(spec.source, spec.target)
        return source, None
    keys = [chosen.domain(name).key for name in (spec.source, spec.target)]
    source = load_domain(chosen, keys[0], _data(spec, places), role="source", lists=spec.lists)
    source = subsampled(source, spec.source_shares, "source")
    if spec.own is not None:  # its class list is that of all domains together
        source = of_classes(source, tuple(present_classes(source)))
    return source, "2".join(keys)


def _target(spec: DataSpec, places: DataPlaces) -> Domain:
    chosen = spec.data_set
    if chosen is not None:
        target = load_domain(
            chosen, spec.target, _data(spec, places), role="target", lists=spec.lists
        )
    else:
        place = places[spec.target]
        if spec.ignore_target_labels and isinstance(place, FolderTree):
            return subsampled(unlabelled_folder(place), spec.target_shares, "target")
        target = _at(spec.target, places)
    target = subsampled(target, spec.target_shares, "target")
    return target.relabel((), None) if spec.ignore_target_labels else target


def _test(spec: DataSpec, places: DataPlaces) -> Domain | None:
    """The samples that the target is judged by, where its data set has others for it."""
    if spec.own is None or not spec.own.domain(spec.target).test:
        return None
    test = load_domain(spec.own.benchmark(), spec.target, _data(spec, places), test=True)
    if spec.target_shares:
        target = load_domain(spec.own.benchmark(), spec.target, _data(spec, places))
        test = subsampled(test, spec.target_shares, "target", like=target)
    return test.relabel((), None) if spec.ignore_target_labels else test


def _at(path: str, places: DataPlaces) -> Domain:
    file, domain = split_path(path)
    return open_domain(places[file], domain=domain)


def _data(spec: DataSpec, places: DataPlaces) -> Path | FolderTree | None:
    return places[spec.data] if spec.data else None


def _readable(domain: DomainT, skip: bool, places: DataPlaces) -> tuple[DomainT, Unreadable]:
    """The domain without the samples that cannot be read.

    Where those are to be left out, every image is decoded: a look at its first and last bytes does
    not find all damage. Rows that are not to be left out are looked at later, by `check_finite`.
    """
    if isinstance(domain, ArrayDomain) and not skip:
        return domain, []
    bad = places.unreadable(domain, deep=skip)
    return without_unreadable(domain, bad, skip=skip), named(domain, bad)


def _source_free(classes: tuple[str, ...], target: Domain, test: Domain | None) -> Task:
    """The target under the classes of a finished run; its labels are looked up by class name."""
    finished = target.relabel(classes, np.zeros(len(target), np.int64))
    finished.name = "of the finished run"
    task = make_task(finished, target, test=test)
    return dataclasses.replace(task, name=target.name, source=task.target)


def _refuse_mostly_absent(source: Domain) -> None:
    present, every = int((source.class_counts() > 0).sum()), len(source.classes)
    if source.labels is not None and every - present > every // 2:
        raise InputError(
            f"{source.named_as('source')} has samples of {present} of its {every} classes; number"
            " or name only classes that it has"
        )


def _apart(source: str, target: str) -> tuple[str, str]:
    """The last parts of two paths that differ, as names of the domains.

    >>> _apart("cam1/images", "cam2/images")
    ('cam1', 'cam2')
    """
    ends = (Path(source).name, Path(target).name)
    pairs = zip(reversed(Path(source).parts), reversed(Path(target).parts), strict=False)
    return next((pair for pair in pairs if pair[0] != pair[1]), ends)
