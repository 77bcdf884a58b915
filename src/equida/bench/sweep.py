"""Hyper-parameters that are varied: `r=0.5,1`, `trade_off=0.5:2.5:0.5`, `batch_size=18,36`."""

import dataclasses
import itertools
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from equida.errors import InputError
from equida.methods import METHODS, configure, parts
from equida.training.recipe import Recipe

MOST_VALUES = 1000


@dataclass(frozen=True)
class Sweep:
    """One thing that is varied, and its values."""

    name: str
    """A hyper-parameter of methods (`r`, `nsm.alpha`), or a field of the recipe."""
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Variant:
    """A method with the hyper-parameters that differ from its defaults on the benchmark."""

    method: str
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """Of the method; what equals the default is left out, so that r = 0.5 is the plain run."""
    recipe: Mapping[str, Any] = field(default_factory=dict)
    """Of the recipe."""
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
        return (
            self.method,
            tuple(sorted(self.overrides.items())),
            tuple(sorted(self.recipe.items())),
        )


def method_title(method: str) -> str:
    """A method as the paper prints it."""
    names = [METHODS[part].method.__name__ for part in parts(method)]
    return "+".join("Source only" if name == "SourceOnly" else name for name in names)


def parameter_title(values: Mapping[str, Any]) -> str:
    """The varied values in brackets, or nothing."""
    listed = ", ".join(f"{name}={plain(value)}" for name, value in values.items())
    return f" ({listed})" if listed else ""


def plain(value: Any) -> str:
    """A value without needless digits."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def parse_sweep(text: str) -> Sweep:
    """The sweep that `name=a,b,c` or `name=first:last:step` means; the last value is included.

    >>> parse_sweep("trade_off=0.5:2.5:0.5").values
    (0.5, 1.0, 1.5, 2.0, 2.5)
    """
    name, equals, listed = (part.strip() for part in text.partition("="))
    if not (name and equals and listed):
        raise InputError(
            f"--sweep {text!r} is not understood; expected NAME=A,B,C or NAME=FIRST:LAST:STEP"
        )
    values: list[Any] = []
    for word in listed.split(","):
        values += _range(word, text) if ":" in word else [_value(word.strip(), text)]
    return Sweep(name.replace("-", "_"), tuple(dict.fromkeys(values)))


def _range(word: str, text: str) -> list[float]:
    try:
        first, last, step = map(float, word.split(":"))
    except ValueError:
        raise InputError(f"--sweep {text!r}: {word!r} must be FIRST:LAST:STEP") from None
    count = (last - first) / step if step else -1.0
    if not 0 <= count < MOST_VALUES:
        raise InputError(
            f"--sweep {text!r}: {word!r} has no values or more than {MOST_VALUES};"
            " expected FIRST:LAST:STEP that leads from FIRST to LAST"
        )
    return [round(first + step * number, 10) for number in range(int(count + 1e-9) + 1)]


def _value(word: str, text: str) -> Any:
    if not word:
        raise InputError(f"--sweep {text!r} has an empty value")
    known = {"true": True, "false": False, "none": None}
    if word.lower() in known:
        return known[word.lower()]
    try:
        return float(word)
    except ValueError:
        return word


def variants(
    methods: Sequence[str], sweeps: Sequence[Sweep], benchmark: str | None
) -> list[Variant]:
    """Each method with every combination of the sweeps that concern it, each once.

    A method without a hyper-parameter of that name is not varied by it; a sweep that concerns none
    of the methods is an error.
    """
    sweeps = _merged(sweeps)
    used: set[str] = set()
    found: dict[tuple[Any, ...], Variant] = {}
    for method in methods:
        parts(method)
        mine = [sweep for sweep in sweeps if _concerns(sweep, method, benchmark)]
        used |= {sweep.name for sweep in mine}
        for values in itertools.product(*(sweep.values for sweep in mine)):
            chosen = {sweep.name: value for sweep, value in zip(mine, values, strict=True)}
            variant = make_variant(method, chosen, benchmark)
            found.setdefault(variant.key(), variant)
    for sweep in sweeps:
        if sweep.name not in used:
            fields = sorted({name for method in methods for name in _fields(method, benchmark)})
            raise InputError(
                f"--sweep {sweep.name}: none of {', '.join(methods)} has it, nor the recipe;"
                f" the methods have {', '.join(fields) or 'none'}"
            )
    return list(found.values())


def _merged(sweeps: Sequence[Sweep]) -> list[Sweep]:
    """One sweep for each name, with the values of all that have it."""
    values: dict[str, list[Any]] = {}
    for sweep in sweeps:
        values.setdefault(sweep.name, []).extend(sweep.values)
    return [Sweep(name, tuple(dict.fromkeys(many))) for name, many in values.items()]


def make_variant(method: str, chosen: Mapping[str, Any], benchmark: str | None) -> Variant:
    """The variant with these values, checked, of the method or of the recipe."""
    known = typing.get_type_hints(Recipe)
    recipe = {name: _typed(name, known[name], v) for name, v in chosen.items() if name in known}
    hyper = {name: value for name, value in chosen.items() if name not in known}
    return Variant(method, normal_overrides(method, hyper, benchmark), recipe, dict(chosen))


def normal_overrides(
    method: str, overrides: Mapping[str, Any], benchmark: str | None
) -> dict[str, Any]:
    """The hyper-parameters that differ from the benchmark's defaults, in the type of their field.

    >>> normal_overrides("nsm", {"r": "0.5", "alpha": 2}, "office31")
    {'alpha': 2.0}
    """
    usual = configure(method, None, benchmark)
    changed: dict[str, Any] = {}
    for part, config in configure(method, overrides, benchmark).items():
        for entry in dataclasses.fields(config):
            value = getattr(config, entry.name)
            if value != getattr(usual[part], entry.name):
                changed[entry.name if len(usual) == 1 else f"{part}.{entry.name}"] = value
    return changed


def _fields(method: str, benchmark: str | None) -> list[str]:
    configs = configure(method, None, benchmark)
    names = [f"{part}.{f.name}" for part, c in configs.items() for f in dataclasses.fields(c)]
    return [name.split(".")[1] for name in names] if len(configs) == 1 else names


def _concerns(sweep: Sweep, method: str, benchmark: str | None) -> bool:
    if sweep.name in typing.get_type_hints(Recipe):
        return True
    part, dot, name = sweep.name.rpartition(".")
    configs = configure(method, None, benchmark)
    return any(
        name in {f.name for f in dataclasses.fields(config)} and (not dot or part == owner)
        for owner, config in configs.items()
    )


def _typed(name: str, expected: Any, value: Any) -> Any:
    """A value of a sweep in the type of the recipe's field."""
    options = typing.get_args(expected)
    if options:
        good = value in options
    elif expected is int:
        good = isinstance(value, float) and value == int(value)
        value = int(value) if good else value
    elif expected is float:
        good = isinstance(value, float)
    else:
        good = isinstance(value, expected)
    if not good:
        kind = ", ".join(options) if options else expected.__name__
        raise InputError(f"--sweep {name}: {plain(value)} is not allowed; expected {kind}")
    return value
