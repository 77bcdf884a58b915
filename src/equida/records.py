"""Values that were read from a file, compared with the types that they should have.

The records of a run are JSON that anybody may have written or damaged. What passes through here has
the types that its reader counts on; all else is an InputError that names the place and the value.
"""

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from equida.errors import InputError
from equida.fields import KINDS

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Record = TypeVar("Record", bound="DataclassInstance")

LARGEST_INTEGER = 2**63 - 1
"""Larger ones do not fit into a tensor."""


def conform(value: Any, hint: Any, name: str) -> None:
    """Raise InputError unless a value from a JSON file is of the type that `hint` names.

    Args:
        value: the parsed value.
        hint: int, float, bool, str, None, a Literal, a union of them, `list`, `tuple` or `Mapping`
            of them, a dataclass (whose fields may be missing), or Any for one plain value.
        name: where the value stands, for the message.

    >>> conform({"last": [1, 2]}, Mapping[str, list[int]], "result.json")
    >>> conform({"last": [1, "a"]}, Mapping[str, list[int]], "result.json")
    Traceback (most recent call last):
    equida.errors.InputError: result.json: last[1] is 'a'; expected a whole number
    """
    if problem := _problem(value, hint):
        raise InputError(f"{name}: {problem}")


def construct(made: type[Record], values: Mapping[str, Any], name: str) -> Record:
    """A dataclass from the values of its fields in a JSON file.

    Args:
        made: the dataclass.
        values: the fields by name.
        name: where they stand, for the message.

    Raises:
        InputError: a field is missing, or there is one that the dataclass does not have.
    """
    if not isinstance(values, Mapping):
        raise InputError(f"{name} is {values!r}; expected a table of names and values")
    fields = {field.name: field for field in dataclasses.fields(made)}
    if unknown := sorted(set(values) - set(fields)):
        raise InputError(
            f"{name} has a field {unknown[0]!r} that this version of equida does not know; install"
            " the version that wrote it"
        )
    for field in fields.values():
        default = (field.default, field.default_factory)
        if field.name not in values and default == (dataclasses.MISSING, dataclasses.MISSING):
            raise InputError(f"{name} has no {field.name!r}; it is damaged: make the run again")
    return made(**values)


def _problem(value: Any, hint: Any, place: str = "") -> str:
    """What is wrong with the value at `place`; "" if nothing is."""
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        inner, origin = (bool, int, float, str, None), typing.Union
    if origin in (types.UnionType, typing.Union):
        problems = [_problem(value, option, place) for option in inner]
        if "" in problems:
            return ""
        # Of a table or a list that may also be missing, what is wrong inside it says more.
        inside = [each for each in problems if not each.startswith(f"{place or 'it'} is ")]
        return inside[0] if inside else _complaint(value, hint, place)
    if origin in (list, tuple) and isinstance(value, list | tuple):
        found = (_problem(each, inner[0], f"{place}[{n}]") for n, each in enumerate(value))
        return next(filter(None, found), "")
    if _is_mapping(origin) and isinstance(value, dict):
        found = (_problem(each, inner[1], _join(place, key)) for key, each in value.items())
        return next(filter(None, found), "")
    if dataclasses.is_dataclass(hint) and isinstance(hint, type) and isinstance(value, dict):
        hints = typing.get_type_hints(hint)
        known = ((name, value[name]) for name in hints if name in value)
        found = (_problem(each, hints[name], _join(place, name)) for name, each in known)
        return next(filter(None, found), "")
    return "" if _fits(value, hint) else _complaint(value, hint, place)


def _fits(value: Any, hint: Any) -> bool:
    if hint in (None, types.NoneType):
        return value is None
    if typing.get_origin(hint) is Literal:
        return value in typing.get_args(hint) and not isinstance(value, float)
    if hint is int:
        return type(value) is int and abs(value) <= LARGEST_INTEGER
    if hint is float:
        return type(value) is float or (type(value) is int and abs(value) <= LARGEST_INTEGER)
    return hint in (bool, str) and isinstance(value, hint)


def _complaint(value: Any, hint: Any, place: str) -> str:
    shown = repr(value) if not isinstance(value, dict | list) else f"a {type(value).__name__}"
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    return f"{place or 'it'} is {shown}; expected {_words(hint)}"


def _words(hint: Any) -> str:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return "a plain value"
    if origin in (types.UnionType, typing.Union):
        return " or ".join(map(_words, inner))
    if origin is Literal:
        return f"one of {', '.join(map(str, inner))}"
    if origin in (list, tuple):
        return f"a list, of which each is {_words(inner[0])}"
    if _is_mapping(origin) or dataclasses.is_dataclass(hint):
        return "a table of names and values"
    return "nothing" if hint in (None, types.NoneType) else KINDS[hint]


def _is_mapping(origin: Any) -> bool:
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _join(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name
