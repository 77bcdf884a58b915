"""The `equida` command: one verb per module, imported only when that verb runs.

A verb's module holds a dataclass `Arguments` whose fields are its flags (their docstrings are the
help), and `run(arguments) -> int`, whose result is the exit code.
"""

import contextlib
import difflib
import errno
import importlib
import inspect
import io
import os
import re
import signal
import sys
import warnings
from collections.abc import Sequence
from typing import TypeVar

from equida.errors import InputError

T = TypeVar("T")

VERBS = {
    "adapt": "adapt a classifier from a labelled source to an unlabelled target",
    "predict": "label images with the classifier of a finished run",
    "export": "write a run's classifier as safetensors and ONNX",
    "bench": "every method on every task: the paper's table, resumable, in parallel",
    "paper": "every table and figure of the paper beside what your runs give",
    "rerun": "do a run again from its record and say whether the result is the same",
    "features": "compute features of every image once, into one memory-mapped file",
    "doctor": "check a data set or this installation, and say what to do",
    "list": "methods, recipes and data sets by name, with defaults, ranges, references",
    "report": "one self-contained page of all runs: tables, curves, mistakes",
    "theory": "recompute every table, figure and theorem of the paper that needs no training",
}

RESUMABLE = {"adapt", "bench", "features"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit code: 0 done, 1 not achieved, 2 bad input."""
    # Who asks the process to end (a scheduler, a container) gets the orderly end of Ctrl-C.
    with contextlib.suppress(ValueError):  # in another thread than the main one
        signal.signal(signal.SIGTERM, _terminated)
    # That an image is large is no concern of the user's; one that is too large is an error.
    warnings.filterwarnings("ignore", "Image size .* exceeds limit")
    try:
        # Not list(...): the verb `list` is an attribute of this package once it is imported.
        code = _dispatch([*(sys.argv[1:] if argv is None else argv)])
        sys.stdout.flush()
        return code
    except InputError as error:
        print(f"equida: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as stop:
        given = sys.argv[1:] if argv is None else argv
        further = "; the same command goes on from here" if set(given[:1]) & RESUMABLE else ""
        print(f"equida: interrupted{further}", file=sys.stderr)
        return 143 if stop.args else 130
    except BrokenPipeError:  # the reader (`| head`) has gone
        _drop_output()
        return 141
    except (MemoryError, RuntimeError) as error:
        if not (lacking := _lacking_memory(error)):
            raise
        print(f"equida: {lacking}", file=sys.stderr)
        return 2
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
            raise
        where = f" {error.filename}" if error.filename else ""
        print(f"equida: cannot write{where}: {error.strerror}; free some space", file=sys.stderr)
        _drop_output()
        return 2


def _lacking_memory(error: Exception) -> str:
    """What to do about it, where the memory of the machine or of its GPU is not enough."""
    said = str(error)
    if not isinstance(error, MemoryError) and not re.search("out of memory|allocate memory", said):
        return ""
    wanted = re.search(r"allocate ([\d.,]+ ?(?:bytes|[KMGT]iB))", said)
    amount = f" for {wanted[1]} more" if wanted else ""
    return (
        f"not enough memory{amount}; use a smaller --batch-size (with --accumulate, steps stay as"
        " large), a smaller network, or --precision bf16-mixed"
    )


def _drop_output() -> None:
    """What is left in the buffer must not raise at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _terminated(number: int, frame: object) -> None:
    raise KeyboardInterrupt(number)


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
    # A verb whose flags depend on what is asked for makes its dataclass from the arguments.
    arguments_of = getattr(module, "arguments_for", lambda _: module.Arguments)
    return int(module.run(parse(arguments_of(rest), verb, rest)))


def parse(arguments: type[T], verb: str, argv: Sequence[str]) -> T:
    """The verb's dataclass, filled from the command line by tyro; its complaints on one line."""
    import tyro

    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            about = _examples_apart(inspect.cleandoc(arguments.__doc__ or ""))
            return tyro.cli(arguments, prog=f"equida {verb}", description=about, args=argv)
    except SystemExit as stop:
        if not stop.code:
            raise
        raise InputError(f"{_one_line(complaint.getvalue())}; see equida {verb} --help") from None


def _examples_apart(text: str) -> str:
    """Each command of the text in a paragraph of its own, as tyro fills up lines."""
    return re.sub(r"(?<=[^\n])\n(?=equida )", "\n\n", text)


def _one_line(box: str) -> str:
    """What a framed complaint says: its first sentence, and the option that may be meant."""
    # The frame is of ASCII where the terminal knows nothing else.
    stripped = [line.strip("│╭╮╰╯─|+ ") for line in box.splitlines()]
    _title, *lines = [line for line in stripped if any(map(str.isalnum, line))]
    said = re.sub(
        r"invalid literal for int\(\) with base 10: (.*)", r"\1 is not a whole number", lines[0]
    ).rstrip(".")
    if said.startswith("Missing from"):
        options = [line for line in lines if line.startswith("-") or line.isupper()]
        missing = [next((w for w in o.split() if w[:2] == "--"), o.split()[0]) for o in options]
        said = "missing: " + ", ".join(dict.fromkeys(missing)) if missing else said.rstrip(":")
    for more in lines[1:]:
        # A list of choices that the frame has broken.
        if said.count("(") <= said.count(")") and not said.endswith(","):
            break
        said = f"{said} {more}".rstrip(".")
    if "Perhaps you meant:" in lines:
        meant = lines[lines.index("Perhaps you meant:") + 1].split()
        option = next(word for word in meant if word.startswith("--"))
        said += f"; did you mean {option.rstrip(',')}?"
    return said[0].lower() + said[1:]


def _usage() -> str:
    width = max(map(len, VERBS))
    lines = [f"  {verb:<{width}}  {text}" for verb, text in VERBS.items()]
    return "\n".join(
        ["usage: equida COMMAND [OPTIONS]   (equida COMMAND --help for its options)", "", *lines]
    )
