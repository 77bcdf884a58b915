"""What sets runs on the same data apart: method, hyper-parameters, recipe, network."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from equida.class_shares import is_shares
from equida.methods import METHODS, configure, method_parts
from equida.methods.aiming import prior_title
from equida.plugins import short_name


@dataclass(frozen=True)
class Variant:
    """A row of a table: a method with what differs from its defaults."""

    method: str
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """Hyper-parameters of the method that differ from the benchmark's defaults."""
    recipe: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the recipe that were changed."""
    network: Mapping[str, Any] = field(default_factory=dict)
    """What else a result depends on: backbone, recipe, the run that it started from."""
    shown: Mapping[str, Any] = field(default_factory=dict)
    """What a table says of it: every value that was varied."""

    @property
    def title(self) -> str:
        """As a row of a table is called.

        >>> Variant("cdan+nsm", shown={"r": 1.0}).title
        'CDAN+NSM (r=1)'
        """
        return method_title(self.method) + parameter_title(self.shown)

    def key(self) -> tuple[Any, ...]:
        """What two equal variants have in common, however they were asked for."""
        parts = (self.overrides, self.recipe, self.network)
        return self.method, *(tuple(sorted(part.items())) for part in parts)


def method_title(method: str) -> str:
    """A method as papers print it; one that is not registered here by its own name.

    >>> method_title("source_only"), method_title("cdan+theirs")
    ('Source only', 'CDAN+theirs')
    """
    names = [
        entry.method.__name__ if (entry := METHODS.get(part)) else short_name(part)
        for part in method_parts(method)
    ]
    return "+".join("Source only" if name == "SourceOnly" else name for name in names)


def parameter_title(values: Mapping[str, Any]) -> str:
    """The varied values in brackets, or nothing."""
    listed = ", ".join(f"{name}={plain(value)}" for name, value in values.items())
    return f" ({listed})" if listed else ""


def plain(value: Any) -> str:
    """A value without needless digits; the names of run folders depend on this form.

    >>> plain(0.5), plain(True)
    ('0.5', 'True')
    """
    if value == "oracle" or is_shares(value):
        return prior_title(value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def hyperparameters(
    method: str, overrides: Mapping[str, Any], benchmark: str | None
) -> dict[str, Any]:
    """Every hyper-parameter of a method, `part.name` in a composition.

    >>> hyperparameters("cwsm", {}, None)
    {'trade_off': 1.0, 'r': 0.5, 'normalize': 'transfer', 'prior': 'uniform',
     'prior_strength': 0.75}
    """
    configs = configure(method, overrides, benchmark)
    return {
        entry.name if len(configs) == 1 else f"{short_name(part)}.{entry.name}": getattr(
            config, entry.name
        )
        for part, config in configs.items()
        for entry in dataclasses.fields(config)
    }


def changed_hyperparameters(
    method: str, overrides: Mapping[str, Any], benchmark: str | None
) -> dict[str, Any]:
    """The hyper-parameters that differ from the benchmark's defaults, in the type of their field.

    >>> changed_hyperparameters("nsm", {"r": "0.5", "alpha": 2}, "office31")
    {'alpha': 2.0}
    """
    usual = hyperparameters(method, {}, benchmark)
    chosen = hyperparameters(method, overrides, benchmark)
    return {name: value for name, value in chosen.items() if value != usual[name]}


def rank(method: str) -> int:
    """Where a method stands in tables: as registered, compositions below, unknown ones last."""
    names = list(METHODS)
    first, *others = parts = method_parts(method)
    if not all(part in names for part in parts):
        return 2 * len(names) + 1
    return names.index(first) + (len(names) if others else 0)
