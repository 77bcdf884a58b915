"""Finding a data set of the user's own on disk: its domains, classes and tasks.

A data set is a folder of domain folders of class folders, perhaps with a folder such as `images` in
between; or image lists, one for each domain; or feature files, one for each domain or one for all.
A `dataset.toml` says more, and says it first.
"""

import dataclasses
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from equida.data.benchmarks import Benchmark
from equida.data.benchmarks.base import same_name
from equida.data.classes import class_key
from equida.data.dataset_toml import METRICS, NAME, DatasetFile, read_dataset_file
from equida.data.domain import Domain
from equida.data.feature_file import SUFFIXES, feature_domains
from equida.data.images import is_image_name
from equida.data.layouts import LIST_FOLDERS
from equida.data.open import LIST_SUFFIXES, find_data, open_own
from equida.data.own import OwnBenchmark, OwnDomain
from equida.data.task import present_classes
from equida.data.walk import FolderTree, existing
from equida.errors import InputError, counted
from equida.files import why_not_a_file


def find_benchmark(path: str | Path | FolderTree) -> Benchmark:
    """The data set in a folder, in a feature file, or described by a TOML file.

    Raises:
        InputError: there are fewer than two labelled domains, or they are not understood.
    """
    place = find_data(path)
    told = _description(place)
    if told is not None and not isinstance(place, FolderTree):
        place = find_data(told.folder)
    root = place.path if isinstance(place, FolderTree) else place.absolute()
    named = _named_domains(told, place) if told and told.domains else _found_domains(place)
    opened = {domain.key: open_own(domain, place) for domain in named}
    tests = [open_own(domain, place, test=True) for domain in named if domain.test]
    every = [*opened.values(), *tests]
    classes = told.classes if told and told.classes else _all_classes(every)
    labelled = [key for key, domain in opened.items() if domain.labels is not None]
    _check(root, opened, labelled)
    called = root.resolve().name if isinstance(place, FolderTree) else root.resolve().stem
    own = OwnBenchmark(
        (told and told.name) or called,
        (told and told.title) or called,
        tuple(
            OwnDomain(d.key, d.title, d.place, d.test, labelled=d.key in labelled) for d in named
        ),
        classes,
        (),
        (told and told.metric) or METRICS[0],
    )
    return dataclasses.replace(own, tasks=_tasks(told, own)).benchmark(str(root))


def is_benchmark(path: str | Path) -> bool:
    """Whether a path leads to a data set of several domains, rather than to a single domain."""
    place = existing(path)
    if not place.is_dir():
        return place.suffix == ".toml"
    tree = FolderTree(place)
    if NAME in tree.others:
        return True
    try:
        return len(_found_domains(tree)) > 1
    except InputError:
        return False


def lists_below(tree: FolderTree) -> dict[str, str]:
    """The image lists in a folder and in its folders for lists: the path by the domain's name."""
    found: dict[str, str] = {}
    inner = [(f"{name}/", tree.inner(name)) for name in LIST_FOLDERS]
    for prefix, folder in [("", tree), *inner]:
        for name in folder.others if folder is not None and folder.listable else ():
            stem, suffix = os.path.splitext(name)
            if suffix in LIST_SUFFIXES and folder is not None and _is_list(folder.path / name):
                found.setdefault(stem.removesuffix("_list"), f"{prefix}{name}")
    return found


def domain_folders(tree: FolderTree) -> dict[str, tuple[str, bool]]:
    """The folders that look like domains: by name the path, and whether they have class folders.

    Raises:
        InputError: a folder has images, but too deep for folders of classes.
    """
    found: dict[str, tuple[str, bool]] = {}
    for name, folder in tree.folders.items():
        place, inner = name, folder
        while True:
            filled = [each for each, below in inner.folders.items() if _has_images(below)]
            direct = [each for each in filled if inner.folders[each].images]
            if inner.images or direct or len(filled) != 1:
                break
            place, inner = f"{place}/{filled[0]}", inner.folders[filled[0]]
        if direct:
            found[name] = (place, True)
        elif filled:
            raise InputError(
                f"{tree.path / place} holds folders of folders; expected the class folders of a"
                f" domain. Give {tree.path / name} if it is the data set, move it away, or name the"
                f" domains in {tree.path / NAME}"
            )
        elif inner.images:
            found[name] = (place, False)
    return found


def _description(place: Path | FolderTree) -> DatasetFile | None:
    """What the owner says of the data set, in its folder or in the given file."""
    if isinstance(place, FolderTree):
        return read_dataset_file(place.path / NAME) if NAME in place.others else None
    return read_dataset_file(place) if place.suffix == ".toml" else None


def _named_domains(told: DatasetFile, place: Path | FolderTree) -> list[OwnDomain]:
    """The domains that a dataset.toml names, in its order."""
    if not isinstance(place, FolderTree):
        return [OwnDomain(d.key, d.title or d.key, d.path or d.key, d.test) for d in told.domains]
    found: Mapping[str, tuple[str, bool]] = {}
    if not all(entry.path or entry.train for entry in told.domains):
        found = domain_folders(place)
    made = []
    for entry in told.domains:
        path = entry.train or entry.path or found.get(entry.key, (entry.key, True))[0]
        made.append(OwnDomain(entry.key, entry.title or entry.key, path, entry.test))
    return made


