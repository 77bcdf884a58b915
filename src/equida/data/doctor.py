"""A check of data before they are used: what `equida doctor` looks at."""

import os
from dataclasses import dataclass
from pathlib import Path

from equida.data.benchmarks import BENCHMARKS, Benchmark, benchmark
from equida.data.dataset_toml import NAME, refuse_to_describe, write_dataset_file
from equida.data.discover import find_benchmark, is_benchmark
from equida.data.feature_file import SUFFIXES, feature_domains
from equida.data.open import find_data
from equida.data.survey import Survey, recognise, survey_benchmark, survey_own, survey_path
from equida.data.walk import FolderTree
from equida.errors import InputError
from equida.fields import checked_value
from equida.progress import Bar, display_mode


@dataclass(frozen=True)
class DataCheck:
    """What was found where data were looked for.

    >>> digits = check_data("digits")
    >>> digits.sound, [domain.images for domain in digits.domains]
    (True, [5000, 1797])
    """

    domains: tuple[Survey, ...]
    """Each domain, with what is missing, what is not expected and which files are unreadable."""
    data_set: Benchmark | None = None
    """The data set of several domains that the data are compared with, or that was found there."""
    looks_like: Benchmark | None = None
    """The published data set that the folders are named like, where none was asked for."""
    written: Path | None = None
    """The dataset.toml that was written, where that was asked for."""

    @property
    def sound(self) -> bool:
        """Whether training would work."""
        return all(domain.sound for domain in self.domains) and not self.too_few_classes

    @property
    def too_few_classes(self) -> bool:
        """Whether several domains of one's own have one class: most often these are the classes."""
        return self.data_set is not None and len(self.data_set.classes) < 2


def check_data(
    dataset: str | Path | None = None,
    data: str | Path | None = None,
    *,
    lists: str | Path | None = None,
    root: str | Path | None = None,
    deep: bool = False,
    skip_unreadable: bool = False,
    write_toml: bool = False,
    progress: bool | None = None,
) -> DataCheck:
    """Look at data as training would use them, and say what stands in the way.

    Args:
        dataset: a known data set, whose published counts the data are compared with; or the path
            of data of your own: a folder of domains, any folder of images, a feature file or an
            image list.
        data: the folder, feature file or image list of a known data set; alone, the path of data
            of your own.
        lists: folder of the image lists of a data set that chooses its samples by lists.
        root: the folder of the images, where the data are an image list.
        deep: decode every image instead of looking at its first and last bytes; features are
            always looked at as a whole.
        skip_unreadable: accept unreadable files and rows, as training that skips them does.
        write_toml: write a first dataset.toml into a folder of several domains of your own, to be
            edited; one that is there is never replaced.
        progress: None shows it in a terminal or notebook; True and False force it.

    >>> check_data("digits").sound
    True
    """
    name = None if dataset is None else str(checked_value(dataset, str | Path, "dataset"))
    path: Path | None = checked_value(data, Path | None, "data")
    if name is not None and is_data_path(name):
        if path is not None:
            raise InputError(f"{name} and {path} are both paths; give the path of the data once")
        path, name = Path(name), None
    chosen = None if name is None else benchmark(name)
    if chosen is not None and write_toml:
        raise InputError(f"dataset.toml is for data of your own; {chosen.name} is known already")
    if path is None and (chosen is None or not chosen.embedded):
        missing = f"the folder of {chosen.title}" if chosen else "a data set or the path of data"
        raise InputError(f"there is nothing to check; give {missing}")
    place = None if path is None else find_data(path)
    own = None
    if chosen is not None:
        surveys = survey_benchmark(chosen, place, checked_value(lists, Path | None, "lists"))
    else:
        assert place is not None
        own = _own(place, write_toml)
        surveys = (
            survey_path(place, checked_value(root, Path | None, "root"))
            if own is None
            else survey_own(own)
        )
    label = "decoding images" if deep else "checking files"
    with Bar(display_mode(progress), label, sum(survey.images for survey in surveys)) as bar:
        for survey in surveys:
            survey.check_files(deep=deep, skip=skip_unreadable, advance=bar.advance)
    written = None
    if write_toml and own is not None and own.own is not None:
        written = Path(own.root) / NAME
        write_dataset_file(own.own, written)
    known = recognise(place) if chosen is None and place is not None else None
    return DataCheck(tuple(surveys), chosen or own, known, written)


def is_data_path(name: str) -> bool:
    """Whether what may be the name of a data set is a path instead."""
    return os.sep in name or (name not in BENCHMARKS and Path(name).exists())


def _own(data: Path | FolderTree, required: bool) -> Benchmark | None:
    """The user's data set of several domains, if that is what the path holds."""
    place = data.path if isinstance(data, FolderTree) else data
    several = isinstance(data, Path) and data.suffix in SUFFIXES and len(feature_domains(data)) > 1
    if not several and is_benchmark(place):
        if required:  # before every file is looked at
            refuse_to_describe(place / NAME)
        return find_benchmark(data)
    if required:
        raise InputError(
            f"{place} is not a folder of several domains; dataset.toml describes such a folder"
        )
    return find_benchmark(data) if several else None
