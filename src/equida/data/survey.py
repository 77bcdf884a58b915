"""Data as they are found, compared with what was published: the facts behind `equida doctor`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from equida.data.benchmarks import BENCHMARKS, Benchmark, BenchmarkDomain
from equida.data.checks import Advance, check_readable
from equida.data.classes import class_key
from equida.data.domain import ArrayDomain, Domain, ImageDomain
from equida.data.feature_file import SUFFIXES, feature_domain, feature_domains
from equida.data.folders import FolderScan, image_folder, scan_folder
from equida.data.layouts import choice_files, find_choices, find_folder, find_list
from equida.data.lists import image_list, listed_samples
from equida.data.open import load_domain, open_domain, test_name
from equida.data.walk import FolderTree
from equida.errors import InputError, counted


@dataclass
class Survey:
    """One domain as it was found."""

    title: str
    place: str = ""
    """Where the domain is; empty when it was not found."""
    domain: Domain | None = None
    """The part of it that can be used."""
    published: int | None = None
    expected_classes: int | None = None
    missing: list[str] = field(default_factory=list)
    """What was published and is not here."""
    extra: list[str] = field(default_factory=list)
    """What is here and was not published, or cannot be understood."""
    notes: list[str] = field(default_factory=list)
    """What does no harm but may surprise."""
    unreadable: list[tuple[str, str]] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)
    """The unreadable files that do not count, because training is told to skip them."""

    @property
    def images(self) -> int:
        return 0 if self.domain is None else len(self.domain)

    @property
    def holds_rows(self) -> bool:
        """Whether it is rows of features or of a table, rather than images in files or arrays."""
        return isinstance(self.domain, ArrayDomain) and len(self.domain.values.shape) < 4

    @property
    def classes(self) -> int:
        return 0 if self.domain is None else int((self.domain.class_counts() > 0).sum())

    @property
    def sound(self) -> bool:
        return not (self.domain is None or self.missing or self.extra or self.unreadable)

    def check_files(self, *, deep: bool, skip: bool, advance: Advance) -> None:
        """Look at every file, and fill `unreadable`, or `left_out` where `skip` is set."""
        if self.domain is not None:
            turned: list[str] = []
            bad = check_readable(self.domain, deep=deep, advance=advance, turned=turned)
            if turned:
                has, they = ("has", "it is") if len(turned) == 1 else ("have", "they are")
                self.notes.append(
                    f"{counted(len(turned), 'image')} {has} an EXIF rotation, which is not"
                    f" applied: {they} used as stored"
                )
            if skip and len(bad) < len(self.domain):
                self.left_out = bad
            else:
                self.unreadable = bad


def survey_benchmark(
    chosen: Benchmark, data: Path | FolderTree | None, lists: Path | None = None
) -> list[Survey]:
    """Every domain of a benchmark, counted without opening an image.

    Args:
        chosen: the benchmark.
        data: what `find_data` found; None for data that come inside a package.
        lists: folder of the image lists, for a benchmark that chooses its samples by lists.
    """
    place = None if chosen.embedded else data
    surveys = [_survey_domain(chosen, domain, place) for domain in chosen.domains]
    if chosen.source_list and place is not None:
        for survey, domain in zip(surveys, chosen.domains, strict=True):
            _check_choices(survey, chosen, domain, place, lists)
    return surveys


def _check_choices(
    survey: Survey,
    chosen: Benchmark,
    domain: BenchmarkDomain,
    data: Path | FolderTree,
    lists: Path | None,
) -> None:
    """Look whether the lists that choose samples are there and fit the domain."""
    if survey.domain is None:
        return
    folder = data.path if isinstance(data, FolderTree) else data
    try:
        files = choice_files(chosen, domain, find_choices(chosen, folder, lists))
        counts = {role: len(listed_samples(survey.domain, file)) for role, file in files.items()}
    except InputError as error:
        survey.missing.append(str(error))
    else:
        chosen_by = ", ".join(f"{count:,} as {role}" for role, count in counts.items())
        survey.notes.append(f"its lists choose {chosen_by}")


def survey_path(data: Path | FolderTree, root: str | Path | None = None) -> list[Survey]:
    """The domains that any folder, image list or feature file holds.

    Args:
        data: what `find_data` found.
        root: the folder of the images that a list names.
    """
    if isinstance(data, FolderTree):
        return _survey_tree(data)
    if data.suffix in SUFFIXES:
        return [
            _opened(name, str(data), feature_domain(data, domain=name))
            for name in feature_domains(data)
        ]
    return [_opened(data.stem, str(data), open_domain(data, root=root))]


def survey_own(chosen: Benchmark) -> list[Survey]:
    """Every domain of a user's data set that `find_benchmark` has found."""
    assert chosen.own is not None
    surveys = []
    for domain in chosen.own.domains:
        title = domain.key if domain.key == domain.title else f"{domain.key} {domain.title}"
        for relative, test in ((domain.place, False), (domain.test, True)):
            if test and not relative:
                continue
            called = test_name(title) if test else title
            place = Path(chosen.root) / relative
            if place.is_dir():
                surveys.append(_survey_folder(scan_folder(place), called))
            else:
                shown = str(place) if Path(chosen.root).is_dir() else chosen.root
                opened = load_domain(chosen, domain.key, test=test)
                surveys.append(_opened(called, shown, opened))
    return surveys


def recognise(data: Path | FolderTree) -> Benchmark | None:
    """The benchmark whose every domain is in a folder, if there is one."""
    if isinstance(data, FolderTree):
        for chosen in map(BENCHMARKS.__getitem__, BENCHMARKS):
            folders = (find_folder(chosen, domain, data) for domain in chosen.domains)
            if not chosen.embedded and all(folder is not None for folder in folders):
                return chosen
    return None


