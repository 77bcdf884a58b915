"""Fill a verb's dataclass from the command line, and say on one line what is wrong with it.

tyro prints its complaints in a frame over several lines. It hands them out as data only through
`tyro._errors`, which is private and may change in any release. So everything that touches it is in
this file, and whatever is not understood here falls through to tyro's own message and exit code 2.
"""

import contextlib
import dataclasses
import difflib
import inspect
import os
import re
import sys
import typing
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import tyro

from equida.errors import InputError, enumerated
from equida.fields import Bounds, FieldError, FieldSpec

T = TypeVar("T")
NAMES_ELSEWHERE = {
    "--steps": "--iterations",
    "--max-steps": "--iterations",
    "--epochs": "--iterations",
    "--lr": "--learning-rate",
}
"""What other tools call an option, with its name here."""
NOT_HERE = {
    ("tune", "--prior"): "a search aims at equal class sizes; adapt with what it finds and --prior",
    ("compare", "--features"): "features of images are computed anyway",
    ("compare", "--sweep"): "equida bench has it",
    ("adapt", "--validator"): "--keep names the validator whose step is kept",
}
"""Why a verb lacks an option that others have."""


def parse(arguments: type[T], verb: str, argv: Sequence[str]) -> T:
    """The verb's dataclass, filled from the command line.

    Raises:
        InputError: an option is unknown, missing or has a value that it does not allow.
        SystemExit: the help was asked for and has been printed.
    """
    if os.environ.get("NO_COLOR"):  # which tyro does not look at
        getattr(tyro, "_experimental_options", {})["ansi_codes"] = False
    with _complaints(arguments, verb, argv):
        return tyro.cli(
            arguments,
            prog=f"equida {verb}",
            description=_separate_examples(inspect.cleandoc(arguments.__doc__ or "")),
            args=argv,
            config=(tyro.conf.FlagCreatePairsOff,),
            registry=_registry(),
        )


def _separate_examples(text: str) -> str:
    """Put each command of the text into a paragraph of its own, as tyro joins lines."""
    return re.sub(r"(?<=[^\n])\n(?=equida )", "\n\n", text)


def _registry() -> tyro.constructors.ConstructorRegistry:
    """Numbers are read by `equida.fields`, so that there is one message for a bad one."""
    registry = tyro.constructors.ConstructorRegistry()

    @registry.primitive_rule
    def number(
        info: tyro.constructors.PrimitiveTypeInfo,
    ) -> tyro.constructors.PrimitiveConstructorSpec[Any] | None:
        if info.type not in (int, float):
            return None
        spec = FieldSpec("", info.type, (), False, Bounds(), None, "")
        return tyro.constructors.PrimitiveConstructorSpec(
            nargs=1,
            metavar=info.type.__name__.upper(),
            instance_from_str=lambda words: spec.read(words[0]),
            is_instance=lambda value: isinstance(value, info.type),
            str_from_instance=lambda value: [str(value)],
        )

    return registry


@contextlib.contextmanager
def _complaints(arguments: type, verb: str, argv: Sequence[str]) -> Iterator[None]:
    """Raise InputError for what tyro is about to complain of."""
    try:
        from tyro import _errors
    except ImportError:  # another release of tyro: it prints its own message
        yield
        return

    def raise_input_error(event: _errors.ParseErrorEvent) -> None:
        try:
            said = _one_line(event, arguments, verb, argv)
        except AttributeError:  # another release of tyro, as above
            return
        if said:
            raise InputError(f"{said}; see equida {verb} --help")

    with _errors.on_parse_error(raise_input_error):
        yield


def _one_line(event: Any, arguments: type, verb: str, argv: Sequence[str]) -> str:
    """What is wrong with the command line; "" for a kind of event that is not known here."""
    match type(event).__name__:
        case "MissingArgs":
            # An option that is spelled wrongly is often the one that is missing.
            known = {*_options(arguments), "--help"}
            if unknown := [word for word in argv if word[:2] == "--" and _name(word) not in known]:
                return _unrecognized(unknown, arguments, verb)
            return f"missing: {', '.join(_flag(each.arg) for each in event.missing_arguments)}"
        case "UnrecognizedArgs":
            return _unrecognized(event.tokens, arguments, verb)
        case "InvalidChoice":
            expected = f"one of {', '.join(event.choices)}"
            return str(FieldError(_flag(event.argument), event.value, expected))
        case "BadValue" if event.reason == "too_few_values":
            return f"{_flag(event.argument)} has no value; give it one"
        case "InstantiationFailure" if event.argument is not None:
            # tyro keeps the text of what a reader raises; the error itself is the context of the
            # exception that tyro handles.
            cause = getattr(sys.exception(), "__context__", None)
            if isinstance(cause, FieldError):
                return str(FieldError(_flag(event.argument), cause.value, cause.expected))
            return f"{_flag(event.argument)}: {event.message}"
    return ""


def _flag(argument: Any) -> str:
    """How a user writes an argument: its long option, or the placeholder of a positional one."""
    if argument.is_positional():
        return str(argument.lowered.metavar)
    return next((name for name in argument.lowered.name_or_flags if name[:2] == "--"), "")


def _name(token: str) -> str:
    """An option without its value, as tyro compares it."""
    return token.partition("=")[0].replace("_", "-")


def _unrecognized(tokens: Sequence[str], arguments: type, verb: str) -> str:
    # Behind an option stand its values, which were not wrong.
    said = f"unrecognized options: {', '.join([t for t in tokens if t[:1] == '-'] or tokens)}"
    unknown = next((_name(token) for token in tokens if token[:2] == "--"), "")
    if reason := NOT_HERE.get((verb, unknown)) or _of_methods(verb, unknown):
        return f"{said}; {reason}"
    unknown = NAMES_ELSEWHERE.get(unknown, unknown)
    close = difflib.get_close_matches(unknown, _options(arguments), n=1, cutoff=0.7)
    return f"{said}; did you mean {close[0]}?" if close else said


def _of_methods(verb: str, option: str) -> str:
    """Which methods have an option that the one at hand has not; "" where none has."""
    if verb != "adapt":
        return ""
    from equida.methods import METHODS, describe_method

    field = option.removeprefix("--").replace("-", "_")
    have = [
        name
        for name in METHODS
        if field in {each.name for each in describe_method(name).hyperparameters}
    ]
    return f"it is a setting of {enumerated(have, 6)}" if have else ""


def _options(arguments: type) -> list[str]:
    """The long options of a verb, with those of the groups inside its dataclass."""
    found = []
    for name, hint in typing.get_type_hints(arguments).items():
        if dataclasses.is_dataclass(hint):
            found += _options(typing.cast(type, hint))
        else:
            found.append("--" + name.strip("_").replace("_", "-"))
    return found
