"""Flags that are made of recipes, methods and data sets, and the requests that flags fill."""

import dataclasses
import enum
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, TypeVar

import tyro

from equida.data.benchmarks import BENCHMARKS
from equida.errors import enumerated
from equida.fields import FieldSpec, short_text, specs
from equida.methods import METHODS, default_config, describe_method, method_name, split_name
from equida.methods.aiming import PRIOR_FIELDS
from equida.methods.auto import AUTO, CANDIDATES
from equida.training.recipe import RECIPES, Recipe, hyperparameter_flag

T = TypeVar("T")


DATASET_NAMES = enumerated([*BENCHMARKS], word="or")
DATASET_HELP = f"The data set: {DATASET_NAMES}, or the path of your own."
RECIPE_NAMES = enumerated([*RECIPES], word="or")
RecipeFlag = Annotated[
    str, tyro.conf.arg(help=f"{RECIPE_NAMES}; the backbone decides unless this is set.")
]
METAVARS = {int: "INT", float: "FLOAT", str: "TEXT", bool: "[yes|no]"}


class Unset(enum.Enum):
    """The value of a flag that the user has not given; None is a value of some flags."""

    UNSET = "unset"


def recipe_flags(recipe: str = "") -> type:
    """A dataclass with the fields of `Recipe`, each `Unset` unless the user gives it.

    Args:
        recipe: the recipe whose values the help shows as defaults; "": those of all recipes.
    """
    chosen = {name: RECIPES[name].recipe for name in ([recipe] if recipe else RECIPES)}
    return _flags_class(
        "RecipeFlags",
        {
            name: (spec, _defaults({key: getattr(values, name) for key, values in chosen.items()}))
            for name, spec in specs(Recipe).items()
        },
    )


def method_flags(method: str, benchmark: str | None = None) -> type:
    """A dataclass with the hyper-parameters of a method, each `Unset` unless the user gives it.

    Args:
        method: a registered name, or several with `+` between them.
        benchmark: the data set whose presets the help shows as defaults.
    """
    flags = {}
    for flag, (part, spec) in _hyperparameters(method).items():
        flags[flag] = spec, _shown(getattr(default_config(part, benchmark), spec.name))
    whose = "candidate" if method == AUTO else "part of the method"
    for name, owners in _shared(method).items():
        spec = specs(METHODS[owners[0]].config)[name]
        spec = dataclasses.replace(spec, meaning=f"For every {whose} that has it: {spec.meaning}")
        values = {part: getattr(default_config(part, benchmark), name) for part in owners}
        shown = _defaults(values)
        if method == AUTO and name == "prior":
            shown += "; estimate where the target looks imbalanced"
        flags.setdefault(name, (spec, shown))
    return _flags_class("MethodFlags", flags)


def overrides(flags: Any, method: str | None = None) -> dict[str, Any]:
    """The values that the user has given, by the names of the recipe's or the method's fields.

    Args:
        flags: an instance of what `recipe_flags` or `method_flags` made.
        method: the method of `method_flags`; None for a recipe.
    """
    values = {field.name: getattr(flags, field.name) for field in dataclasses.fields(flags)}
    given = {name: value for name, value in values.items() if value is not Unset.UNSET}
    if method is None or not given:
        return given
    known = _hyperparameters(method)
    composed = len(_parts(method)) > 1
    named = {}
    for flag, value in given.items():
        if flag in known:
            part, spec = known[flag]
            named[f"{part}.{spec.name}" if composed else spec.name] = value
        else:
            named[flag] = value
    return named


def request_from(kind: type[T], flags: Any, **others: Any) -> T:
    """The request whose fields have the values of the flags with the same names.

    An empty text, which is a flag that was not given, is None where the field may be None.

    Args:
        kind: the dataclass of the request.
        flags: the verb's dataclass, filled.
        **others: fields that no flag has the name of, or that are not just copied.
    """
    values = dict(others)
    for name, hint in typing.get_type_hints(kind).items():
        if name not in others and hasattr(flags, name):
            value = getattr(flags, name)
            optional = types.NoneType in typing.get_args(hint)
            values[name] = None if value == "" and optional else value
    return kind(**values)


def _hyperparameters(method: str) -> dict[str, tuple[str, FieldSpec]]:
    """The part and the field of a method behind each of its flags."""
    parts = _parts(method)
    return {
        hyperparameter_flag(parts, part, name): (part, spec)
        for part in parts
        for name, spec in specs(METHODS[part].config).items()
    }


