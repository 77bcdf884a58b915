"""What a method is: named, weighted loss terms that are added to source cross-entropy."""

import dataclasses
import inspect
import math
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from torch import Tensor, nn

from equida import plugins
from equida.errors import InputError
from equida.fields import Bounds, specs, with_bounds
from equida.registry import Registry


class Output(NamedTuple):
    """What a network computes for one batch.

    >>> import torch
    >>> Output(features=torch.zeros(36, 256), logits=torch.zeros(36, 31)).logits.shape
    torch.Size([36, 31])
    """

    features: Tensor
    """(batch, features), after the bottleneck."""
    logits: Tensor
    """(batch, classes)."""
    samples: Tensor | None = None
    """(batch,), the positions of the samples in their domain, on the target of a method that
    prepares something of each sample."""


@dataclass(frozen=True)
class TaskRows:
    """All rows of a task, for what a method computes of them once, before the first step.

    >>> import torch
    >>> rows = TaskRows(torch.zeros(4, 2), torch.tensor([0, 1, 0, 1]), torch.ones(3, 2), seed=0)
    >>> len(rows.target)
    3
    """

    source: Tensor
    """(samples, width), those that are trained on."""
    labels: Tensor
    """The labels of the source. Those of the target are not here: no method may see them."""
    target: Tensor
    """(samples, width), in the order that `Output.samples` counts in."""
    seed: int
    expected_shares: Callable[[], Tensor] | None = None
    """Returns the class shares that the run expects of the target, which it knows from these rows
    and labels alone; None: whoever needs them has to estimate them."""


@dataclass(frozen=True, kw_only=True)
class Range(Bounds):
    """The values that a hyper-parameter may have, and the part of them that a search tries.

    >>> Range(low=0.1, high=10.0, log=True, minimum=0.0).allow(-1.0)
    False
    """

    low: float
    high: float
    log: bool = False
    """Whether a search draws from the logarithm of the value."""


def search(
    default: float | None,
    low: float,
    high: float,
    *,
    log: bool = False,
    minimum: float = 0.0,
    maximum: float = math.inf,
) -> Any:
    """A dataclass field with a default, the range to search, and the smallest and largest value.

    >>> @dataclass(frozen=True)
    ... class MineConfig:
    ...     trade_off: float = search(1.0, 0.1, 2.5)
    >>> MineConfig().trade_off
    1.0
    """
    allowed = Range(low=low, high=high, log=log, minimum=minimum, maximum=maximum)
    return with_bounds(default, allowed)


