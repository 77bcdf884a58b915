"""The one exception for things a user can put right, and how its text is put together."""

import difflib
import importlib
import re
import shlex
from collections.abc import Iterable, Sequence
from typing import Any

# Control characters, which a terminal obeys; marks that change the direction or the line of text;
# and halves of surrogate pairs, by which Python holds bytes of file names that are not text.
_UNPRINTABLE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str) -> str:
    """`text` with every character that a terminal would obey written as an escape sequence.

    Names of files and classes, and whatever else is read from a file, go through this function
    before they are printed.

    >>> print(printable("\\x1b[31mred"))
    \\x1b[31mred
    """
    return _UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def printable_lines(text: str) -> str:
    """The same for a message of several lines, each of which but the first is indented."""
    return "\n  ".join(map(printable, text.split("\n  ")))


def suggestion(word: str, known: Iterable[str]) -> str:
    """The end of a message on a word that is not known: what was likely meant, and what there is.

    >>> suggestion("nms", ["bnm", "nsm"])
    "; did you mean 'nsm'? Known: bnm, nsm"
    """
    names = list(known)
    close = difflib.get_close_matches(word.lower(), names, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else "."
    return f"{hint} Known: {', '.join(names) or 'none'}"


def counted(count: int, singular: str, plural: str = "") -> str:
    """A number with what it counts, in the singular or the plural.

    >>> counted(1, "image"), counted(2000, "image"), counted(0, "class", "classes")
    ('1 image', '2,000 images', '0 classes')
    """
    return f"{count:,} {singular if count == 1 else plural or f'{singular}s'}"


def enumerated(names: Sequence[str], most: int | None = None, *, word: str = "and") -> str:
    """Names as a sentence has them.

    Args:
        names: what to name.
        most: the most entries that are written; of more names, the last ones are counted.
        word: what stands before the last: "and" or "or".

    >>> enumerated(["flat", "new", "old"]), enumerated(["flat"]), enumerated(list("abcdef"), 4)
    ('flat, new and old', 'flat', 'a, b, c and 3 others')
    """
    if most is not None and len(names) > most:
        names = [*names[: most - 1], f"{len(names) - most + 1} others"]
    return f" {word} ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


class InputError(ValueError):
    """Bad input: one line that names the thing, the value seen, the value expected, what to do.

    The command line prints it without a traceback and exits with code 2. Whatever names it quotes,
    its text is safe to print.

    >>> raise InputError("seeds is 0; expected a whole number from 1")
    Traceback (most recent call last):
    equida.errors.InputError: seeds is 0; expected a whole number from 1
    """

    def __str__(self) -> str:
        return printable_lines(super().__str__())


def require(module: str, need: str, install: str) -> Any:
    """The module, imported by its name, or an error that says how to install it.

    Args:
        module: a module of an optional package.
        need: what needs which package, as a sentence.
        install: what pip is to install.

    >>> require("no_such_package", "a figure needs matplotlib", "equida[report]")
    Traceback (most recent call last):
    equida.errors.InputError: a figure needs matplotlib: pip install 'equida[report]'
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise InputError(f"{need}: pip install {shlex.quote(install)}") from None
