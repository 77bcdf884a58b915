"""Opening data: one domain, a benchmark's domain, or everything that a run's config names."""

import dataclasses
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from equida.data.benchmarks import Benchmark, BenchmarkDomain, benchmark
from equida.data.checks import Unreadable, check_finite, keep_readable
from equida.data.classes import match_classes
from equida.data.domain import ArrayDomain, Domain, DomainT
from equida.data.feature_file import SUFFIXES, feature_domain, feature_domains
from equida.data.folders import image_folder, unlabelled_folder
from equida.data.images import is_image_name
from equida.data.layouts import choice_files, find_choices, find_folder, find_list
from equida.data.lists import image_list, listed_samples
from equida.data.own import OwnBenchmark, OwnDomain
from equida.data.shares import Role, protocol_title, subsampled
from equida.data.task import ClassRule, Task, make_task, of_classes, present_classes
from equida.data.walk import FolderTree, existing
from equida.errors import InputError
from equida.files import file_sha256

LIST_SUFFIXES = (".txt", ".list", ".lst")

Place = str | Path | FolderTree
"""A path, or a folder that was looked into before and need not be listed again."""


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
    def from_json(cls, stored: Mapping[str, Any]) -> "DataSpec":
        """The data as a run's record names them."""
        if not isinstance(stored, Mapping):
            raise TypeError(f"the data are {type(stored).__name__}, not an object")
        own = stored.get("own")
        return cls(**{**stored, "own": None if own is None else OwnBenchmark.from_json(own)})


class DataPlaces:
    """The folders and files of one command: each is listed, or read for its digest, only once.

    `places[path]` is the `FolderTree` of a folder, and the path of anything else.
    """

    def __init__(self) -> None:
        self._trees: dict[Path, FolderTree] = {}
        self._digests: dict[Path, str] = {}

    def __getitem__(self, path: str | Path) -> Path | FolderTree:
        absolute = Path(path).expanduser().absolute()
        if absolute not in self._trees and absolute.is_dir():
            self._trees[absolute] = FolderTree(absolute)
        return self._trees.get(absolute, absolute)

    def digest(self, path: str | Path) -> str:
        """The digest of one folder or file (see `data_sha256`)."""
        place = self[path]
        if isinstance(place, FolderTree):
            return _folder_digest(place)
        if place not in self._digests:
            nothing = hashlib.sha256().hexdigest()
            self._digests[place] = file_sha256(place) if place.is_file() else nothing
        return self._digests[place]


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


def open_domain(
    path: Place,
    *,
    domain: str | None = None,
    classes: Sequence[str] | None = None,
    root: str | Path | None = None,
) -> Domain:
    """The domain that a path holds: a folder, an image list (.txt) or a feature file.

    Args:
        path: what to open.
        domain: which domain, where a file holds several or a folder has a folder for each.
        classes: the class list that labels must agree with.
        root: the folder of the images that a list names.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = Path(folder.name, "shop.npz")
    >>> np.savez(file, X=np.zeros((3, 5)), y=np.array(["mug", "pen", "pen"]))
    >>> open_domain(file)
    ArrayDomain('shop', 3 samples, 2 classes)
    """
    found = path if isinstance(path, FolderTree) else existing(path)
    if isinstance(found, FolderTree) or found.is_dir():
        return image_folder(_inner(found, domain) if domain else found, classes=classes)
    if found.suffix in SUFFIXES:
        return feature_domain(found, domain=domain, classes=classes)
    if found.suffix in LIST_SUFFIXES:
        return image_list(found, root=root, classes=classes)
    kind = "one image; give its folder" if is_image_name(found.name) else "not known"
    raise InputError(
        f"{found} is {kind}; expected a folder, an image list (.txt) or a feature file"
        f" ({', '.join(SUFFIXES)})"
    )


def load_task(
    data_set: str | Benchmark,
    source: str,
    target: str | None = None,
    data_dir: Place | None = None,
) -> Task:
    """A task of a benchmark, by the task's name or by its two domains.

    Args:
        data_set: the benchmark, in any spelling.
        source: a task ("A2W"), or the source's name if `target` is given.
        target: the target's name.
        data_dir: the folder with the domains, or a feature file; not needed for data that come
            inside a package.

    >>> load_task("digits", "U2M").source
    ArrayDomain('U', 1797 samples, 10 classes)
    """
    chosen = benchmark(data_set)
    pair = chosen.task(source) if target is None else (chosen.domain(source), chosen.domain(target))
    place = None if data_dir is None else find_data(data_dir)
    roles: tuple[Role, Role] = ("source", "target")
    source_domain, target_domain = (
        load_domain(chosen, domain.key, place, role=role)
        for domain, role in zip(pair, roles, strict=True)
    )
    return make_task(source_domain, target_domain, name=f"{pair[0].key}2{pair[1].key}")


