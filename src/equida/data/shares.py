"""Class shares by choice: a domain cut down to a long tail, to some classes, or to given shares.

Protocols are short texts, so that a run's record, a table's title and a flag have the same form:

- `long-tail:30`: class sizes fall geometrically from n to n / 30, where n is the median size of
  the classes that are there; a class that has fewer samples keeps all of them, and none is empty;
- `classes:15`: all samples of 15 of the classes that are there;
- a file of shares: the most samples that have these shares.

A third part, as in `long-tail:30:7`, is the seed of the subsampling (0 without it). It is part of
the protocol and not the seed of the run: every method and every run see the same samples.
"""

import hashlib
import json
import math
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from equida.data.classes import match_classes
from equida.data.domain import DomainT
from equida.errors import InputError

Role = Literal["source", "target"]


def checked_shares(text: str, flag: str) -> str:
    """A protocol in its one spelling; the shares in a file become part of it, as JSON.

    Args:
        text: what the user has given; "" asks for nothing.
        flag: what error messages call it.

    >>> checked_shares("long-tail:30.0:0", "--target-shares")
    'long-tail:30'
    """
    if not text:
        return text
    if text.startswith("{"):
        return json.dumps(_scaled(_parsed(text, flag), flag))
    kind, _, rest = text.partition(":")
    if kind not in ("long-tail", "classes"):
        if not Path(text).expanduser().is_file():
            raise InputError(
                f"{flag} is {text!r}; expected long-tail:30, classes:15, or a file with a class and"
                " its share on each line"
            )
        return json.dumps(read_shares(Path(text).expanduser()))
    number, _, seed = rest.partition(":")
    try:
        value, drawn = float(number), int(seed or "0")
    except ValueError:
        value, drawn = math.nan, 0
    if kind == "classes" and not (value >= 1 and value == int(value) and drawn >= 0):
        raise InputError(f"{flag} is {text!r}; expected how many classes, such as classes:15")
    if not (1 <= value < math.inf and drawn >= 0):
        raise InputError(
            f"{flag} is {text!r}; expected the largest class over the smallest, at least 1, such"
            " as long-tail:30"
        )
    return f"{kind}:{value:g}" + (f":{drawn}" if drawn else "")


def read_shares(file: Path) -> dict[str, float]:
    """Class shares from a text file, one `class share` on each line, scaled to a sum of 1.

    Counts do as well as shares. A class that is not named has no share. Lines that begin with "#"
    are passed over.
    """
    shares: dict[str, float] = {}
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read as text: {error}") from None
    for number, line in enumerate(map(str.strip, lines), 1):
        if not line or line.startswith("#"):
            continue
        name, *last = line.rsplit(None, 1)
        try:
            share = float(last[0])
        except (IndexError, ValueError):
            share = math.nan
        if not 0 <= share < math.inf or name in shares:
            twice = " once" if name in shares else ""
            raise InputError(
                f"{file}:{number}: read {line!r}; expected a class{twice} and its share, at least 0"
            )
        shares[name] = share
    return _scaled(shares, str(file))


def _parsed(text: str, flag: str) -> dict[str, float]:
    """The shares in a JSON text, as a run's record has them."""
    try:
        shares = {str(name): float(share) for name, share in json.loads(text).items()}
    except (ValueError, TypeError):
        shares = {"": math.nan}
    if not all(0 <= share < math.inf for share in shares.values()):
        raise InputError(f'{flag} is {text!r}; expected shares such as {{"mug": 0.7, "pen": 0.3}}')
    return shares


def _scaled(shares: Mapping[str, float], origin: str) -> dict[str, float]:
    total = sum(shares.values())
    if not total:
        raise InputError(f"{origin} has no share above 0; expected classes and their shares")
    # Shares that have been scaled before must not change in their last digits.
    scale = 1.0 if math.isclose(total, 1.0, rel_tol=1e-9) else total
    return {name: share / scale for name, share in shares.items()}


def shares_title(text: str) -> str:
    """A protocol as titles name it; shares from a file by their digest.

    >>> shares_title("long-tail:30"), shares_title('{"mug": 1.0}')
    ('long-tail:30', 'shares 8749451a')
    """
    if text.startswith("{"):
        return f"shares {hashlib.sha256(text.encode()).hexdigest()[:8]}"
    return text


def subsampled(domain: DomainT, text: str, role: Role) -> DomainT:
    """The domain cut down to a protocol, in its own order.

    Args:
        domain: a labelled domain.
        text: the protocol, as `checked_shares` spells it; "" leaves the domain as it is.
        role: what the domain is used as; source and target have tails of their own.
    """
    if not text:
        return domain
    flag = f"--{role}-shares"
    if domain.labels is None:
        raise InputError(
            f"{flag} {shares_title(text)} needs labels to choose samples by, but {role}"
            f" {domain.name} has none; leave it out"
        )
    # Not the domain's place, which may change: its name.
    seeds = [_seed(text), zlib.crc32(f"{role}/{domain.name}".encode())]
    generator = np.random.default_rng(seeds)
    sizes = _sizes(text, domain.classes, domain.class_counts(), generator, f"{flag}: {domain.name}")
    chosen = [
        generator.permutation(np.flatnonzero(domain.labels == label))[:size]
        for label, size in enumerate(sizes.tolist())
    ]
    return domain.select(np.sort(np.concatenate(chosen)))


def _seed(text: str) -> int:
    parts = [] if text.startswith("{") else text.split(":")
    return int(parts[2]) if len(parts) == 3 else 0


def _sizes(
    text: str,
    classes: Sequence[str],
    counts: NDArray[np.int64],
    generator: np.random.Generator,
    origin: str,
) -> NDArray[np.int64]:
    """How many samples each class is to have."""
    if text.startswith("{"):
        return _sizes_of(json.loads(text), classes, counts, origin)
    kind, number = text.split(":")[:2]
    present = generator.permutation(np.flatnonzero(counts))
    sizes = np.zeros_like(counts)
    if kind == "classes":
        wanted = int(number)
        if wanted > len(present):
            raise InputError(
                f"{origin} has samples of {len(present)} classes; {wanted} of them cannot be chosen"
            )
        sizes[present[:wanted]] = counts[present[:wanted]]
        return sizes
    ranks = np.arange(len(present)) / max(1, len(present) - 1)
    tail = np.median(counts[present]) * float(number) ** -ranks
    sizes[present] = np.clip(np.rint(tail), 1, counts[present])
    return sizes


def _sizes_of(
    shares: Mapping[str, float], classes: Sequence[str], counts: NDArray[np.int64], origin: str
) -> NDArray[np.int64]:
    wanted = np.zeros(len(classes))
    wanted[match_classes(list(shares), classes, origin)] = list(shares.values())
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