def _shared(method: str) -> dict[str, list[str]]:
    """The flags that several methods have together, those of a composition or the candidates of
    "auto", and the methods that have each."""
    parts = _parts(method)
    if method == AUTO:
        parts = tuple(dict.fromkeys(part for name, _ in CANDIDATES for part in split_name(name)))
    elif len(parts) == 1:
        return {}
    owners = {
        name: [part for part in parts if name in specs(METHODS[part].config)]
        for name in PRIOR_FIELDS
    }
    return {name: found for name, found in owners.items() if found}


def _parts(method: str) -> tuple[str, ...]:
    """The registered methods behind a name; none for "auto", which chooses one itself."""
    return () if method == AUTO else split_name(method)


def asked_for(argv: Sequence[str], flag: str, default: str) -> str:
    """The value of a flag before the command line is parsed, as other flags depend on it.

    >>> asked_for(["--method", "nsm", "--method=bnm"], "--method", "cwsm")
    'bnm'
    """
    found = default
    for position, word in enumerate(argv):
        if word == flag and position + 1 < len(argv):
            found = argv[position + 1]
        elif word.startswith(flag + "="):
            found = word.split("=", 1)[1]
    return found


def with_flags(base: type, argv: Sequence[str]) -> type:
    """The verb's dataclass with the flags of the recipe and of the method that the user names."""
    method = method_name(asked_for(argv, "--method", "nsm"))
    dataset = asked_for(argv, "--dataset", asked_for(argv, "-d", ""))
    hyper = method_flags(method, dataset or None)
    ideas = " ".join(describe_method(name).idea for name in _parts(method))
    if method == AUTO:
        ideas = "What every candidate is given; everything else is chosen."
    training = recipe_flags(asked_for(argv, "--recipe", ""))
    return _extended(base, _group(f"method {method}", ideas, "hyper", hyper), _training(training))


def with_recipe_flags(base: type) -> type:
    """The verb's dataclass with the flags of the recipe."""
    return _extended(base, _training(recipe_flags()))


def _extended(base: type, *groups: tuple[str, Any, Any]) -> type:
    made = dataclasses.make_dataclass(base.__name__, groups, bases=(base,))
    made.__doc__ = base.__doc__
    return made


def _training(flags: type) -> tuple[str, Any, Any]:
    return _group("training", "The fields of the recipe.", "training", flags)


def _group(title: str, about: str, name: str, factory: type) -> tuple[str, Any, Any]:
    """A field of a verb's dataclass whose own fields the help shows under a title."""
    kind: Any = Annotated[factory, tyro.conf.OmitArgPrefixes]
    if not dataclasses.fields(factory):
        return name, Annotated[kind, tyro.conf.Suppress], dataclasses.field(default_factory=factory)
    factory.__doc__ = about
    named = Annotated[kind, tyro.conf.arg(name=title)]
    return name, named, dataclasses.field(default_factory=factory)


def _flags_class(name: str, flags: Mapping[str, tuple[FieldSpec, str]]) -> type:
    """A dataclass with these flags, each with its field and the default that the help shows."""
    return dataclasses.make_dataclass(
        name,
        [
            (flag, _flag(spec, default), dataclasses.field(default=Unset.UNSET))
            for flag, (spec, default) in flags.items()
        ],
    )


def _flag(spec: FieldSpec, default: str) -> Any:
    """The annotation of a flag that may stay unset."""
    choices = "{" + ",".join(map(str, spec.choices)) + "}" if spec.choices else ""
    reader: Any = tyro.constructors.PrimitiveConstructorSpec(
        # A switch may be given without a value.
        nargs=(0, 1) if spec.kind is bool else 1,
        metavar=choices or METAVARS[spec.kind],
        instance_from_str=lambda words: spec.read(words[0] if words else "yes"),
        is_instance=lambda value: True,
        str_from_instance=lambda value: [_shown(value)],
    )
    arg = tyro.conf.arg(help=spec.meaning, help_behavior_hint=f"(default: {default})")
    return Annotated[Any, reader, arg]


def _defaults(values: Mapping[str, Any]) -> str:
    """The default, or that of each recipe where they differ."""
    texts = {name: _shown(value) for name, value in values.items()}
    if len(set(texts.values())) == 1:
        return next(iter(texts.values()))
    return ", ".join(f"{text} in {name}" for name, text in texts.items())


def _shown(value: Any) -> str:
    return short_text(value) or '""'
