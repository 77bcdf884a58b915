"""Opening one domain: a folder, an image list, a feature file, or a benchmark's domain."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from equida.data.benchmarks import Benchmark, BenchmarkDomain, benchmark
from equida.data.classes import match_classes
from equida.data.domain import Domain
from equida.data.feature_file import SUFFIXES, feature_domain, feature_domains
from equida.data.folders import image_folder
from equida.data.images import is_image_name
from equida.data.layouts import choice_files, find_choices, find_folder, find_list
from equida.data.lists import image_list, listed_samples
from equida.data.own import OwnDomain
from equida.data.shares import Role
from equida.data.task import Task, make_task
from equida.data.walk import FolderTree, existing
from equida.errors import InputError

LIST_SUFFIXES = (".txt", ".list", ".lst")

Place = str | Path | FolderTree
"""A path, or a folder that was looked into before and need not be listed again."""


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
        here = f"; for the folder of that name here, ./{chosen.name}" if _is_here(chosen) else ""
        raise InputError(
            f"{chosen.name} needs a folder with its images: --data DIR (how to get them:"
            f" equida doctor {chosen.name}){here}"
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


def _is_here(chosen: Benchmark) -> bool:
    return not chosen.own and Path(chosen.name).is_dir()


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


def open_path(path: str) -> Domain:
    """The domain at a path, unchecked; `FILE:DOMAIN` picks one of a feature file's domains."""
    file, domain = split_path(path)
    return open_domain(find_data(file), domain=domain)


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
    if not same or (test and exact not in names):
        raise InputError(
            f"{file} has no domain {exact} ({wanted.title}); it holds {', '.join(names)}"
        )
    # The classes of a user's data set come from its labels: numbers are names there, not indices.
    known = None if chosen.own else chosen.classes
    rows = feature_domain(file, domain=same[0], classes=known, name=exact)
    return _under(rows, chosen.classes, str(file))


def _under(domain: Domain, classes: tuple[str, ...], origin: str) -> Domain:
    """The domain under the class list of its data set."""
    if domain.labels is None or domain.classes == classes:
        return domain.relabel(classes, domain.labels)
    order = np.full(len(domain.classes), -1, np.int64)
    used = np.unique(domain.labels)  # a list has names of its own for numbers without a sample
    names = [domain.classes[number] for number in used]
    numbered = not set(classes) & set(names) and all(name.isdecimal() for name in names)
    if numbered and max(map(int, names), default=0) < len(classes):
        order[used] = list(map(int, names))
    else:
        order[used] = match_classes(names, classes, origin)
    return domain.relabel(classes, order[domain.labels])
