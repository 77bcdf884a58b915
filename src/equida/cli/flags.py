"""Flags made from the dataclasses that they fill: recipes, and hyper-parameters of methods."""

import dataclasses
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

import tyro

from equida.methods import METHODS, default_config, describe, parts
from equida.methods.describe import field_docstrings
from equida.training.recipe import RECIPES, Recipe


def recipe_flags(recipe: str = "") -> type:
    """A dataclass with the fields of `Recipe`, each None unless the user sets it.

    Args:
        recipe: whose values the help shows as defaults; "": those of all recipes.
    """
    chosen = {name: RECIPES[name] for name in ([recipe] if recipe else RECIPES)}
    defaults = {
        field.name: _defaults({name: getattr(r, field.name) for name, r in chosen.items()})
        for field in dataclasses.fields(Recipe)
    }
    hints = typing.get_type_hints(Recipe)
    return _optional("RecipeFlags", hints, field_docstrings(Recipe), defaults)


def method_flags(method: str, benchmark: str | None = None) -> type:
    """A dataclass with the hyper-parameters of a method, each None unless the user sets it.

    In a composition, `nsm_trade_off` is the field `trade_off` of its part `nsm`. A field that
    recipes have too, as `dropout`, is called `dann_dropout` in any case.
    """
    names = parts(method)
    kinds: dict[str, Any] = {}
    meanings: dict[str, str] = {}
    defaults: dict[str, str] = {}
    for name in names:
        hints = typing.get_type_hints(METHODS[name].config)
        config = default_config(name, benchmark)
        for field in describe(name).hyperparameters:
            flag = _method_flag(names, name, field.name)
            kinds[flag], meanings[flag] = hints[field.name], field.meaning
            defaults[flag] = _text(getattr(config, field.name))
    return _optional("MethodFlags", kinds, meanings, defaults)


def overrides(flags: Any, method: str | None = None) -> dict[str, Any]:
    """What the user has set, by the names that recipes and methods know."""
    given = {f.name: getattr(flags, f.name) for f in dataclasses.fields(flags)}
    given = {name: value for name, value in given.items() if value is not None}
    if method is None:
        return given
    names = parts(method)
    known = {
        _method_flag(names, part, field.name): f"{part}.{field.name}"
        for part in names
        for field in describe(part).hyperparameters
    }
    full = {known[name]: value for name, value in given.items()}
    alone = len(names) == 1
    return {name.partition(".")[2] if alone else name: value for name, value in full.items()}


def _method_flag(names: Sequence[str], part: str, field: str) -> str:
    taken = {known.name for known in dataclasses.fields(Recipe)}
    return f"{part}_{field}" if len(names) > 1 or field in taken else field


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
    dataset = asked_for(argv, "--dataset", asked_for(argv, "-d", ""))
    hyper = method_flags(method, dataset or None)
    training = recipe_flags(asked_for(argv, "--recipe", ""))
    ideas = " ".join(describe(name).idea for name in parts(method))
    made = dataclasses.make_dataclass(
        base.__name__,
        [
            _group(f"method {method}", ideas, "hyper", hyper),
            _group("training", "Each field of the recipe.", "training", training),
        ],
        bases=(base,),
    )
    made.__doc__ = base.__doc__
    return made


def _group(title: str, about: str, name: str, factory: type) -> tuple[str, Any, Any]:
    kind: Any = Annotated[factory, tyro.conf.OmitArgPrefixes]
    if not dataclasses.fields(factory):
        return name, Annotated[kind, tyro.conf.Suppress], dataclasses.field(default_factory=factory)
    factory.__doc__ = about
    named = Annotated[kind, tyro.conf.arg(name=title)]
    return name, named, dataclasses.field(default_factory=factory)


def _optional(
    name: str, kinds: Mapping[str, Any], meanings: Mapping[str, str], defaults: Mapping[str, str]
) -> type:
    fields = [
        (
            field,
            _flag(kind, meanings.get(field, ""), f"(default: {defaults[field]})"),
            dataclasses.field(default=None),
        )
        for field, kind in kinds.items()
    ]
    return dataclasses.make_dataclass(name, fields)


def _flag(kind: Any, meaning: str, hint: str) -> Any:
    """The type of a flag that may stay unset, with its help and its own complaint."""
    options = typing.get_args(kind)
    optional = isinstance(kind, types.UnionType)
    if optional:
        kind = next(option for option in options if option is not types.NoneType)
    read, metavar, words = READERS[Literal if typing.get_origin(kind) is Literal else kind]
    spec: Any = tyro.constructors.PrimitiveConstructorSpec(
        nargs=words,
        metavar=metavar or "{" + ",".join(options) + "}",
        # "none" is how the help shows what is left to the method.
        instance_from_str=lambda given: (
            None if optional and given == ["none"] else read(given, options)
        ),
        is_instance=lambda value: True,
        str_from_instance=lambda value: [_text(value)],
    )
    return Annotated[Any, spec, tyro.conf.arg(help=meaning, help_behavior_hint=hint)]


def _number(given: list[str], whole: bool) -> float:
    try:
        return int(given[0]) if whole else float(given[0])
    except ValueError:
        kind = "a whole number" if whole else "a number"
        raise ValueError(f"{given[0]!r} is not {kind}") from None


def _choice(given: list[str], options: Sequence[str]) -> str:
    if given[0] not in options:
        raise ValueError(f"{given[0]!r} is not one of {', '.join(options)}")
    return given[0]


def _switch(given: list[str]) -> bool:
    """A switch may be given bare, or with yes or no."""
    known = {"yes": True, "true": True, "no": False, "false": False}
    if given and given[0].lower() not in known:
        raise ValueError(f"{given[0]!r} is neither yes nor no")
    return known[given[0].lower()] if given else True


# For each type: how it is read, what the help calls it, and how many words it takes.
READERS: dict[Any, tuple[Callable[[list[str], Any], Any], str, int | tuple[int, ...]]] = {
    int: (lambda given, _: _number(given, whole=True), "INT", 1),
    float: (lambda given, _: _number(given, whole=False), "FLOAT", 1),
    str: (lambda given, _: given[0], "TEXT", 1),
    bool: (lambda given, _: _switch(given), "[yes|no]", (0, 1)),
    Literal: (_choice, "", 1),
}


def _defaults(values: Mapping[str, Any]) -> str:
    """The default, or that of each recipe where they differ."""
    texts = {name: _text(value) for name, value in values.items()}
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    return ", ".join(f"{text} in {name}" for name, text in texts.items())


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return "none" if value in (None, "") else str(value)
