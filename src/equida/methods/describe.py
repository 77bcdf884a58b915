"""What a list of methods says of each: idea, hyper-parameters, reference."""

import ast
import dataclasses
import inspect
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from equida.methods.base import METHODS, Range


@dataclass(frozen=True)
class Hyperparameter:
    """A field of a method's configuration, as a reader needs it."""

    name: str
    default: Any
    range: Range | None
    """Where a search may look; None where the field is no number."""
    meaning: str


@dataclass(frozen=True)
class Description:
    """A registered method, as a reader needs it."""

    name: str
    idea: str
    notes: str
    """How it differs from its authors' code, and other things to know; may be empty."""
    reference: str
    source_free: bool
    hyperparameters: tuple[Hyperparameter, ...]
    presets: Mapping[str, Mapping[str, Any]]


def describe(name: str) -> Description:
    """What there is to know of a registered method before it is used.

    >>> describe("cwsm").hyperparameters[1].meaning
    'Pressure towards equal class sizes; strongest near 0.5, and none at 0.'
    """
    entry = METHODS[name]
    meanings = field_docstrings(entry.config)
    fields = tuple(
        Hyperparameter(f.name, f.default, f.metadata.get("range"), meanings.get(f.name, ""))
        for f in dataclasses.fields(entry.config)
    )
    _, *notes = inspect.cleandoc(entry.method.__doc__ or "").split("\n\n")
    return Description(
        name,
        entry.idea,
        " ".join(" ".join(notes).split()),
        entry.reference,
        entry.method.source_free,
        fields,
        entry.presets,
    )


def field_docstrings(config: type) -> dict[str, str]:
    """The string that follows each field in the source of a dataclass, on one line."""
    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(config))).body[0]
    except OSError:  # an installation without sources
        return {}
    assert isinstance(body, ast.ClassDef)
    found = {}
    for field, text in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            value = text.value if isinstance(text, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                found[field.target.id] = " ".join(value.value.split())
    return found
