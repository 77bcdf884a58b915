"""What is there, held against what was published: the facts behind `equida doctor`."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from equida.data.benchmarks import BENCHMARKS, Benchmark, BenchmarkDomain
from equida.data.domain import Domain, ImageDomain
from equida.data.feature_file import SUFFIXES, feature_domain, feature_domains
from equida.data.folders import FolderScan, existing, image_folder, normal, scan_folder
from equida.data.layouts import find_folder, find_list, load_domain
from equida.data.lists import image_list
from equida.data.opening import open_domain
from equida.data.readable import Advance, check_readable
from equida.errors import InputError


@dataclass
class Survey:
    """One domain as it was found."""

    title: str
    place: str = ""
    """Where it is; empty when it was not found."""
    domain: Domain | None = None
    """What of it can be used."""
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
    def classes(self) -> int:
        return 0 if self.domain is None else int((self.domain.class_counts() > 0).sum())

    @property
    def sound(self) -> bool:
        return not (self.domain is None or self.missing or self.extra or self.unreadable)

    def check_files(
        self, *, deep: bool, skip: bool = False, advance: Advance | None = None
    ) -> None:
        """Fill `unreadable`, or `left_out` where unreadable files are skipped."""
        if self.domain is not None:
            bad = check_readable(self.domain, deep=deep, advance=advance)
            if skip and len(bad) < len(self.domain):
                self.left_out = bad
            else:
                self.unreadable = bad


def survey_benchmark(chosen: Benchmark, data_dir: str | Path | None) -> list[Survey]:
    """Every domain of a benchmark, counted; no image is opened."""
    base = None if chosen.embedded or data_dir is None else existing(data_dir)
    return [_survey_domain(chosen, domain, base) for domain in chosen.domains]


def survey_path(path: str | Path, root: str | Path | None = None) -> list[Survey]:
    """What any folder, image list or feature file holds, one entry per domain.

    Args:
        path: what to look at.
        root: the folder of the images that a list names.
    """
    base = existing(path)
    if base.is_dir():
        scan = scan_folder(base)
        nested = not scan.loose and scan.by_class and not scan.shallow
        if not nested:
            return [_survey_folder(scan)]
        # Folders of folders: each is a domain, perhaps with an `images` folder in between.
        inner = {name: _descend(base / name) for name, paths in scan.by_class.items() if paths}
        surveys = [_survey_folder(scan_folder(inner[name]), name) for name in sorted(inner)]
        return surveys or [_survey_folder(scan)]
    if base.suffix in SUFFIXES:
        return [
            _opened(name, str(base), feature_domain(base, domain=name))
            for name in feature_domains(base)
        ]
    return [_opened(base.stem, str(base), open_domain(base, root=root))]


def recognise(path: str | Path) -> Benchmark | None:
    """The benchmark whose every domain is in a folder, if there is one."""
    base = Path(path)
    for chosen in map(BENCHMARKS.__getitem__, BENCHMARKS):
        if not chosen.embedded and base.is_dir():
            found = [find_folder(chosen, domain, base) for domain in chosen.domains]
            if all(found):
                return chosen
    return None


def _survey_domain(chosen: Benchmark, domain: BenchmarkDomain, base: Path | None) -> Survey:
    survey = Survey(
        f"{domain.key} {domain.title}" if domain.key != domain.title else domain.title,
        published=domain.images,
        expected_classes=len(chosen.classes),
    )
    folder = find_folder(chosen, domain, base) if base is not None and base.is_dir() else None
    try:
        if folder is None and base is not None and base.is_dir() and not find_list(domain, base):
            survey.missing.append(f"no folder {domain.folder!r} with its classes")
        elif folder is None:
            survey.domain = load_domain(chosen, domain.key, base)
            survey.place = "installed package" if chosen.embedded else str(base)
        else:
            assert base is not None
            survey.place = str(folder)
            _fill_from_folder(survey, folder, chosen.classes)
            _compare_list(survey, find_list(domain, base), base, chosen.classes)
    except InputError as error:
        survey.extra.append(str(error))
    if survey.domain is not None:
        _compare_counts(survey, survey.domain, domain)
    return survey


def _fill_from_folder(survey: Survey, folder: Path, classes: Sequence[str]) -> None:
    scan = scan_folder(folder)
    known = {normal(name).casefold() for name in classes}
    for name in sorted(scan.by_class):
        if normal(name).casefold() not in known:
            count = len(scan.by_class.pop(name))
            survey.extra.append(
                f"folder {name!r} with {_images(count)} is not one of the {len(classes)} classes;"
                " training refuses it"
            )
    _note(survey, scan)
    if scan.loose:
        survey.notes.append(f"{_images(len(scan.loose))} beside the class folders not used")
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
        survey.missing.append(f"{plural} {named} ({_images(images)} published, none found)")
    if not published.per_class_firm:
        if counts.sum() != published.images:
            _difference(survey, "in total", int(counts.sum()), published.images)
        return
    for k in np.flatnonzero(counts):
        if counts[k] != published.per_class[k]:
            _difference(survey, found.classes[k], int(counts[k]), published.per_class[k])


def _difference(survey: Survey, what: str, seen: int, published: int) -> None:
    text = f"{what}: {_images(seen)}, published {published:,}"
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
            f"the class folders are used ({survey.images:,} images), not {file} ({listed:,})"
        )


def _survey_folder(scan: FolderScan, title: str | None = None) -> Survey:
    survey = Survey(title or scan.root.resolve().name, str(scan.root))
    _note(survey, scan)
    try:
        survey.domain = image_folder(scan.root, scan=scan)
    except InputError as error:
        survey.extra.append(str(error))
    return survey


def _descend(folder: Path) -> Path:
    """`folder`, or the only folder in it while that holds nothing but folders."""
    scan = scan_folder(folder)
    while not scan.loose and not scan.shallow and len(scan.by_class) == 1:
        scan = scan_folder(scan.root / next(iter(scan.by_class)))
    return scan.root


def _opened(title: str, place: str, domain: Domain) -> Survey:
    survey = Survey(title, place, domain)
    if isinstance(domain, ImageDomain) and domain.labels is None:
        survey.notes.append("unlabelled")
    return survey


def _images(count: int) -> str:
    return f"{count:,} image{'' if count == 1 else 's'}"


def _note(survey: Survey, scan: FolderScan) -> None:
    empty = sorted(name for name, paths in scan.by_class.items() if not paths)
    if empty:
        survey.notes.append(f"class folders without images: {', '.join(empty)}")
    if scan.ignored:
        survey.notes.append(f"files that are not images are passed over: {scan.ignored_kinds()}")
    if scan.loops:
        survey.notes.append(f"links that lead back above themselves: {', '.join(scan.loops)}")