def load_domain(
    data_set: str | Benchmark,
    domain: str,
    data_dir: Place | None = None,
    *,
    role: Role | None = None,
    lists: str | Path | None = None,
    test: bool = False,
) -> Domain:
    """One domain of a benchmark, labelled by the benchmark's class list.

    Class folders are preferred; an image list is used where there are none.

    Args:
        data_set: the benchmark, in any spelling.
        domain: the domain, in any spelling.
        data_dir: as for `load_task`.
        role: what it is used as, for a benchmark that has other samples of a domain as source than
            as target; None: all samples.
        lists: the folder of the image lists that choose them; by default they are looked for in
            `data_dir`.
        test: the samples that the domain is judged by, where the data set has others for it.

    >>> load_domain("digits", "uci")
    ArrayDomain('U', 1797 samples, 10 classes)
    """
    chosen = benchmark(data_set)
    wanted = chosen.domain(domain)
    if wanted.load is not None:
        if data_dir is not None:
            raise InputError(
                f"--data has no effect: {chosen.name} comes inside a package; leave it out"
            )
        return wanted.load()
    if data_dir is None and chosen.root:
        data_dir = chosen.root
    if data_dir is None:
        raise InputError(
            f"{chosen.name} needs a folder with its images: --data DIR (how to get them:"
            f" equida doctor {chosen.name})"
        )
    place = find_data(data_dir)
    if isinstance(place, FolderTree) and chosen.own:
        own = chosen.own.domain(wanted.key)
        opened = _under(open_own(own, place, test=test), chosen.classes, str(place.path))
    elif isinstance(place, FolderTree):
        opened = _from_folder(chosen, wanted, place)
    else:
        opened = _from_file(chosen, wanted, place, test=test)
    opened.train_crop = wanted.train_crop
    if role is None or not chosen.source_list:
        return opened
    folder = find_choices(chosen, place.path if isinstance(place, FolderTree) else place, lists)
    return listed_samples(opened, choice_files(chosen, wanted, folder)[role])


def open_own(domain: OwnDomain, place: Path | FolderTree, *, test: bool = False) -> Domain:
    """A domain of a user's data set under the classes that it has itself.

    Args:
        domain: the domain.
        place: the data set's folder, or its feature file.
        test: open the samples that the domain is judged by, instead of those to learn from.
    """
    name = test_name(domain.key) if test else domain.key
    if not isinstance(place, FolderTree):
        return feature_domain(place, domain=name if test else domain.place, name=name)
    relative = domain.test if test else domain.place
    path, part = split_path(str(place.path / relative))
    tree: FolderTree | None = place
    for step in Path(relative).parts:
        tree = tree.inner(step) if tree else None
    # A list names its images from its own folder or the one above; deeper ones from the root.
    root = place.path if len(Path(relative).parts) > 2 else None
    opened = open_domain(tree or path, domain=part, root=root)
    opened.name = name
    return opened


def test_name(key: str) -> str:
    """The name, in a feature file, of the samples that a domain is judged by.

    >>> test_name("sketch")
    'sketch (test)'
    """
    return f"{key} (test)"


def open_task(
    spec: DataSpec, classes: tuple[str, ...] | None = None, *, places: DataPlaces | None = None
) -> OpenedTask:
    """The task that a run's config names, checked: what cannot be trained on is refused.

    Every folder is listed once, for both domains and the digest together, and every image file of
    the two domains is opened once.

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
    """
    target, left_out = _readable(target, skip_unreadable)
    if test is not None:
        test, more = _readable(test, skip_unreadable)
        left_out = [*left_out, *more]
    if source is None:
        task = _source_free(classes, target, test)
    else:
        source, more = _readable(source, skip_unreadable)
        left_out = [*more, *left_out]
        _refuse_mostly_absent(source)
        task = make_task(source, target, name=name, class_rule=class_rule, test=test)
    for domain in dict.fromkeys((task.source, task.target, task.judged)):
        if isinstance(domain, ArrayDomain):
            check_finite(domain)
    return task, left_out


def open_target(spec: DataSpec, *, places: DataPlaces | None = None) -> Domain:
    """The samples that a task is judged by alone, unchecked."""
    places = places or DataPlaces()
    return _test(spec, places) or _target(spec, places)


def open_path(path: str) -> Domain:
    """The domain at a path, unchecked; `FILE:DOMAIN` picks one of a feature file's domains."""
    return _at(path, DataPlaces())


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


