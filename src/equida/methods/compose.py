"""A method from its name, `a` or `a+b`, and from the hyper-parameters that shall differ."""

import dataclasses
import difflib
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal

from torch import Tensor, nn

from equida.errors import InputError
from equida.methods.base import METHODS, Method, Output, Range


class Composite(Method):
    """The terms of several methods together; a name that two of them use gets theirs in front.

    Where one of them predicts with a head of its own, the others see what it predicts.
    """

    def __init__(self, methods: Mapping[str, Method]) -> None:
        first = next(iter(methods.values()))
        config = {name: method.config for name, method in methods.items()}
        super().__init__(config, first.features, first.classes, first.classifier)
        self.methods = nn.ModuleDict(methods)
        self.owns_cross_entropy = any(method.owns_cross_entropy for method in methods.values())
        self.uses_target = any(method.uses_target for method in methods.values())
        self.source_free = all(method.source_free for method in methods.values())
        own = [name for name, method in methods.items() if type(method).predict != Method.predict]
        if len(own) > 1:
            raise InputError(
                f"{' and '.join(own)} each predict with a head of their own; "
                "at most one such method can be part of a composition"
            )
        self._predictor = own[0] if own else None

    def forward(
        self, source: Output, labels: Tensor, target: Output, progress: float
    ) -> dict[str, Tensor]:
        return self.grown(source, labels, target, progress, 1.0)

    def grown(
        self, source: Output, labels: Tensor, target: Output, progress: float, share: float
    ) -> dict[str, Tensor]:
        own, seen = (source, target), (source, target)
        if self._predictor is not None:
            seen = (self._predicted(source), self._predicted(target))
        terms: dict[str, Tensor] = {}
        for name, method in self._each().items():
            of_source, of_target = own if name == self._predictor else seen
            for key, value in method.grown(of_source, labels, of_target, progress, share).items():
                terms[f"{name}.{key}" if key in terms else key] = value
        return terms

    def _predicted(self, output: Output) -> Output:
        return Output(output.features, self.predict(output))

    def predict(self, output: Output) -> Tensor:
        if self._predictor is None:
            return output.logits
        return self._each()[self._predictor].predict(output)

    def _each(self) -> dict[str, Method]:
        return typing.cast(dict[str, Method], dict(self.methods.items()))


def build(
    name: str,
    features: int,
    classes: int,
    classifier: nn.Module,
    overrides: Mapping[str, Any] | None = None,
    benchmark: str | None = None,
) -> Method:
    """The method, or the composition of methods, of that name.

    Args:
        name: a registered name, or several with `+` between them.
        features: width of the network's features.
        classes: number of classes.
        classifier: the network's own head, features to logits.
        overrides: hyper-parameters that differ from the defaults, as for `configure`.
        benchmark: whose presets take the place of the defaults.

    >>> method = build("cdan+nsm", 16, 4, nn.Linear(16, 4), {"nsm.trade_off": 1.0})
    >>> method.config["nsm"].trade_off
    1.0
    """
    methods = {
        part: METHODS[part].method(config, features, classes, classifier)
        for part, config in configure(name, overrides, benchmark).items()
    }
    return next(iter(methods.values())) if len(methods) == 1 else Composite(methods)


def parts(name: str) -> tuple[str, ...]:
    """The registered names that `name` composes.

    >>> parts("cdan+nsm")
    ('cdan', 'nsm')
    """
    names = tuple(part.strip() for part in name.split("+"))
    for part in names:
        METHODS[part]
    if len(set(names)) < len(names):
        raise InputError(f"method {name!r} names a part twice; name each part once")
    return names


def default_config(name: str, benchmark: str | None = None) -> Any:
    """The hyper-parameters of one registered method, with the benchmark's presets if it has any.

    >>> default_config("nsm", "office_home").alpha
    2.0
    """
    entry = METHODS[name]
    return entry.config(**entry.presets.get(benchmark or "", {}))


def configure(
    name: str, overrides: Mapping[str, Any] | None = None, benchmark: str | None = None
) -> dict[str, Any]:
    """The hyper-parameters of each part of a method, as frozen dataclasses by the part's name.

    Args:
        name: a registered name, or several with `+` between them.
        overrides: values by field name, or by `part.field` where several parts have that field.
            Strings are read as the field's type.
        benchmark: whose presets take the place of the defaults.

    >>> configure("safn+cwsm", {"delta": "0.5", "cwsm.trade_off": 2})["cwsm"]
    CWSMConfig(trade_off=2.0, r=0.5)
    """
    configs = {part: default_config(part, benchmark) for part in parts(name)}
    for key, value in (overrides or {}).items():
        part, field = _find(name, configs, key)
        checked = _checked(f"{part}.{field.name}", field, _type(configs[part], field.name), value)
        configs[part] = dataclasses.replace(configs[part], **{field.name: checked})
    return configs


def _find(name: str, configs: dict[str, Any], key: str) -> tuple[str, dataclasses.Field[Any]]:
    """The part and the field that `field` or `part.field` means."""
    known = {f"{p}.{f.name}": (p, f) for p, c in configs.items() for f in dataclasses.fields(c)}
    meant = [full for full in known if key in (full, full.split(".")[1])]
    if len(meant) > 1:
        raise InputError(f"{key!r} is ambiguous in {name!r}; write {' or '.join(meant)}")
    if meant:
        return known[meant[0]]
    names = list(known) if len(configs) > 1 else [full.split(".")[1] for full in known]
    close = difflib.get_close_matches(key, names, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    raise InputError(
        f"{name!r} has no hyper-parameter {key!r}{hint} Known: {', '.join(names) or 'none'}"
    )


def _type(config: Any, field: str) -> Any:
    return typing.get_type_hints(type(config))[field]


def _checked(name: str, field: dataclasses.Field[Any], expected: Any, value: Any) -> Any:
    """The value in the field's type, or an InputError that says what it may be."""
    options = typing.get_args(expected)
    if typing.get_origin(expected) is Literal:
        if value in options:
            return value
        raise InputError(f"{name} is {value!r}; it must be one of {', '.join(options)}")
    if isinstance(expected, types.UnionType):
        if value is None or str(value).lower() == "none":
            return None
        expected = next(option for option in options if option is not types.NoneType)
    if expected is bool:
        choice = {"true": True, "false": False}.get(str(value).lower())
        if choice is None:
            raise InputError(f"{name} is {value!r}; it must be true or false")
        return choice
    try:
        if isinstance(value, bool):
            raise ValueError
        number = expected(value)
        if number != float(value):
            raise ValueError
    except (TypeError, ValueError):
        kind = "an integer" if expected is int else "a number"
        raise InputError(f"{name} is {value!r}; it must be {kind}") from None
    allowed: Range = field.metadata["range"]
    if not allowed.allows(number):
        upper = "finite and" if allowed.most == float("inf") else f"at most {allowed.most:g} and"
        raise InputError(f"{name} is {value!r}; it must be {upper} at least {allowed.least:g}")
    return number
