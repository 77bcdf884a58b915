"""Build a method from its name, `a` or `a+b`, and from the hyper-parameters that are changed."""

import dataclasses
import typing
from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from equida.errors import InputError, enumerated, suggestion
from equida.fields import FieldSpec, short_text, specs
from equida.methods.aiming import PRIOR_FIELDS, check_prior
from equida.methods.base import METHODS, Method, Output, TaskRows, check_signature, method_parts
from equida.plugins import short_name


class Composite(Method):
    """The terms of several methods together.

    Where two methods use the same name for a term, the later one's gets its method in front. Where
    one method predicts with a head of its own, the others see its predictions. Each method decides
    which of its terms are ramped.

    >>> list(build_method("cdan+nsm", 16, 4, nn.Linear(16, 4)).methods)
    ['cdan', 'nsm']
    """

    def __init__(self, methods: Mapping[str, Method]) -> None:
        first = next(iter(methods.values()))
        config = {name: method.config for name, method in methods.items()}
        super().__init__(config, first.features, first.classes, first.classifier)
        # torch allows no dots in names, which those of modules from outside may have.
        self._keys = {name: name.replace(".", "_") for name in methods}
        self.methods = nn.ModuleDict({self._keys[name]: each for name, each in methods.items()})
        self.owns_cross_entropy = any(method.owns_cross_entropy for method in methods.values())
        self.uses_target = any(method.uses_target for method in methods.values())
        self.prepares = any(method.prepares for method in methods.values())
        self.source_free = all(method.source_free for method in methods.values())
        own = [name for name, method in methods.items() if type(method).predict != Method.predict]
        if len(own) > 1:
            raise InputError(
                f"{enumerated(own)} each predict with a head of their own; "
                "at most one such method can be part of a composition"
            )
        self._predictor = own[0] if own else None
        for method in methods.values():
            method.alone = False

    def forward(
        self, source: Output, labels: Tensor, target: Output, progress: float
    ) -> dict[str, Tensor]:
        return self.ramped_terms(source, labels, target, progress, 1.0)

    def ramped_terms(
        self, source: Output, labels: Tensor, target: Output, progress: float, ramp: float
    ) -> dict[str, Tensor]:
        network, predicted = (source, target), (source, target)
        if self._predictor is not None:
            predicted = (self._predicted(source), self._predicted(target))
        terms: dict[str, Tensor] = {}
        for name, method in self._each().items():
            source_out, target_out = network if name == self._predictor else predicted
            added = method.ramped_terms(source_out, labels, target_out, progress, ramp)
            for key, value in added.items():
                terms[f"{short_name(name)}.{key}" if key in terms else key] = value
        return terms

    def prepare(self, rows: TaskRows) -> dict[str, Tensor]:
        return {
            f"{name}.{key}": value
            for name, method in self._each().items()
            for key, value in method.prepare(rows).items()
        }

    def use_prepared(self, prepared: Mapping[str, Tensor]) -> None:
        for name, method in self._each().items():
            prefix = f"{name}."
            method.use_prepared(
                {
                    key.removeprefix(prefix): value
                    for key, value in prepared.items()
                    if key.startswith(prefix)
                }
            )

    def _predicted(self, output: Output) -> Output:
        return Output(output.features, self.predict(output), output.samples)

    def predict(self, output: Output) -> Tensor:
        if self._predictor is None:
            return output.logits
        return self._each()[self._predictor].predict(output)

    def part(self, name: str) -> Method:
        """One of the methods, by the name that it has in the composition."""
        return self._each()[name]

    def _each(self) -> dict[str, Method]:
        return {name: typing.cast(Method, self.methods[key]) for name, key in self._keys.items()}


def build_method(
    name: str,
    features: int,
    classes: int,
    classifier: nn.Module,
    overrides: Mapping[str, Any] | None = None,
    benchmark: str | None = None,
) -> Method:
    """The method with that name, or the composition of methods.

    Args:
        name: a registered name, or several with `+` between them.
        features: width of the network's features.
        classes: number of classes.
        classifier: the network's own head, features to logits.
        overrides: hyper-parameters that differ from the defaults, as for `configure`.
        benchmark: the data set whose presets replace the defaults; None: no presets.

    >>> method = build_method("cdan+nsm", 16, 4, nn.Linear(16, 4), {"nsm.trade_off": 1.0})
    >>> method.config["nsm"].trade_off
    1.0
    """
    methods = {}
    for part, config in configure(name, overrides, benchmark).items():
        check_signature(METHODS[part].method)
        methods[part] = METHODS[part].method(config, features, classes, classifier)
    return next(iter(methods.values())) if len(methods) == 1 else Composite(methods)