def _found_domains(place: Path | FolderTree) -> list[OwnDomain]:
    """The domains that the disk shows."""
    if not isinstance(place, FolderTree):
        if place.suffix not in SUFFIXES:
            raise InputError(
                f"{place} is not a data set; expected a folder of domains, a feature file"
                f" ({', '.join(SUFFIXES)}) or a {NAME}"
            )
        return [OwnDomain(name, name, name) for name in feature_domains(place)]
    folders, refusal = {}, None
    try:
        folders = domain_folders(place)
    except InputError as error:
        refusal = error
    if sum(labelled for _, labelled in folders.values()) > 1:
        return [OwnDomain(name, name, path) for name, (path, _) in folders.items()]
    listed = lists_below(place)
    if len(listed) > 1:
        return [OwnDomain(name, name, path) for name, path in listed.items()]
    stored = _stored_domains(place)
    if stored:
        return stored
    if refusal:
        raise refusal
    raise InputError(_no_domains(place, folders))


def _stored_domains(tree: FolderTree) -> list[OwnDomain]:
    """The domains of the feature files in a folder."""
    files = [name for name in tree.others if os.path.splitext(name)[1] in SUFFIXES]
    made: dict[str, OwnDomain] = {}
    for file in files:
        names = feature_domains(tree.path / file)
        for name in names:
            key = os.path.splitext(file)[0] if len(names) == 1 and len(files) > 1 else name
            if key in made:
                first = made[key].place.partition(":")[0]
                raise InputError(
                    f"{tree.path}: both {first} and {file} hold a domain {key!r}; give one of the"
                    " files as the data set"
                )
            made[key] = OwnDomain(key, key, f"{file}:{name}")
    return list(made.values())


def _no_domains(tree: FolderTree, folders: Mapping[str, tuple[str, bool]]) -> str:
    if tree.folders and all(folder.images for folder in tree.folders.values()):
        seen = f"one domain with {len(tree.folders)} class folders"
        return (
            f"{tree.path} looks like {seen}; expected a folder of at least two domains, each with"
            " class folders. Two such folders: equida compare SOURCE TARGET"
        )
    seen = ", ".join(folders) or "no folder with class folders, no image list, no feature file"
    return (
        f"{tree.path} holds fewer than two labelled domains (found: {seen}); expected"
        " DIR/DOMAIN/CLASS/image.jpg, an image list or a feature file for each domain, or a"
        f" {NAME}"
    )


def _check(root: Path, opened: Mapping[str, Domain], labelled: Sequence[str]) -> None:
    if len(opened) < 2 or not labelled:
        raise InputError(
            f"{root} holds {counted(len(opened), 'domain')}, {len(labelled)} of them labelled"
            f" ({', '.join(opened) or 'none'}); expected at least two, one of them labelled"
        )
    keys = list(opened)
    for number, key in enumerate(keys):
        for other in keys[:number]:
            if same_name(key, other):
                raise InputError(
                    f"{root}: domains {other!r} and {key!r} have nearly the same name; rename one"
                )


def _all_classes(domains: Iterable[Domain]) -> tuple[str, ...]:
    """The classes of all domains: in their common order, or else sorted."""
    labelled = [domain for domain in domains if domain.labels is not None]
    if len({domain.classes for domain in labelled}) == 1:
        return labelled[0].classes
    # A list has no other names than numbers for the classes that it has no sample of.
    names = {class_key(name): name for domain in labelled for name in present_classes(domain)}
    for domain in labelled:
        for name in domain.classes:
            if not name.isdecimal():
                names.setdefault(class_key(name), name)
    if all(name.isdecimal() for name in names):
        return tuple(sorted(names.values(), key=int))
    return tuple(sorted(names.values()))


def _tasks(told: DatasetFile | None, own: OwnBenchmark) -> tuple[str, ...]:
    """The tasks that are named, or every ordered pair with a labelled source."""
    if told is None or not told.tasks:
        names = [
            f"{source.key}2{target.key}"
            for source in own.domains
            for target in own.domains
            if source.labelled and source is not target
        ]
        for name, count in Counter(names).items():
            if count > 1:
                raise InputError(
                    f"{count} tasks of {own.name} would be called {name!r}; rename the domains,"
                    " such as 1 to d1"
                )
        return tuple(names)
    pairs = [own.benchmark().task(task) for task in told.tasks]
    for source, _ in pairs:
        if not own.domain(source.key).labelled:
            raise InputError(
                f"{told.file}: domain {source.key!r} is unlabelled; it can be the target of a task,"
                " not its source"
            )
    return tuple(f"{source.key}2{target.key}" for source, target in pairs)


def _has_images(folder: FolderTree) -> bool:
    return any(inner.images for _, inner in folder.walk())


def _is_list(file: Path) -> bool:
    """Whether the first line of a text names an image, perhaps with a label behind it."""
    if why_not_a_file(file):
        return False
    try:
        with file.open(encoding="utf-8-sig", errors="surrogateescape") as text:
            first = next((line.strip() for line in text if line.strip()), "")
    except OSError:
        return False
    return is_image_name(first) or is_image_name(first.rsplit(None, 1)[0] if first else "")