def _survey_tree(tree: FolderTree) -> list[Survey]:
    scan = scan_folder(tree)
    if scan.loose or scan.shallow or not scan.by_class:
        return [_survey_folder(scan)]
    # Folders of folders: each is a domain, perhaps with an `images` folder in between.
    surveys = [
        _survey_folder(_descend(tree.folders[name]), name)
        for name in sorted(scan.by_class)
        if scan.by_class[name]
    ]
    return surveys or [_survey_folder(scan)]


def _survey_domain(
    chosen: Benchmark, domain: BenchmarkDomain, data: Path | FolderTree | None
) -> Survey:
    survey = Survey(
        f"{domain.key} {domain.title}" if domain.key != domain.title else domain.title,
        published=domain.images,
        expected_classes=len(chosen.classes),
    )
    try:
        if not isinstance(data, FolderTree):
            survey.domain = load_domain(chosen, domain.key, data)
            survey.place = "installed package" if chosen.embedded else str(data)
        else:
            _look_into(survey, chosen, domain, data)
    except InputError as error:
        survey.extra.append(str(error))
    if survey.domain is not None:
        _compare_counts(survey, survey.domain, domain)
    return survey


def _look_into(
    survey: Survey, chosen: Benchmark, domain: BenchmarkDomain, base: FolderTree
) -> None:
    """Fill the survey of a benchmark's domain from the folder of the benchmark."""
    folder, listed = find_folder(chosen, domain, base), find_list(domain, base)
    if folder is not None:
        survey.place = str(folder.path)
        _fill_from_folder(survey, folder, chosen.classes)
        _compare_list(survey, listed, base.path, chosen.classes)
    elif listed is not None:
        survey.domain = load_domain(chosen, domain.key, base)
        survey.place = str(base.path)
    else:
        survey.missing.append(f"no folder {domain.folder!r} with its classes")


def _fill_from_folder(survey: Survey, folder: FolderTree, classes: Sequence[str]) -> None:
    scan = scan_folder(folder)
    known = set(map(class_key, classes))
    for name in sorted(scan.by_class):
        if class_key(name) not in known:
            count = len(scan.by_class.pop(name))
            survey.extra.append(
                f"folder {name!r} with {counted(count, 'image')} is not one of the"
                f" {len(classes)} classes; training refuses it"
            )
    _note(survey, scan)
    if scan.loose:
        are = "is" if len(scan.loose) == 1 else "are"
        survey.notes.append(
            f"{counted(len(scan.loose), 'image')} beside the class folders {are} not used"
        )
    if any(scan.by_class.values()):
        survey.domain = image_folder(folder, classes=classes, name=survey.title, scan=scan)
    else:
        survey.missing.append("every class folder is empty")


def _compare_counts(survey: Survey, found: Domain, published: BenchmarkDomain) -> None:
    counts = found.class_counts()
    gone = np.flatnonzero(counts == 0)
    if len(gone):
        images = sum(published.per_class[k] for k in gone)
        named = ", ".join(found.classes[k] for k in gone)
        plural = "class" if len(gone) == 1 else "classes"
        survey.missing.append(
            f"{plural} {named} ({counted(images, 'image')} published, none found)"
        )
    if not published.per_class_firm:
        if counts.sum() != published.images:
            _difference(survey, "in total", int(counts.sum()), published.images)
        return
    for k in np.flatnonzero(counts):
        if counts[k] != published.per_class[k]:
            _difference(survey, found.classes[k], int(counts[k]), published.per_class[k])


def _difference(survey: Survey, what: str, seen: int, published: int) -> None:
    text = f"{what}: {counted(seen, 'image')}, published {published:,}"
    (survey.missing if seen < published else survey.extra).append(text)


def _compare_list(survey: Survey, file: Path | None, base: Path, classes: Sequence[str]) -> None:
    if file is None:
        return
    try:
        listed = len(image_list(file, root=base, classes=classes))
    except InputError as error:
        survey.notes.append(f"the class folders are used, not the list: {error}")
        return
    if listed != survey.images:
        survey.notes.append(
            f"the class folders are used ({counted(survey.images, 'image')}), not {file}"
            f" ({listed:,})"
        )


def _survey_folder(scan: FolderScan, title: str | None = None) -> Survey:
    survey = Survey(title or scan.root.resolve().name, str(scan.root))
    _note(survey, scan)
    try:
        survey.domain = image_folder(scan.root, scan=scan)
    except InputError as error:
        survey.extra.append(str(error))
    return survey


def _descend(folder: FolderTree) -> FolderScan:
    """The scan of `folder`, or of the only folder in it while that holds nothing but folders."""
    scan = scan_folder(folder)
    while not scan.loose and not scan.shallow and len(scan.by_class) == 1:
        folder = folder.folders[next(iter(scan.by_class))]
        scan = scan_folder(folder)
    return scan


def _opened(title: str, place: str, domain: Domain) -> Survey:
    survey = Survey(title, place, domain)
    if isinstance(domain, ImageDomain) and domain.labels is None:
        survey.notes.append("unlabelled")
    return survey


def _note(survey: Survey, scan: FolderScan) -> None:
    empty = sorted(name for name, paths in scan.by_class.items() if not paths)
    if empty:
        survey.notes.append(f"class folders without images: {', '.join(empty)}")
    if scan.ignored:
        survey.notes.append(f"files that are not images are passed over: {scan.ignored_kinds()}")
    if scan.loops:
        survey.notes.append(
            "links to a folder above them, and those behind three other links, are not"
            f" followed: {', '.join(scan.loops[:5])}{' ...' if len(scan.loops) > 5 else ''}"
        )