class Method(nn.Module):
    """Adds named, weighted terms to source cross-entropy; never calls `backward`.

    At the beginning of the training, the loop multiplies the terms by a ramp from 0 to 1, as
    predictions for the target mean little before the network has learned the source. A term that
    learns from source labels must not be held back: name it in `supervised_terms`.

    Args:
        config: the method's own frozen dataclass of hyper-parameters.
        features: width of `Output.features`.
        classes: width of `Output.logits`.
        classifier: the network's own head, for methods that apply it with frozen weights or to
            detached features. It stays a part of the network and is not registered here again.

    >>> import torch
    >>> class Confident(Method):
    ...     def forward(self, source, labels, target, progress):
    ...         return {"confident": -target.logits.softmax(1).amax(1).mean()}
    >>> method = Confident(None, features=8, classes=4, classifier=nn.Linear(8, 4))
    >>> output = Output(torch.zeros(2, 8), torch.zeros(2, 4))
    >>> method(output, torch.tensor([0, 1]), output, progress=0.5)
    {'confident': tensor(-0.2500)}
    """

    owns_cross_entropy: bool = False
    """True where the terms include the method's own form of source cross-entropy: the loop then
    adds none, and ramps none of the terms."""
    supervised_terms: frozenset[str] = frozenset()
    """The terms that learn from source labels, such as the cross-entropy of a second head. They
    have their full weight from the first step."""
    uses_target: bool = True
    """False where the method must not see the target at all: not even the statistics of
    normalisation are computed from a target batch."""
    source_free: bool = False
    """True where the method has terms and all of them need only target predictions."""
    prepares: bool = False
    """True where `prepare` computes something of all rows before the first step."""
    alone: bool = True
    """False in a composition with other methods."""

    def __init__(self, config: Any, features: int, classes: int, classifier: nn.Module) -> None:
        super().__init__()
        self.config = config
        self.features = features
        self.classes = classes
        # In a tuple, so that nn.Module does not count its parameters as this method's.
        self._classifier = (classifier,)
        self.prepared: Mapping[str, Tensor] = {}

    @property
    def classifier(self) -> nn.Module:
        return self._classifier[0]

    def prepare(self, rows: TaskRows) -> dict[str, Tensor]:
        """What the method computes once of the whole task, by name.

        A run does this on one process before its first step, writes it down, and gives it to the
        method on every process by `use_prepared`; a resumed run reads it again.
        """
        return {}

    def use_prepared(self, prepared: Mapping[str, Tensor]) -> None:
        """Take what `prepare` has computed, on the device of the training."""
        self.prepared = prepared

    def forward(
        self, source: Output, labels: Tensor, target: Output, progress: float
    ) -> dict[str, Tensor]:
        """The terms to add for one step; `progress` runs from 0 to 1 over the training."""
        raise InputError(f"{type(self).__name__} has no forward; it returns the loss terms")

    def ramped_terms(
        self, source: Output, labels: Tensor, target: Output, progress: float, ramp: float
    ) -> dict[str, Tensor]:
        """The terms, with those that adapt to the target multiplied by `ramp`, in [0, 1]."""
        terms: dict[str, Tensor] = self(source, labels, target, progress)
        if not isinstance(terms, dict):
            raise InputError(
                f"{type(self).__name__}.forward returned a {type(terms).__name__}; expected a"
                " dictionary of named loss terms"
            )
        for name, term in terms.items():
            if not isinstance(term, Tensor) or term.numel() != 1:
                shape = f"shape {tuple(term.shape)}" if isinstance(term, Tensor) else repr(term)
                raise InputError(
                    f"{type(self).__name__}.forward returned {shape} for the term {name!r};"
                    " expected a tensor of one number"
                )
        if ramp == 1.0 or self.owns_cross_entropy:
            return terms
        return {
            name: term if name in self.supervised_terms else ramp * term
            for name, term in terms.items()
        }

    def predict(self, output: Output) -> Tensor:
        """The logits that the method predicts with: the network's, unless it has its own head."""
        return output.logits


@dataclass(frozen=True)
class RegisteredMethod:
    """A registered method: its class, its hyper-parameters, its reference and its presets.

    >>> METHODS["bnm"].config().trade_off
    1.0
    """

    method: type[Method]
    config: type
    """The frozen dataclass of its hyper-parameters."""
    reference: str
    presets: Mapping[str, Mapping[str, Any]]
    """For each benchmark, the hyper-parameters whose values differ there from the defaults."""

    @property
    def idea(self) -> str:
        """The first line of the class's docstring."""
        return (self.method.__doc__ or self.method.__name__).strip().partition("\n")[0]


@dataclass(frozen=True)
class NoHyperparameters:
    """The configuration of a method that declares none."""


def check_signature(method: type[Method]) -> None:
    """Raise InputError where a class cannot be made as methods are."""
    try:
        inspect.signature(method).bind("config", "features", "classes", "classifier")
    except TypeError as error:
        raise InputError(
            f"{method.__name__}.__init__ takes {inspect.signature(method)} besides self ({error});"
            " expected (config, features, classes, classifier), to be passed to super().__init__"
        ) from None


