"""Class shares as users write them: a list, names with shares, or a file of either.

Wherever they come from, they become one text, JSON, which a run's record, a sweep and a flag can
hold: `[0.5, 0.3, 0.2]` in the order of the classes, or `{"mug": 0.7, "pen": 0.3}`.
"""

import csv
import hashlib
import json
import math
import numbers
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from equida.errors import InputError

TOLERANCE = 0.01
"""How far from 1 shares may add up to: people round."""


def is_shares(text: Any) -> bool:
    """Whether a value is class shares in the form that `shares_text` gives them."""
    return isinstance(text, str) and text[:1] in ("[", "{")


def shares_text(given: Any, name: str) -> str:
    """Class shares in their one spelling, scaled to a sum of 1.

    Args:
        given: a text (a file, numbers with commas, or JSON), a sequence or a mapping.
        name: what error messages call them.

    >>> shares_text("0.7, 0.3", "prior"), shares_text({"mug": 7, "pen": 3}, "prior")
    ('[0.7, 0.3]', '{"mug": 0.7, "pen": 0.3}')
    """
    values, origin = _values(given, name)
    numbers = list(values.values()) if isinstance(values, Mapping) else list(values)
    for number, label in zip(numbers, _labels(values), strict=True):
        if not 0.0 <= number < math.inf:
            raise InputError(f"{origin}: the share of {label} is {number:g}; expected 0 or more")
    try:
        total = math.fsum(numbers)
    except OverflowError:
        total = math.inf
    counts = 1.5 < total < math.inf and all(number == int(number) for number in numbers)
    if not (counts or abs(total - 1.0) <= TOLERANCE):
        raise InputError(
            f"{origin}: {len(numbers)} shares sum to {total:g}; expected 1, or whole counts"
        )
    # Shares that have been scaled before must not change in their last digits.
    scale = 1.0 if math.isclose(total, 1.0, rel_tol=1e-12) else total
    scaled = [number / scale for number in numbers]
    if isinstance(values, Mapping):
        return json.dumps(dict(zip(values, scaled, strict=True)), ensure_ascii=False)
    return json.dumps(scaled)


def shares_title(text: str) -> str:
    """Class shares as titles name them.

    >>> shares_title('{"mug": 1.0}')
    'shares 8749451a'
    """
    return f"shares {hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()[:8]}"


def _values(given: Any, name: str) -> tuple[Mapping[str, float] | Sequence[float], str]:
    """The numbers, by class name or in order, and what error messages call their origin."""
    if isinstance(given, os.PathLike):
        given = os.fspath(given)
    if not isinstance(given, str):
        return _numbers(_plain(given), name), name
    text = given.strip()
    if text[:1] in ("[", "{"):
        return _numbers(_json(text, name), name), name
    if (listed := _listed(text)) is not None:
        return listed, name
    file = _file(text)
    if file is None:
        raise InputError(
            f"{name} is {given!r}; it must be uniform, source, estimate, oracle, shares such as"
            " 0.5,0.3,0.2, or a file of them"
        )
    return _read(file)


def names_file(text: Any) -> bool:
    """Whether `shares_text` would open a file for a value.

    >>> names_file("0.7, 0.3"), names_file("/dev/null/shares.csv"), names_file(__file__)
    (False, False, True)
    """
    if not isinstance(text, str) or is_shares(text.strip()):
        return False
    return _listed(text) is None and _file(text.strip()) is not None


def _listed(text: str) -> list[float] | None:
    """The numbers with commas between them; None where the text is something else."""
    words = text.split(",")
    try:
        return [float(word) for word in words] if len(words) > 1 else None
    except ValueError:
        return None


def _file(text: str) -> Path | None:
    # Not by pathlib, which raises for names that are too long and for users that there are not.
    path = os.path.expanduser(text)
    return Path(path) if os.path.isfile(path) else None


def _plain(given: Any) -> Any:
    """A mapping or a list in place of an array; of a pandas Series with labels, a mapping."""
    # pandas itself numbers 0, 1, 2, ...: that index is an order, and any other one names classes.
    index = getattr(given, "index", None)
    numbered = (getattr(index, "start", None), getattr(index, "step", None)) == (0, 1)
    if hasattr(given, "to_dict") and not numbered:
        return given.to_dict()
    tolist = getattr(given, "tolist", None)
    return tolist() if callable(tolist) else given


def label_text(label: Any) -> str:
    """The name of a class whose label may be a number: 3.0 is the class 3.

    >>> label_text(3.0), label_text(2.5), label_text("mug")
    ('3', '2.5', 'mug')
    """
    whole = isinstance(label, numbers.Real) and float(label).is_integer()
    return str(int(label)) if whole and not isinstance(label, bool) else str(label)


def _read(file: Path) -> tuple[Mapping[str, float] | Sequence[float], str]:
    """JSON, or lines: a share on each in the order of the classes, or a class and its share."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read as text: {error}") from None
    if text.lstrip()[:1] in ("[", "{"):
        return _numbers(_json(text, str(file)), str(file)), str(file)
    named: dict[str, float] = {}
    ordered: list[float] = []
    first = True
    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        if not line or line.startswith("#"):
            continue
        label, share = _line(line)
        if share is None and first and "," in line:  # the head of a table
            first = False
            continue
        first = False
        if share is None or label in named:
            twice = " once" if label in named else ""
            raise InputError(
                f"{file}:{number}: read {line!r}; expected a class{twice} and its share"
            )
        if label is None:
            ordered.append(share)
        else:
            named[label] = share
    if not (named or ordered) or (named and ordered):
        raise InputError(
            f"{file} holds {len(named)} shares with a class and {len(ordered)} without; expected"
            " a class and its share on each line, or a share for each class in their order"
        )
    return named or ordered, str(file)


def _line(line: str) -> tuple[str | None, float | None]:
    """The class, if it is named, and the share; None for a share that is not a number."""
    cells = next(csv.reader([line])) if "," in line else line.rsplit(None, 1)
    label = cells[0].strip() if len(cells) > 1 else None
    try:
        return label, float(cells[-1])
    except ValueError:
        return label, None


def _json(text: str, origin: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"{origin} is not JSON ({error}); expected [0.7, 0.3] or class names with shares"
        ) from None


def _numbers(values: Any, origin: str) -> Mapping[str, float] | Sequence[float]:
    try:
        if isinstance(values, Mapping) and values:
            return {label_text(label): float(share) for label, share in values.items()}
        if isinstance(values, Sequence) and values and not isinstance(values, str):
            return [float(share) for share in values]
    except (TypeError, ValueError, OverflowError):
        pass
    raise InputError(
        f"{origin} is {values!r}; expected a share for each class, such as [0.7, 0.3] or"
        ' {"mug": 0.7, "pen": 0.3}'
    )


def _labels(values: Mapping[str, float] | Sequence[float]) -> list[str]:
    if isinstance(values, Mapping):
        return [repr(label) for label in values]
    return [f"class {number}" for number in range(len(values))]
