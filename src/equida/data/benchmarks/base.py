"""What is known of a data set, and the registry of data sets."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from equida.data.domain import Domain
from equida.data.transforms import TrainCrop
from equida.errors import InputError
from equida.fields import PathText, checked_value
from equida.registry import Registry

if TYPE_CHECKING:
    from equida.data.own import OwnBenchmark


@dataclass(frozen=True)
class BenchmarkDomain:
    """One domain of a data set.

    >>> BENCHMARKS["office31"].domains[0].images
    2817
    """

    key: str
    """The name in tasks and tables, such as "A"."""
    title: str
    """The name in sentences, such as "Amazon"."""
    folder: str
    """The folder's name in the published archive."""
    per_class: tuple[int, ...]
    """The published number of images of each class, in the data set's class order."""
    aliases: tuple[str, ...] = ()
    """Other names of the domain and of its folder; case, spaces, '-' and '_' do not matter."""
    per_class_firm: bool = True
    """Whether the images of each class were counted; otherwise only their sum is certain."""
    train_crop: TrainCrop = "random-crop"
    """How training cuts its images. The protocol cuts photographs of one object that fills the
    frame at random scales ("random-resized-crop")."""
    load: Callable[[], Domain] | None = None
    """Loads the samples where they come inside an installed package; None where they are files."""

    @property
    def images(self) -> int:
        """The published number of images."""
        return sum(self.per_class)

    def goes_by(self, name: str) -> bool:
        """Whether `name` is one of the domain's names."""
        names = (self.key, self.title, self.folder, *self.aliases)
        return _spelled(name) in map(_spelled, names)


@dataclass(frozen=True)
class Benchmark:
    """A published data set: several domains over one class list.

    >>> BENCHMARKS["office31"].tasks
    ('A2W', 'D2W', 'W2D', 'A2D', 'D2A', 'W2A')
    """

    name: str
    title: str
    aliases: tuple[str, ...]
    domains: tuple[BenchmarkDomain, ...]
    classes: tuple[str, ...]
    tasks: tuple[str, ...]
    """The tasks, in the order of the paper's columns."""
    page: str
    """The address of the project's page; "" where there is none."""
    obtain: str
    """What to do there to get the data."""
    layout: str
    """The folders that are expected after that."""
    metric: str = "accuracy"
    """"accuracy", or "mean_class_accuracy": the mean of the recalls of all classes."""
    short_classes: tuple[str, ...] = ()
    """Class names as the heads of the paper's table print them, where they differ."""
    backbone: str | None = None
    """The network that papers train on it; None where no network is customary."""
    source_list: str = ""
    """The ending of the image list that chooses the samples of a domain as source, such as "_RS";
    "" where all are used."""
    target_list: str = ""
    """The same for a domain as target."""
    learning_rates: Mapping[str, float] = field(default_factory=dict, hash=False)
    """Learning rates of the paper's recipe by task, where they differ from the recipe's own."""
    own: "OwnBenchmark | None" = None
    """What a run's record keeps of a data set that was found on disk; None for registered ones."""
    root: str = ""
    """The folder or file of a data set that was found on disk."""

    @property
    def registered_name(self) -> str | None:
        """The name under which it is registered; None for a data set that was found on disk."""
        return None if self.own else self.name

    @property
    def judged_by_class(self) -> bool:
        """Whether its table has a column for each class: one task, and their mean is the metric."""
        return self.metric == "mean_class_accuracy" and len(self.tasks) == 1

    @property
    def display_classes(self) -> tuple[str, ...]:
        """Class names for the head of a table."""
        return self.short_classes or self.classes

    @property
    def embedded(self) -> bool:
        """Whether the data come with installed packages, so that no folder is needed."""
        return all(domain.load is not None for domain in self.domains)

    def domain(self, name: str) -> BenchmarkDomain:
        """The domain that goes by `name`: "A", "amazon", "Amazon", ..."""
        found = self._find(name)
        if found is not None:
            return found
        known = ", ".join(f"{domain.key} ({domain.title})" for domain in self.domains)
        raise InputError(f"{self.name} has no domain {name!r}; it has {known}")

    def task(self, name: str) -> tuple[BenchmarkDomain, BenchmarkDomain]:
        """Source and target of a task: "A2W", "amazon2webcam", "A->W", "A → W"."""
        for cut in re.finditer(r"\s*(?:2|->|→|:|_to_)\s*", name):
            source, target = name[: cut.start()], name[cut.end() :]
            pair = self._find(source), self._find(target)
            if pair[0] is not None and pair[1] is not None and pair[0] is not pair[1]:
                return pair[0], pair[1]
        raise InputError(f"{self.name} has no task {name!r}; it has {', '.join(self.tasks)}")

    def _find(self, name: str) -> BenchmarkDomain | None:
        exact = [domain for domain in self.domains if domain.key == name]
        return next(iter(exact + [domain for domain in self.domains if domain.goes_by(name)]), None)


def _adopt(name: str, found: object) -> Benchmark:
    if not isinstance(found, Benchmark):
        raise InputError(
            f"data set {name!r} is a {type(found).__name__}; expected an equida.data.Benchmark"
            " behind an entry point"
        )
    return found


BENCHMARKS: Registry[Benchmark] = Registry(
    "data set",
    "equida.benchmarks",
    _adopt,
    code=False,  # an entry point has the name that other people's records have
    also="a path, but there is no such folder or file",
)


def register_benchmark(entry: Benchmark) -> None:
    """Make a data set known by its name."""
    BENCHMARKS.add(entry.name, entry)


def benchmark(name: str | Path | Benchmark) -> Benchmark:
    """The data set called `name`, in any of its spellings, or the one that is found at that path.

    A registered name comes first; "./office31" is always a path.

    >>> benchmark("Office-Home").name
    'office_home'
    """
    if isinstance(name, Benchmark):
        return name
    text = checked_value(name, PathText | Benchmark, "dataset")
    for known in BENCHMARKS if isinstance(name, str) else ():
        entry = BENCHMARKS.get(known)
        if entry is None:  # a plug-in that cannot be imported
            continue
        if any(same_name(text, other) for other in (entry.name, entry.title, *entry.aliases)):
            return entry
    if not isinstance(name, str) or os.sep in text or os.path.exists(os.path.expanduser(text)):
        # Imported late: it looks at the disk with everything that is built on this module.
        from equida.data.discover import find_benchmark

        return find_benchmark(text)
    return BENCHMARKS[text]


def numbers(text: str) -> tuple[int, ...]:
    """The whole numbers in a text, for long literals."""
    return tuple(map(int, text.split()))


def words(text: str) -> tuple[str, ...]:
    """The words of a text, for long literals."""
    return tuple(text.split())


def all_pairs(*keys: str) -> tuple[str, ...]:
    """Every task between different domains.

    >>> all_pairs("M", "U")
    ('M2U', 'U2M')
    """
    return tuple(f"{source}2{target}" for source in keys for target in keys if source != target)


def same_name(one: str, other: str) -> bool:
    """Whether two names differ at most in case, spaces, "-" and "_".

    >>> same_name("Office-Home", "office_home")
    True
    """
    return _spelled(one) == _spelled(other)


def _spelled(name: str) -> str:
    return re.sub(r"[\s_-]+", "", name).casefold()
