"""Class shares by choice: a domain cut down to a long tail, to some classes, or to given shares.

Protocols are short texts, so that a run's record, a table's title and a flag have the same form:

- `long-tail:30`: class sizes fall geometrically from n to n / 30, where n is the median size of
  the classes that are there; a class that has fewer samples keeps all of them, and none is empty;
- `classes:15`: all samples of 15 of the classes that are there;
- a file of shares: the most samples that have these shares.

A third part, as in `long-tail:30:7`, is the seed of the subsampling (0 without it). It is part of
the protocol and not the seed of the run: every method and every run see the same samples.
"""

import json
import math
import zlib
from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from equida.class_shares import is_shares, names_file, shares_text, shares_title
from equida.data.classes import match_classes
from equida.data.domain import Domain, DomainT
from equida.errors import InputError, counted
from equida.fields import FieldError

Role = Literal["source", "target"]


def checked_shares(text: str, flag: str) -> str:
    """A protocol in its one spelling; the shares in a file become part of it (see `class_shares`).

    Args:
        text: what the user has given; "" asks for nothing.
        flag: what error messages call it.

    >>> checked_shares("long-tail:30.0:0", "--target-shares")
    'long-tail:30'
    """
    if not text or is_shares(text) or _is_rule(text):
        return recorded_shares(text, flag)
    if "," not in text and not names_file(text):
        known = "long-tail:30, classes:15, or a file with a class and its share on each line"
        raise FieldError(flag, text, known)
    return shares_text(text, flag)


def recorded_shares(text: str, name: str) -> str:
    """The same for the record of a run: shares stand in it, so that no file is opened for them.

    Args:
        text: what the record holds.
        name: what error messages call it.

    >>> recorded_shares("/etc/passwd", "target_shares")
    Traceback (most recent call last):
    equida.fields.FieldError: target_shares is '/etc/passwd'; it must be long-tail:30, ...
    """
    if not text:
        return ""
    if is_shares(text):
        return shares_text(text, name)
    if not _is_rule(text):
        known = 'long-tail:30, classes:15, or shares such as {"mug": 0.7, "pen": 0.3}'
        raise FieldError(name, text, known)
    kind, _, rest = text.partition(":")
    number, _, seed = rest.partition(":")
    try:
        value, drawn = float(number), int(seed or "0")
    except ValueError:
        value, drawn = math.nan, 0
    whole = 1 <= value < math.inf and value == int(value)
    if kind == "classes" and not (whole and drawn >= 0):
        raise InputError(f"{name} is {text!r}; expected how many classes, such as classes:15")
    if not (1 <= value < math.inf and drawn >= 0):
        raise InputError(
            f"{name} is {text!r}; expected the largest class over the smallest, at least 1, such"
            " as long-tail:30"
        )
    return f"{kind}:{value:g}" + (f":{drawn}" if drawn else "")


def _is_rule(text: str) -> bool:
    return text.partition(":")[0] in ("long-tail", "classes")


def protocol_title(text: str) -> str:
    """A protocol as titles name it; shares by their digest.

    >>> protocol_title("long-tail:30"), protocol_title('{"mug": 1.0}')
    ('long-tail:30', 'shares 8749451a')
    """
    return shares_title(text) if is_shares(text) else text


def subsampled(domain: DomainT, text: str, role: Role, like: Domain | None = None) -> DomainT:
    """The domain cut down to a protocol, in its own order.

    Args:
        domain: a labelled domain.
        text: the protocol, as `checked_shares` spells it; "" leaves the domain as it is.
        role: what the domain is used as; source and target have tails of their own.
        like: the domain whose classes were drawn, where other samples are cut down likewise.
    """
    if not text:
        return domain
    flag = f"--{role}-shares"
    if domain.labels is None:
        raise InputError(
            f"{flag} {protocol_title(text)} needs labels to choose samples by, but"
            f" {domain.named_as(role)} has none; leave it out"
        )
    # Not the domain's place, which may change: its name.
    drawn = domain if like is None else like
    name = f"{role}/{drawn.name}".encode("utf-8", "surrogateescape")
    generator = np.random.default_rng([_seed(text), zlib.crc32(name)])
    order = np.flatnonzero(drawn.class_counts())
    if not is_shares(text):
        order = generator.permutation(order)
    origin = f"{flag}: {domain.name}"
    sizes = _sizes(text, domain.classes, domain.class_counts(), order, origin)
    chosen = [
        generator.permutation(np.flatnonzero(domain.labels == label))[:size]
        for label, size in enumerate(sizes.tolist())
    ]
    return domain.select(np.sort(np.concatenate(chosen)))


def _seed(text: str) -> int:
    parts = [] if is_shares(text) else text.split(":")
    return int(parts[2]) if len(parts) == 3 else 0


def _sizes(
    text: str,
    classes: Sequence[str],
    counts: NDArray[np.int64],
    order: NDArray[np.int64],
    origin: str,
) -> NDArray[np.int64]:
    """How many samples each class is to have; classes are chosen, or grow fewer, in that order."""
    if is_shares(text):
        return _sizes_of(json.loads(text), classes, counts, origin)
    kind, number = text.split(":")[:2]
    sizes = np.zeros_like(counts)
    if kind == "classes":
        wanted = int(float(number))  # a million is written 1e+06
        if wanted > len(order):
            raise InputError(
                f"{origin} has samples of {counted(len(order), 'class', 'classes')}; {wanted} of"
                " them cannot be chosen"
            )
        sizes[order[:wanted]] = counts[order[:wanted]]
        return sizes
    ranks = np.arange(len(order)) / max(1, len(order) - 1)
    tail = np.median(counts[order]) * float(number) ** -ranks
    sizes[order] = np.clip(np.rint(tail), 1, counts[order])
    return sizes


def _sizes_of(
    shares: dict[str, float] | list[float],
    classes: Sequence[str],
    counts: NDArray[np.int64],
    origin: str,
) -> NDArray[np.int64]:
    wanted = np.zeros(len(classes))
    if isinstance(shares, dict):
        wanted[match_classes(list(shares), classes, origin)] = list(shares.values())
    elif len(shares) == len(classes):
        wanted[:] = shares
    else:
        there = counted(len(classes), "class", "classes")
        raise InputError(f"{origin} has {there}; the number of given shares is {len(shares)}")
    asked = np.flatnonzero(wanted)
    if len(empty := asked[counts[asked] == 0]):
        raise InputError(
            f"{origin} has no sample of {classes[empty[0]]!r}, whose share is to be"
            f" {wanted[empty[0]]:.3g}"
        )
    samples = (counts[asked] / wanted[asked]).min()
    sizes = np.zeros_like(counts)
    sizes[asked] = np.clip(np.rint(samples * wanted[asked]), 1, counts[asked])
    return sizes
