"""Sweeps vary hyper-parameters: `r=0.5,1`, `trade_off=0.5:2.5:0.5`, `batch_size=18,36`."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from equida.errors import InputError
from equida.fields import specs
from equida.methods import METHODS, check_overrides, split_name
from equida.plugins import short_name
from equida.runs.variant import Variant, changed_hyperparameters
from equida.training.recipe import Recipe

MOST_VALUES = 1000
MOST_VARIANTS = 10_000


@dataclass(frozen=True)
class Sweep:
    """A field that is varied, and the values that it takes."""

    name: str
    """A hyper-parameter of methods (`r`, `nsm.alpha`), or a field of the recipe."""
    values: tuple[Any, ...]
    """Values, or texts that are read as soon as it is known which field they are for."""


def parse_sweep(text: str) -> Sweep:
    """The sweep that `name=a,b,c` or `name=first:last:step` means; the last value is included.

    >>> parse_sweep("trade_off=0.5:2.5:0.5").values
    (0.5, 1.0, 1.5, 2.0, 2.5)
    >>> parse_sweep("eps=none,1e-6").values
    ('none', '1e-6')
    """
    name, equals, listed = (part.strip() for part in text.partition("="))
    if not (name and equals and listed):
        raise InputError(
            f"--sweep {text!r} is not understood; expected NAME=A,B,C or NAME=FIRST:LAST:STEP"
        )
    values: list[Any] = []
    for word in map(str.strip, listed.split(",")):
        if not word:
            raise InputError(f"--sweep {text!r} has an empty value; remove a comma")
        values += _range(word, text) if ":" in word else [word]
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


def variants(
    methods: Sequence[str], sweeps: Sequence[Sweep], benchmark: str | None
) -> list[Variant]:
    """Each method with every combination of the sweeps that concern it, without repetitions.

    A sweep does not vary a method that has no hyper-parameter of that name. A sweep that concerns
    none of the methods is an error.
    """
    sweeps = _merged(sweeps)
    wanted = sum(
        math.prod(len(sweep.values) for sweep in sweeps if _concerns(sweep, method))
        for method in methods
    )
    if wanted > MOST_VARIANTS:
        raise InputError(
            f"--sweep asks for {wanted} variants of methods; expected at most {MOST_VARIANTS}, so"
            " vary less at once"
        )
    used: set[str] = set()
    found: dict[tuple[Any, ...], Variant] = {}
    for method in methods:
        mine = [sweep for sweep in sweeps if _concerns(sweep, method)]
        used |= {sweep.name for sweep in mine}
        for values in itertools.product(*(sweep.values for sweep in mine)):
            chosen = {sweep.name: value for sweep, value in zip(mine, values, strict=True)}
            chosen = _without_idle_strengths(chosen, mine)
            variant = make_variant(method, chosen, benchmark)
            found.setdefault(variant.key(), variant)
    for sweep in sweeps:
        if sweep.name not in used:
            known = sorted({name for method in methods for name in _hyperparameters(method)})
            raise InputError(
                f"{sweep.name}: neither the recipe nor any of {', '.join(methods)} has it;"
                f" the methods have {', '.join(known) or 'none'}"
            )
    return list(found.values())


def _without_idle_strengths(chosen: Mapping[str, Any], sweeps: Sequence[Sweep]) -> dict[str, Any]:
    """Without the strength of a prior where it is varied and this value is "estimate".

    An estimate is used as it is; the combinations that differ in its strength alone are one.
    """
    varied = {sweep.name for sweep in sweeps if len(sweep.values) > 1}
    kept = {}
    for name, value in chosen.items():
        own = name.removesuffix("_strength")
        prior = own if own in chosen else "prior"
        strength = name.rpartition(".")[2] == "prior_strength"
        if not (strength and prior in varied and chosen[prior] == "estimate"):
            kept[name] = value
    return kept


def _merged(sweeps: Sequence[Sweep]) -> list[Sweep]:
    """One sweep for each name, with the values of all sweeps that have this name."""
    values: dict[str, list[Any]] = {}
    for sweep in sweeps:
        values.setdefault(sweep.name, []).extend(sweep.values)
    return [Sweep(name, tuple(dict.fromkeys(many))) for name, many in values.items()]


def make_variant(method: str, chosen: Mapping[str, Any], benchmark: str | None) -> Variant:
    """The variant with these values, each checked against the field of that name."""
    known = specs(Recipe)
    recipe = {name: known[name].value(given) for name, given in chosen.items() if name in known}
    others = {name: given for name, given in chosen.items() if name not in known}
    # One value that goes to several parts of a composition is shown once.
    read = {
        name: next(iter(check_overrides(method, {name: others[name]}).values())) for name in others
    }
    shown = {name: (recipe if name in recipe else read)[name] for name in chosen}
    changed = changed_hyperparameters(method, read, benchmark)
    return Variant(method, changed, recipe, shown=shown)


def _hyperparameters(method: str) -> list[str]:
    """The names under which a sweep can vary the hyper-parameters of a method."""
    parts = split_name(method)
    names = [(part, name) for part in parts for name in specs(METHODS[part].config)]
    return [name if len(parts) == 1 else f"{short_name(part)}.{name}" for part, name in names]


def _concerns(sweep: Sweep, method: str) -> bool:
    """Whether the sweep varies something that runs of the method have."""
    if sweep.name in specs(Recipe):
        return True
    part, _, name = sweep.name.rpartition(".")
    owners = [owner for owner in split_name(method) if name in specs(METHODS[owner].config)]
    return part in (*owners, *map(short_name, owners)) if part else bool(owners)