def adopt(name: str, found: Any) -> RegisteredMethod:
    """The entry of a method from outside: as it was registered, or as its class says.

    A class that was not registered names its dataclass of hyper-parameters by the annotation
    `config: MineConfig`; without one it has no hyper-parameters.
    """
    if not (isinstance(found, type) and issubclass(found, Method) and found is not Method):
        kind = "class" if isinstance(found, type) else type(found).__name__
        raise InputError(
            f"method {name!r} is a {kind}; expected a subclass of equida.methods.Method"
        )
    check_signature(found)
    for entry in METHODS.registered().values():
        if entry.method is found:
            return entry
    try:
        config = typing.get_type_hints(found).get("config", NoHyperparameters)
    except NameError as error:
        raise InputError(f"method {name!r}: its annotation `config` fails ({error})") from None
    if not (isinstance(config, type) and dataclasses.is_dataclass(config)):
        raise InputError(
            f"method {name!r}: `config` is annotated with {config}; expected a frozen dataclass"
        )
    try:
        specs(config)
        config()
    except TypeError as error:  # a field without a default, or of a type that no flag can have
        raise InputError(f"method {name!r}: {error}") from None
    return RegisteredMethod(found, config, "", {})


METHODS: Registry[RegisteredMethod] = Registry(
    "method",
    "equida.methods",
    adopt,
    also="several joined by +; package.module:Class",
)

M = TypeVar("M", bound=type[Method])


def register(
    name: str,
    config: type,
    *,
    reference: str,
    presets: Mapping[str, Mapping[str, Any]] | None = None,
) -> Callable[[M], M]:
    """A class decorator that registers a method under `name`.

    Two methods never share a name:

    >>> register("nsm", NoHyperparameters, reference="Somebody 2026")(Method)
    Traceback (most recent call last):
    ValueError: method 'nsm' is registered twice
    """

    def add(method: M) -> M:
        there = METHODS.registered().get(name)
        # The cell of a notebook that defines it may be run again.
        again = there is not None and _place(there.method) == _place(method)
        entry = RegisteredMethod(method, config, reference, presets or {})
        METHODS.add(name, entry, replace=again)
        return method

    return add


def _place(method: type[Method]) -> str:
    """Where a class can be imported from."""
    return f"{method.__module__}:{method.__qualname__}"


def method_parts(name: str) -> tuple[str, ...]:
    """The names of the methods that a name composes, whether they are known here or not.

    >>> method_parts("cdan + theirs")
    ('cdan', 'theirs')
    """
    return tuple(part.strip() for part in name.split("+"))


def method_name(given: str | type[Method]) -> str:
    """The name by which every process finds a method that a flag or an argument names.

    A method from outside is called by its place, `package.module:Class`, and may be imported from
    then on.

    Args:
        given: a registered name, a place, several of them with "+" between them; or the class.

    >>> method_name("cdan + nsm")
    'cdan+nsm'
    """
    if isinstance(given, str):
        return "+".join(map(_part_name, method_parts(given)))
    if not isinstance(given, type) or not issubclass(given, Method):
        raise InputError(
            f"method is {given!r}; expected a name, or a subclass of equida.methods.Method"
        )
    known = {entry.method: name for name, entry in METHODS.registered().items()}
    if given in known and given.__module__.startswith("equida."):
        return known[given]
    place = _place(given)
    plugins.permit(place)
    if plugins.imported(place) is not given:  # it is defined inside a function
        METHODS.give(place, given)
    return place


def _part_name(name: str) -> str:
    plugins.permit(name)
    entry = METHODS.registered().get(name)
    if entry is None or name in METHODS.offers or entry.method.__module__.startswith("equida."):
        return name
    # Registered by a module that this process has imported: others know it by its place.
    return method_name(entry.method)


def method_code(name: str) -> list[plugins.Plugin]:
    """The code from outside that a method, or a composition, consists of."""
    found = []
    for part in method_parts(name):
        method = METHODS[part].method
        if method.__module__ == "__main__":
            digest = plugins.class_source_sha256(method)
            found.append(plugins.Plugin("method", part, digest, "__main__"))
        elif not method.__module__.startswith("equida."):
            found.append(plugins.plugin("method", part, method.__module__))
    return found
