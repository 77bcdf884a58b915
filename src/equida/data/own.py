"""A data set of the user's own: what was found on disk, as a run's record keeps it."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from equida.data.benchmarks.base import Benchmark, BenchmarkDomain
from equida.errors import InputError
from equida.records import construct


@dataclass(frozen=True)
class OwnDomain:
    """One domain of the user's data."""

    key: str
    """The name in tasks and tables."""
    title: str
    """The name in sentences."""
    place: str
    """Its folder, image list or feature file, from the data set's folder on."""
    test: str = ""
    """The image list of the samples that it is judged by as a target; "" for all samples."""
    labelled: bool = True


@dataclass(frozen=True)
class OwnBenchmark:
    """Everything that a run has to know of a data set that is not registered.

    It is plain data without the place of the data set, so that the data and the run can be moved.
    """

    name: str
    title: str
    domains: tuple[OwnDomain, ...]
    classes: tuple[str, ...]
    """The classes of all domains together."""
    tasks: tuple[str, ...]
    metric: str = "accuracy"

    def benchmark(self, root: str = "") -> Benchmark:
        """The data set in the form that registered ones have.

        Args:
            root: where it is, as far as that is known.
        """
        domains = tuple(
            BenchmarkDomain(domain.key, domain.title, domain.place, per_class=())
            for domain in self.domains
        )
        layout = f"DIR/{{{','.join(domain.place for domain in self.domains)}}}"
        return Benchmark(
            self.name, self.title, (), domains, self.classes, self.tasks, "", "", layout,
            metric=self.metric, own=self, root=root,
        )  # fmt: skip

    def domain(self, key: str) -> OwnDomain:
        return next(domain for domain in self.domains if domain.key == key)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "OwnBenchmark":
        """The data set as `dataclasses.asdict` and JSON have stored it."""
        try:
            values = dict(stored)
            values["domains"] = tuple(
                construct(OwnDomain, domain, "the record of a domain")
                for domain in values["domains"]
            )
            values["classes"], values["tasks"] = tuple(values["classes"]), tuple(values["tasks"])
            return construct(cls, values, "the record of the data set")
        except (TypeError, KeyError) as error:
            known = ", ".join(field.name for field in fields(cls))
            raise InputError(
                f"the record of the data set cannot be read ({error}); expected {known}"
            ) from None
