"""The fields of a dataclass: what they mean, which values they allow, and how text is read.

Recipes and the hyper-parameters of methods are plain dataclasses. Everything that fills them (flags
of the command line, sweeps, the scikit-learn estimator, JSON files) goes through `specs`, so that a
value is read, checked and complained about in the same way wherever it comes from. Requests hold
paths, lists and data besides; `check_request` checks each of their fields by its type.
"""

import ast
import dataclasses
import errno
import functools
import inspect
import math
import numbers
import os
import textwrap
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from equida.errors import InputError, enumerated

KINDS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
SWITCH = {"yes": True, "true": True, "no": False, "false": False}


class FieldError(InputError):
    """A field has a value that it does not allow; the parts of the message are attributes."""

    def __init__(self, name: str, value: Any, expected: str) -> None:
        shown = " ".join(repr(value).split())  # that of an array has several lines
        shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
        super().__init__(f"{name} is {shown}; it must be {expected}")
        self.name, self.value, self.expected = name, value, expected

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name, self.value, self.expected)


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """The values that a number may have; infinities and NaN are never allowed."""

    minimum: float = -math.inf
    maximum: float = math.inf
    below: float = math.inf
    """A limit that is not allowed itself; it takes the place of `maximum`."""

    def allow(self, value: float) -> bool:
        return self.minimum <= value <= self.maximum and value < self.below

    def words(self) -> str:
        """The bounds as they follow "a number" in a message.

        >>> Bounds(minimum=0.0, below=1.0).words()
        ' of at least 0 and below 1'
        """
        if self.minimum > -math.inf and self.maximum < math.inf:
            return f" from {self.minimum:g} to {self.maximum:g}"
        limits = (
            (self.minimum, "of at least"),
            (self.maximum, "of at most"),
            (self.below, "below"),
        )
        said = [f"{words} {limit:g}" for limit, words in limits if math.isfinite(limit)]
        return f" {' and '.join(said)}" if said else ""


def bounded(
    default: float | None,
    minimum: float = -math.inf,
    maximum: float = math.inf,
    below: float = math.inf,
) -> Any:
    """A dataclass field for a number, with its default and the values that it allows."""
    return with_bounds(default, Bounds(minimum=minimum, maximum=maximum, below=below))


def with_bounds(default: float | None, bounds: Bounds) -> Any:
    """A dataclass field whose numbers must lie within `bounds`."""
    return dataclasses.field(default=default, metadata={"bounds": bounds})


@dataclass(frozen=True)
class FieldSpec:
    """One field of a dataclass: its type, its bounds, its default and its meaning."""

    name: str
    kind: type
    """int, float, bool or str."""
    choices: tuple[Any, ...]
    """The values of a `Literal`; empty for every other type."""
    optional: bool
    """True where None is a value, which is written "none"."""
    bounds: Bounds
    default: Any
    """`dataclasses.MISSING` where there is none."""
    meaning: str
    """The docstring that follows the field in its class, on one line; where there is none, what
    the metadata of the field say."""
    reader: Callable[[Any, str], Any] | None = None
    """Turns what the user gives, and the name for messages, into the value; None: the type does."""

    @property
    def expected(self) -> str:
        """What a value must be, as it ends the sentence "it must be"."""
        said = KINDS[self.kind]
        if self.kind is float and self.bounds.maximum == self.bounds.below == math.inf:
            said = "a finite number"
        said += self.bounds.words()
        if self.choices:
            said = f"one of {', '.join(map(str, self.choices))}"
        return f"{said}, or none" if self.optional else said

    def check(self, value: Any, name: str = "") -> Any:
        """The value in the type of the field; numbers of numpy and whole floats are welcome.

        Args:
            value: a Python value, such as one from a JSON file; text is not read as a number.
            name: how a message calls the field, where its own name would not be enough.

        Raises:
            FieldError: the field does not allow the value.
        """
        plain = _plain(value)
        if plain is None and self.optional:
            return None
        if self.reader is not None:
            return self.reader(plain, name or self.name)
        checked = self._typed(plain)
        if checked is None:
            raise FieldError(name or self.name, plain, self.expected)
        return checked

    def read(self, text: str, name: str = "") -> Any:
        """The value that a text means, such as the value of a flag; checked as by `check`.

        >>> specs(Bounds)["below"].read("1e-3")
        0.001
        """
        if self.optional and text.lower() == "none":
            return None
        if self.choices:
            value = next((choice for choice in self.choices if str(choice) == text), text)
        elif self.kind is bool:
            value = SWITCH.get(text.lower(), text)
        elif self.kind is str:
            value = text
        else:
            value = _number(text)
        return self.check(value, name)

    def value(self, given: Any, name: str = "") -> Any:
        """The checked value, from a text or from a Python value."""
        return self.read(given, name) if isinstance(given, str) else self.check(given, name)

    def _typed(self, value: Any) -> Any:
        """The value in the type of the field, or None where the field does not allow it."""
        if self.choices:
            return value if type(value) is self.kind and value in self.choices else None
        if self.kind in (bool, str):
            return value if isinstance(value, self.kind) else None
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            return None
        try:
            number = self.kind(value)
        except (OverflowError, ValueError):  # an infinity as an int, or an int that is too large
            return None
        fits = math.isfinite(number) if self.kind is float else number == value
        return number if fits and self.bounds.allow(number) else None