def find_data(place: Place) -> Path | FolderTree:
    """A folder as a tree, so that several questions about it cost one walk; a file as its path.

    Raises:
        InputError: there is nothing at this path.
    """
    if isinstance(place, FolderTree):
        return place
    path = existing(place)
    return FolderTree(path.absolute()) if path.is_dir() else path


def split_path(path: str) -> tuple[Path, str | None]:
    """The file and the domain of `FILE:DOMAIN`; of any other path, itself and None.

    >>> [str(part) for part in split_path("features.npz:amazon")]
    ['features.npz', 'amazon']
    """
    file, colon, domain = path.rpartition(":")
    if colon and file and not Path(path).exists():
        return Path(file), domain
    return Path(path), None


def _folder_digest(tree: FolderTree) -> str:
    digest = hashlib.sha256()
    for prefix, folder in tree.walk(skip_forbidden=True):
        for name in folder.images:
            try:
                size = os.stat(folder.path / name).st_size
            except OSError:  # a link to a file that is gone
                continue
            digest.update(f"{prefix}{name}\0{size}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _inner(folder: Path | FolderTree, name: str) -> Path | FolderTree:
    """The folder of one domain inside a folder of domains."""
    if isinstance(folder, FolderTree):
        return folder.inner(name) or existing(folder.path / name)
    return existing(folder / name)


def _from_folder(chosen: Benchmark, wanted: BenchmarkDomain, base: FolderTree) -> Domain:
    folder = find_folder(chosen, wanted, base)
    if folder is not None:
        return image_folder(folder, classes=chosen.classes, name=wanted.key)
    listed = find_list(wanted, base)
    if listed is not None:
        return image_list(listed, root=base.path, classes=chosen.classes, name=wanted.key)
    raise InputError(
        f"{base.path} has no folder for {chosen.title} {wanted.title}; expected {chosen.layout}"
        f" (equida doctor {chosen.name} --data {base.path})"
    )


def _from_file(
    chosen: Benchmark, wanted: BenchmarkDomain, file: Path, *, test: bool = False
) -> Domain:
    if file.suffix not in SUFFIXES:
        raise InputError(f"{file}: expected a folder or a feature file ({', '.join(SUFFIXES)})")
    names = feature_domains(file)
    exact = test_name(wanted.key) if test else wanted.key
    same = [exact] if exact in names else [name for name in names if wanted.goes_by(name)]
    if not same:
        raise InputError(
            f"{file} has no domain {wanted.key} ({wanted.title}); it holds {', '.join(names)}"
        )
    rows = feature_domain(file, domain=same[0], classes=chosen.classes, name=exact)
    return _under(rows, chosen.classes, str(file))


def _under(domain: Domain, classes: tuple[str, ...], origin: str) -> Domain:
    """The domain under the class list of its data set."""
    if domain.labels is None or domain.classes == classes:
        return domain.relabel(classes, domain.labels)
    if all(name.isdecimal() for name in domain.classes) and len(domain.classes) <= len(classes):
        known = set(classes)
        if not known.intersection(domain.classes):  # a list that numbers its classes
            return domain.relabel(classes, domain.labels)
    order = np.array(match_classes(domain.classes, classes, origin), np.int64)
    return domain.relabel(classes, order[domain.labels])


def _source(spec: DataSpec, places: DataPlaces, target: Domain) -> tuple[Domain, str | None]:
    """The source, and the name of the task, or None for the usual name."""
    chosen = spec.data_set
    if chosen is None:
        source = subsampled(_at(spec.source, places), spec.source_shares, "source")
        return source, _name(spec.source, spec.target) if source.name == target.name else None
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
    test = subsampled(test, spec.target_shares, "target")
    return test.relabel((), None) if spec.ignore_target_labels else test


def _at(path: str, places: DataPlaces) -> Domain:
    file, domain = split_path(path)
    return open_domain(places[file], domain=domain)


def _data(spec: DataSpec, places: DataPlaces) -> Path | FolderTree | None:
    return places[spec.data] if spec.data else None


def _readable(domain: DomainT, skip: bool) -> tuple[DomainT, Unreadable]:
    """The domain without the samples that cannot be read.

    Where those are to be left out, every image is decoded: a look at its first and last bytes does
    not find all damage.
    """
    return keep_readable(domain, skip=skip, deep=skip)


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
            f"source {source.name} has samples of {present} of its {every} classes; number or name"
            " only classes that it has"
        )


def _name(source: str, target: str) -> str | None:
    """A task's name by the last parts of its paths that differ: amazon/images, webcam/images."""
    pairs = zip(reversed(Path(source).parts), reversed(Path(target).parts), strict=False)
    return next((f"{one}2{other}" for one, other in pairs if one != other), None)
