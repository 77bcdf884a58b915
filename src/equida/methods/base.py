"""What a method is: named, weighted loss terms that are added to source cross-entropy."""

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from torch import Tensor, nn

from equida.registry import Registry


class Output(NamedTuple):
    """What a network says of one batch."""

    features: Tensor
    """(batch, features), after the bottleneck."""
    logits: Tensor
    """(batch, classes)."""


@dataclass(frozen=True)
class Range:
    """Where a search may look for a hyper-parameter, and the values that it may have at all."""

    low: float
    high: float
    log: bool = False
    least: float = 0.0
    most: float = math.inf

    def allows(self, value: float) -> bool:
        return math.isfinite(value) and self.least <= value <= self.most


def search(
    default: float | None,
    low: float,
    high: float,
    *,
    log: bool = False,
    least: float = 0.0,
    most: float = math.inf,
) -> Any:
    """A dataclass field with a default, the range to search, and the least and largest value."""
    allowed = Range(low, high, log, least, most)
    return dataclasses.field(default=default, metadata={"range": allowed})


class Method(nn.Module):
    """Adds named, weighted terms to source cross-entropy; never calls `backward`.

    Args:
        config: the method's own frozen dataclass of hyper-parameters.
        features: width of `Output.features`.
        classes: width of `Output.logits`.
        classifier: the network's own head, for methods that apply it with frozen weights or to
            detached features. It stays the network's: it is not registered here again.
    """

    owns_cross_entropy: bool = False
    """True where the terms include the method's own form of source cross-entropy, so that the loop
    adds none."""
    uses_target: bool = True
    """False where nothing of the target may enter: not even the statistics of normalisation see a
    target batch."""
    source_free: bool = False
    """True where the terms, of which there is at least one, need target predictions only."""

    def __init__(self, config: Any, features: int, classes: int, classifier: nn.Module) -> None:
        super().__init__()
        self.config = config
        self.features = features
        self.classes = classes
        # In a tuple, so that nn.Module does not count its parameters as this method's.
        self._classifier = (classifier,)

    @property
    def classifier(self) -> nn.Module:
        return self._classifier[0]

    def forward(
        self, source: Output, labels: Tensor, target: Output, progress: float
    ) -> dict[str, Tensor]:
        """The terms to add for one step; `progress` runs from 0 to 1 over the training."""
        raise NotImplementedError

    def grown(
        self, source: Output, labels: Tensor, target: Output, progress: float, share: float
    ) -> dict[str, Tensor]:
        """The terms at a share of their weight; those with cross-entropy in them at all of it."""
        terms: dict[str, Tensor] = self(source, labels, target, progress)
        if share == 1.0 or self.owns_cross_entropy:
            return terms
        return {name: share * term for name, term in terms.items()}

    def predict(self, output: Output) -> Tensor:
        """The logits that this method predicts with; the network's own unless it has a head."""
        return output.logits


@dataclass(frozen=True)
class Entry:
    """A registered method: its class, its hyper-parameters, and what a list of methods says."""

    method: type[Method]
    config: type
    reference: str
    presets: Mapping[str, Mapping[str, Any]]
    """Per benchmark, the hyper-parameters that differ there from the defaults."""

    @property
    def idea(self) -> str:
        return (self.method.__doc__ or "").strip().splitlines()[0]


METHODS: Registry[Entry] = Registry("method")

M = TypeVar("M", bound=type[Method])


def register(
    name: str,
    config: type,
    *,
    reference: str,
    presets: Mapping[str, Mapping[str, Any]] | None = None,
) -> Callable[[M], M]:
    """Class decorator: makes a method known by `name`."""

    def add(method: M) -> M:
        METHODS.add(name, Entry(method, config, reference, presets or {}))
        return method

    return add
