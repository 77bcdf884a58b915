"""What a list of methods shows of each one: its idea, its hyper-parameters and its reference."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from equida.fields import specs
from equida.methods.base import METHODS, Range


@dataclass(frozen=True)
class Hyperparameter:
    """A field of a method's configuration, as a list shows it.

    >>> describe_method("cwsm").hyperparameters[0].name
    'trade_off'
    """

    name: str
    default: Any
    range: Range | None
    """The range to search; None where the field is not a number or has no such range."""
    meaning: str


@dataclass(frozen=True)
class Description:
    """A registered method, as a list shows it.

    >>> describe_method("cwsm").source_free, describe_method("dann").source_free
    (True, False)
    """

    name: str
    idea: str
    notes: str
    """How it differs from its authors' code, and other things to know; may be empty."""
    reference: str
    source_free: bool
    hyperparameters: tuple[Hyperparameter, ...]
    presets: Mapping[str, Mapping[str, Any]]


def describe_method(name: str) -> Description:
    """What a user should know of a registered method before using it.

    >>> describe_method("cwsm").hyperparameters[1].meaning
    'Pressure towards equal class sizes; strongest near 0.5, and none at 0.'
    """
    entry = METHODS[name]
    fields = tuple(
        Hyperparameter(
            spec.name,
            spec.default,
            spec.bounds if isinstance(spec.bounds, Range) else None,
            spec.meaning,
        )
        for spec in specs(entry.config).values()
    )
    _, *notes = inspect.cleandoc(entry.method.__doc__ or "").split("\n\n")
    return Description(
        name,
        entry.idea,
        " ".join(" ".join(notes).split()),
        entry.reference,
        entry.method.source_free,
        fields,
        entry.presets,
    )
