"""Docstrings here are plain text with code in backticks: what else looks like markup is not."""

import re
from typing import Any

from sphinx.application import Sphinx

CODE = re.compile(r"(``[^`]*``|`[^`]*`)")


def escape(line: str) -> str:
    """The line with bars and stars as characters, except inside code.

    >>> escape("mean of |P - Q|, `a * b`")
    'mean of \\\\|P - Q\\\\|, `a * b`'
    """
    if line.lstrip().startswith((">>>", "...")):
        return line
    parts = CODE.split(line)
    return "".join(
        part if number % 2 else re.sub(r"([|*])", r"\\\1", part)
        for number, part in enumerate(parts)
    )


def process(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    lines[:] = [escape(line) for line in lines]


def setup(app: Sphinx) -> dict[str, bool]:
    # Before napoleon (500), which writes markup of its own.
    app.connect("autodoc-process-docstring", process, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
