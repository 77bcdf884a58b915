"""Flags made from the dataclasses that they fill: recipes, and hyper-parameters of methods."""

import dataclasses
import typing
from collections.abc import Sequence
from typing import Annotated, Any

import tyro

from equida.errors import InputError
from equida.methods import METHODS, describe, parts
from equida.methods.describe import field_docstrings
from equida.training.recipe import Recipe


def recipe_flags() -> type:
    """A dataclass with the fields of `Recipe`, each None unless the user sets it."""
    meanings = field_docstrings(Recipe)
    return _optional("RecipeFlags", typing.get_type_hints(Recipe), meanings)


def method_flags(method: str) -> type:
    """A dataclass with the hyper-parameters of a method, each None unless the user sets it.

    In a composition, `nsm_trade_off` is the field `trade_off` of its part `nsm`.
    """
    names = parts(method)
    types: dict[str, Any] = {}
    meanings: dict[str, str] = {}
    for name in names:
        hints = typing.get_type_hints(METHODS[name].config)
        for field in describe(name).hyperparameters:
            flag = field.name if len(names) == 1 else f"{name}_{field.name}"
            types[flag] = hints[field.name]
            meanings[flag] = f"{field.meaning} (default: {field.default})"
    return _optional("MethodFlags", types, meanings)


def overrides(flags: Any, method: str | None = None) -> dict[str, Any]:
    """What the user has set, by the names that recipes and methods know."""
    given = {f.name: getattr(flags, f.name) for f in dataclasses.fields(flags)}
    given = {name: value for name, value in given.items() if value is not None}
    names = parts(method) if method else ()
    if len(names) < 2:
        return given
    return {
        f"{part}.{name.removeprefix(part + '_')}": value
        for name, value in given.items()
        for part in names
        if name.startswith(part + "_")
    }


def asked_for(argv: Sequence[str], flag: str, default: str) -> str:
    """The value of a flag before the command line is parsed, as other flags depend on it."""
    for position, word in enumerate(argv):
        if word == flag and position + 1 < len(argv):
            return argv[position + 1]
        if word.startswith(flag + "="):
            return word.split("=", 1)[1]
    return default


def with_flags(base: type, argv: Sequence[str]) -> type:
    """The verb's dataclass with the flags of the recipe and of the method that is asked for."""
    method = asked_for(argv, "--method", "nsm")
    try:
        hyper = method_flags(method)
    except InputError:
        # Asked for help, or misspelt: the verb itself will say what is wrong with the name.
        hyper = dataclasses.make_dataclass("MethodFlags", [])
    flat, training = tyro.conf.OmitArgPrefixes, recipe_flags()
    made = dataclasses.make_dataclass(
        base.__name__,
        [
            ("hyper", Annotated[hyper, flat], dataclasses.field(default_factory=hyper)),
            ("training", Annotated[training, flat], dataclasses.field(default_factory=training)),
        ],
        bases=(base,),
    )
    made.__doc__ = base.__doc__
    return made


def _optional(name: str, types: dict[str, Any], meanings: dict[str, str]) -> type:
    fields = [
        (
            field,
            Annotated[kind | None, tyro.conf.arg(help=meanings.get(field, ""))],
            dataclasses.field(default=None),
        )
        for field, kind in types.items()
    ]
    return dataclasses.make_dataclass(name, fields)