def split_name(name: str) -> tuple[str, ...]:
    """The registered names that `name` composes.

    >>> split_name("cdan+nsm")
    ('cdan', 'nsm')
    """
    names = method_parts(name)
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
            `prior` and `prior_strength` go to every part that has them, unless `part.prior` is
            given too. A string is read as the field's type.
        benchmark: the data set whose presets replace the defaults; None: no presets.

    >>> configure("safn+cwsm", {"delta": "0.5", "cwsm.trade_off": 2})["cwsm"]
    CWSMConfig(trade_off=2.0, r=0.5, normalize='transfer', prior='uniform', prior_strength=0.75)
    """
    configs = {part: default_config(part, benchmark) for part in split_name(name)}
    for part, values in _by_part(name, overrides or {}).items():
        if values.get("prior") == "estimate" and "prior_strength" in values:
            raise InputError(
                f"{part}.prior_strength is {short_text(values['prior_strength'])}, but the prior is"
                " 'estimate', which is used as it is; leave prior_strength out"
            )
        configs[part] = dataclasses.replace(configs[part], **values)
    for part, config in configs.items():
        check_prior(part, config)
    return configs


def check_overrides(name: str, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """The overrides of a method with each value in the type of its field.

    What is given to every part of a composition, such as `prior`, stands there part by part.

    Raises:
        InputError: there is no such method, it has no such hyper-parameter, or the value is not
            allowed.

    >>> check_overrides("bnm+nsm", {"prior": "estimate", "nsm.prior": "source"})
    {'bnm.prior': 'estimate', 'nsm.prior': 'source'}
    """
    checked = {}
    for key, value in spread_priors(name, overrides).items():
        part, spec = find_field(name, key)
        checked[key] = spec.value(value, f"{part}.{spec.name}")
    return checked


def _by_part(name: str, overrides: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The checked overrides of each part that has any, by the names of its fields."""
    found: dict[str, dict[str, Any]] = {}
    for key, value in check_overrides(name, overrides).items():
        part, spec = find_field(name, key)
        found.setdefault(part, {})[spec.name] = value
    return found


def spread_priors(name: str, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """The overrides by part: what is given to all goes to each that has no value of its own."""
    parts = split_name(name)
    owners = {
        key: [part for part in parts if key in specs(METHODS[part].config)] for key in PRIOR_FIELDS
    }
    # What no part has stays, for the message that refuses it.
    own = [find_field(name, key) for key in overrides if not owners.get(key)]
    taken = {(part, spec.name) for part, spec in own}
    found = {}
    for key, value in overrides.items():
        if not owners.get(key):
            found[key] = value
        for part in owners.get(key, ()):
            if (part, key) not in taken:
                found[key if len(parts) == 1 else f"{part}.{key}"] = value
    return found


def find_field(name: str, key: str) -> tuple[str, FieldSpec]:
    """The part of a method and the field of it that `field` or `part.field` means.

    >>> part, spec = find_field("cdan+nsm", "alpha")
    >>> part, spec.name
    ('nsm', 'alpha')
    """
    parts = split_name(name)
    known = {
        f"{short_name(part)}.{spec.name}": (part, spec)
        for part in parts
        for spec in specs(METHODS[part].config).values()
    }
    meant = [
        full
        for full, (part, spec) in known.items()
        if key in (full, spec.name, f"{part}.{spec.name}")
    ]
    if len(meant) > 1:
        raise InputError(f"{key!r} is ambiguous in {name!r}; write {' or '.join(meant)}")
    if meant:
        return known[meant[0]]
    names = list(known) if len(parts) > 1 else [spec.name for _, spec in known.values()]
    raise InputError(f"{name!r} has no hyper-parameter {key!r}{suggestion(key, names)}")
