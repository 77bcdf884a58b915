"""The `equida` command: one verb per module, imported only when that verb runs.

A verb's module holds a dataclass `Arguments` whose fields are its flags (their docstrings are the
help), and `run(arguments) -> int`, whose result is the exit code.
"""

import difflib
import importlib
import inspect
import os
import sys
from collections.abc import Sequence
from typing import TypeVar

from equida.errors import InputError

T = TypeVar("T")

VERBS = {
    "features": "compute features of every image once, into one memory-mapped file",
    "theory": "recompute every table, figure and theorem of the paper that needs no training",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit code: 0 done, 1 not achieved, 2 bad input."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        return _dispatch(arguments)
    except InputError as error:
        print(f"equida: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("equida: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader (`| head`) has gone; what is left in the buffer must not raise at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


def _dispatch(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(_usage())
        return 0 if arguments else 2
    if arguments[0] in ("-V", "--version", "version"):
        from equida import __version__

        print(f"equida {__version__}")
        return 0
    verb, *rest = arguments
    if verb not in VERBS:
        close = difflib.get_close_matches(verb, VERBS, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"it is one of: {', '.join(VERBS)}"
        raise InputError(f"{verb!r} is not a command; {hint}")
    module = importlib.import_module(f"equida.cli.{verb}")
    return int(module.run(parse(module.Arguments, verb, rest)))


def parse(arguments: type[T], verb: str, argv: Sequence[str]) -> T:
    """The verb's dataclass, filled from the command line by tyro."""
    import tyro

    return tyro.cli(
        arguments, prog=f"equida {verb}", description=inspect.getdoc(arguments), args=argv
    )


def _usage() -> str:
    width = max(map(len, VERBS))
    lines = [f"  {verb:<{width}}  {text}" for verb, text in VERBS.items()]
    return "\n".join(
        ["usage: equida COMMAND [OPTIONS]   (equida COMMAND --help for its options)", "", *lines]
    )