def _number(text: str) -> Any:
    """The number that a text means, or the text itself for the message that refuses it."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def specs(config: type) -> Mapping[str, FieldSpec]:
    """The fields of a dataclass by name, in their order.

    Raises:
        TypeError: a field is neither int, float, bool, str, a Literal of one of them, nor one of
            these or None. This is a mistake of whoever wrote the class.
    """
    return _cached_specs(config)


def _make_specs(config: type) -> Mapping[str, FieldSpec]:
    hints, meanings = typing.get_type_hints(config), field_docstrings(config)
    found = {}
    for field in dataclasses.fields(config):
        kind, choices, optional = _kind(hints[field.name])
        if kind not in KINDS:
            raise TypeError(
                f"{config.__name__}.{field.name} is of type {hints[field.name]}; a field must be"
                " int, float, bool, str or a Literal, or one of these or None"
            )
        found[field.name] = FieldSpec(
            field.name,
            kind,
            choices,
            optional,
            field.metadata.get("bounds", Bounds()),
            field.default,
            meanings.get(field.name) or field.metadata.get("meaning", ""),
            field.metadata.get("reader"),
        )
    return types.MappingProxyType(found)


# Each flag, sweep and run asks for the fields again, and their docstrings are read from the source.
_cached_specs: Callable[[Any], Mapping[str, FieldSpec]] = functools.cache(_make_specs)


def _kind(hint: Any) -> tuple[type, tuple[Any, ...], bool]:
    """The plain type of a hint, its choices, and whether it includes None."""
    optional = False
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        options = [option for option in typing.get_args(hint) if option is not types.NoneType]
        optional = len(options) < len(typing.get_args(hint))
        hint = options[0] if len(options) == 1 else hint
    if typing.get_origin(hint) is Literal:
        choices = typing.get_args(hint)
        return type(choices[0]), choices, optional
    return hint, (), optional


def normalise(instance: Any) -> None:
    """Check every field of a dataclass and give it the type that it declares.

    This is for `__post_init__`, also of a frozen class: afterwards a learning rate of 1 and one of
    1.0 are the same, and numbers of numpy are plain numbers that JSON can hold.
    """
    for name, spec in specs(type(instance)).items():
        object.__setattr__(instance, name, spec.check(getattr(instance, name)))


PathText: TypeAlias = Annotated[str, "path"]
"""The type of a field that holds a path as text; `check_request` takes a `Path` for it too."""

_UNFIT = object()


def check_request(request: Any) -> None:
    """Check every field of a request by its type hint, and give it that type.

    This is for `__post_init__`, also of a frozen class. Beyond the types of `specs`, a field may
    be a path, a list, a mapping, a class, any other type, or one of several of these. Numbers of
    numpy are plain ones afterwards, alone and in lists and mappings.

    Raises:
        FieldError: a field does not allow its value.
    """
    for name, hint in _cached_hints(type(request)).items():
        object.__setattr__(request, name, checked_value(getattr(request, name), hint, name))


def checked_value(value: Any, hint: Any, name: str) -> Any:
    """One value in the type that a hint says.

    >>> checked_value(3, str | Sequence[str], "tasks")
    Traceback (most recent call last):
    equida.fields.FieldError: tasks is 3; it must be a text or a list (of a text)

    Args:
        value: what was given.
        hint: a type as it stands behind a field or an argument.
        name: what a message calls it.

    Raises:
        FieldError: the value is of another type, or a path that no file can have.
    """
    fitted = _fitted(value, hint)
    if fitted is _UNFIT:
        raise FieldError(name, value, _expected(hint))
    return fitted


# The hints of a class are looked up by name in its module, and requests are copied often.
_cached_hints: Callable[[Any], dict[str, Any]] = functools.cache(
    functools.partial(typing.get_type_hints, include_extras=True)
)


def _fitted(value: Any, hint: Any) -> Any:
    """The value in the type of the hint, or `_UNFIT`."""
    plain = _plain(value)
    for option in _options(hint):
        fitted = _fitted_to_one(plain, option)
        if fitted is not _UNFIT:
            return fitted
    return _UNFIT


def _fitted_to_one(value: Any, hint: Any) -> Any:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint in KINDS or origin is Literal:
        kind, choices, _ = _kind(hint)
        typed = FieldSpec("", kind, choices, False, Bounds(), None, "")._typed(value)
        return _UNFIT if typed is None or (kind is str and "\0" in typed) else typed
    if hint in (Path, PathText):
        path = os.fspath(value) if isinstance(value, str | os.PathLike) else None
        if not isinstance(path, str) or not _possible_path(path):
            return _UNFIT
        return Path(path) if hint is Path else path
    if origin is Sequence:
        return _fitted_items(value, inner[0])
    if origin is Mapping:
        if not isinstance(value, Mapping) or not all(isinstance(name, str) for name in value):
            return _UNFIT
        items = {name: _fitted(item, inner[1]) for name, item in value.items()}
        return _UNFIT if any(item is _UNFIT for item in items.values()) else items
    if origin is type:
        return value if isinstance(value, type) and issubclass(value, inner[0]) else _UNFIT
    return value if hint is Any or isinstance(value, hint) else _UNFIT


def _fitted_items(values: Any, hint: Any) -> Any:
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        return _UNFIT
    values = values.tolist() if hasattr(values, "tolist") else values  # an array
    if not isinstance(values, list | tuple):  # a set, a range or a generator: it may be endless
        return values
    items = [_fitted(item, hint) for item in values]
    if any(item is _UNFIT for item in items):
        return _UNFIT
    return items if isinstance(values, list) else tuple(items)


def _possible_path(path: str) -> bool:
    """Whether the system could have a file of that name."""
    try:
        os.lstat(path)
    except ValueError:  # a NUL character
        return False
    except OSError as error:
        return error.errno != errno.ENAMETOOLONG
    return True


def _options(hint: Any) -> tuple[Any, ...]:
    """What a union is of; any other hint by itself."""
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        return typing.get_args(hint)
    return (hint,)


def _expected(hint: Any) -> str:
    """What a value must be, as it ends the sentence "it must be"."""
    return enumerated([_words(option) for option in _options(hint)], word="or")


def _words(hint: Any) -> str:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if hint in KINDS:
        return KINDS[hint]
    if hint in (Path, PathText):
        return "a path that a file can have"
    if origin is Literal:
        return f"one of {', '.join(map(str, inner))}"
    if origin is Sequence:
        return f"a list (of {_expected(inner[0])})"
    if origin is Mapping:
        return "a dictionary by name"
    if origin is type:
        return f"a subclass of {inner[0].__name__}"
    return "none" if hint is types.NoneType else f"a {hint.__name__}"


def _plain(value: Any) -> Any:
    """A number of numpy or torch as one of Python."""
    item = getattr(value, "item", None)
    return item() if callable(item) and getattr(value, "ndim", None) == 0 else value


def exact_text(value: Any) -> str:
    """The text that `FieldSpec.read` turns into the same value again.

    >>> exact_text(0.1 + 0.2), exact_text(2.0), exact_text(None), exact_text(False)
    ('0.30000000000000004', '2', 'none', 'no')
    """
    short = short_text(value)
    return repr(value) if isinstance(value, float) and float(short) != value else short


def short_text(value: Any) -> str:
    """A value as a person wants to read it: without needless digits.

    >>> short_text(1 / 3), short_text(True), short_text(36)
    ('0.333333', 'yes', '36')
    """
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def field_docstrings(config: type) -> dict[str, str]:
    """The string that follows each field in the source of a dataclass, on one line."""
    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(config))).body[0]
    except (OSError, TypeError):  # no source: a compiled installation, or a class made by a program
        return {}
    if not isinstance(body, ast.ClassDef):
        return {}
    found = {}
    for field, text in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            value = text.value if isinstance(text, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                found[field.target.id] = " ".join(value.value.split())
    return found
