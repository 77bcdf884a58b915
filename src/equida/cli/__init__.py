"""The `equida` command: each verb has a module, which is imported only when that verb runs.

The module of a verb has a dataclass `Arguments`, whose fields are the flags (their docstrings are
the help), and a function `run(arguments) -> int`, which returns the exit code.
"""

import difflib
import importlib
import os
import re
import sys
import warnings
from collections.abc import Sequence
from types import ModuleType

from equida.cli._signals import exit_on_signals, wait_if_ending
from equida.errors import InputError, printable
from equida.files import write_advice

VERBS = {
    "adapt": "adapt a classifier from a labelled source to an unlabelled target",
    "predict": "label images with the classifier of a finished run",
    "export": "write a run's classifier as safetensors and ONNX",
    "bench": "run every method on every task, resumable and in parallel, and print the table",
    "compare": "compare methods on two domains of your own, with label-free scores beside",
    "tune": "search for the setting and the method that a label-free validator prefers",
    "paper": "compare every table and figure of the paper with your runs",
    "rerun": "repeat a run from its record and say whether the result is the same",
    "features": "compute features of every image once, into one memory-mapped file",
    "join": "put the features of several backbones side by side, into one file",
    "cache": "show or clear the features that commands share",
    "doctor": "check a data set or this installation, and say what to do",
    "list": "list methods, recipes and data sets with their defaults, ranges and references",
    "report": "write one self-contained page about all runs: tables, curves, mistakes",
    "theory": "recompute every table, figure and theorem of the paper that needs no training",
}

RESUMABLE = {"adapt", "bench", "compare", "features", "tune"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit code: 0 for success, 1 for failure, 2 for bad input.

    Args:
        argv: the arguments; None: those of this process, which then also ends by Ctrl-C and
            SIGTERM with one line and the exit code 130 or 143.
    """
    _open_closed_streams()
    # Not list(...): the verb `list` is an attribute of this package once it is imported.
    arguments = [*(sys.argv[1:] if argv is None else argv)]
    resume = "; the same command continues from here" if set(arguments[:1]) & RESUMABLE else ""
    if argv is None:
        exit_on_signals(f"interrupted{resume}")
    # The user need not care that an image is large; one that is too large is an error.
    warnings.filterwarnings("ignore", "Image size .* exceeds limit")
    try:
        try:
            code = _dispatch(arguments)
        except BaseException:
            wait_if_ending()
            raise
        sys.stdout.flush()
        return code
    except InputError as error:
        print(f"equida: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"equida: interrupted{resume}", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader, such as `| head`, has ended
        _drop_output()
        return 141
    except OSError as error:
        if advice := write_advice(error):
            file = printable(f" {error.filename}") if error.filename else ""
            print(f"equida: cannot write{file}: {error.strerror}; {advice}", file=sys.stderr)
            _drop_output()
        elif error.filename:  # a path that the user gave, or one below it
            said = printable(f"{error.filename}: {error.strerror}; check the path")
            print(f"equida: {said}", file=sys.stderr)
        else:
            raise
        return 2
    except Exception as error:  # also one that another process of the run has raised
        if not (advice := _out_of_memory(error)):
            raise
        print(f"equida: {advice}", file=sys.stderr)
        return 2


def _open_closed_streams() -> None:
    """Discard what goes to a standard stream that the caller has closed, as `>&-` does.

    Python then has None in its place, to which nothing can be printed (and `print` takes standard
    output for it), and the next file that is opened would get the stream's number, to which other
    code writes.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        place = os.open(os.devnull, os.O_RDWR)
        try:
            os.fstat(number)  # a library may have opened something there: not ours to write to
        except OSError:
            os.dup2(place, number)
            os.close(place)
            place = number
        os.set_inheritable(place, True)  # for the processes that are started from here
        mode = "r" if name == "stdin" else "w"
        stream = open(place, mode, encoding="utf-8", closefd=False)  # noqa: SIM115  # it stays open
        setattr(sys, name, stream)


def _out_of_memory(error: Exception) -> str:
    """What the user can do where the machine or its GPU lacks memory; "" for any other error."""
    said = str(error)
    # torch reports a lack of memory as a RuntimeError that only its text tells from others.
    if not isinstance(error, MemoryError) and not re.search("out of memory|allocate memory", said):
        return ""
    wanted = re.search(r"allocate ([\d.,]+ ?(?:bytes|[KMGT]iB))", said)
    amount = f" for {wanted[1]} more" if wanted else ""
    return (
        f"not enough memory{amount}; use a smaller --batch-size (with --accumulate, a step sees as"
        " many samples as before), a smaller network, or --precision bf16-mixed"
    )


def _drop_output() -> None:
    """Discard what is left in the buffer, which would raise at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _dispatch(arguments: list[str]) -> int:
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(_usage())
        return 0 if arguments else 2
    if arguments[0] in ("-V", "--version", "version"):
        from equida import __version__

        print(f"equida {__version__}")
        return 0
    from equida.cli._parse import parse

    verb, *rest = arguments
    if verb not in VERBS:
        close = difflib.get_close_matches(verb, VERBS, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"it is one of: {', '.join(VERBS)}"
        raise InputError(f"{verb!r} is not a command; {hint}")
    module = importlib.import_module(f"equida.cli.{verb}")
    return int(module.run(parse(arguments_class(module, rest), verb, rest)))


def arguments_class(module: ModuleType, argv: Sequence[str]) -> type:
    """The dataclass of a verb's flags, which some verbs make for the method that the user names."""
    make = getattr(module, "arguments_for", lambda _: module.Arguments)
    made: type = make(argv)
    return made


def _usage() -> str:
    width = max(map(len, VERBS))
    lines = [f"  {verb:<{width}}  {text}" for verb, text in VERBS.items()]
    return "\n".join(
        ["usage: equida COMMAND [OPTIONS]   (equida COMMAND --help for its options)", "", *lines]
    )
