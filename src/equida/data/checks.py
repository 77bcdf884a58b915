"""Which samples of a domain cannot be used, and what to do with them."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor

from equida.data.domain import ArrayDomain, Domain, DomainT, ImageDomain
from equida.data.images import check_image
from equida.data.read_ahead import FilesBeingRead, read_ahead
from equida.data.rows import take_rows
from equida.errors import InputError, counted

Unreadable = list[tuple[str, str]]
"""The names of samples that cannot be used, each with the reason."""
Advance = Callable[[int], None]

_CHUNK = 256
_ROWS_AT_ONCE = 8192
SKIP = "--skip-unreadable (in Python, skip_unreadable=True)"
"""How a user asks for what cannot be used to be left out."""
MOST_VALUE = 1e18
"""Sums of squares of larger values are not finite in float32."""


def check_readable(
    domain: Domain,
    *,
    deep: bool = False,
    advance: Advance | None = None,
    turned: list[str] | None = None,
) -> Unreadable:
    """The name of every sample that cannot be read, with the reason, in the domain's order.

    The arguments are those of `find_unreadable`.

    >>> from equida.data import array_domain
    >>> len(check_readable(array_domain(np.zeros((3, 2)), name="desk")))
    0
    """
    return named(domain, find_unreadable(domain, deep=deep, advance=advance, turned=turned))


def find_unreadable(
    domain: Domain,
    *,
    deep: bool = False,
    advance: Advance | None = None,
    turned: list[str] | None = None,
    views: int | None = None,
) -> dict[int, str]:
    """The position of every sample that cannot be read, with the reason.

    Args:
        domain: its images are opened; its rows are searched for values that are not finite.
        deep: decode every image; otherwise only its first and last bytes are looked at.
        advance: called with the number of samples done since the last call.
        turned: the files of images are added to it that have an EXIF orientation, which is not
            applied.
        views: how many views of each row are looked at; by default all.

    >>> from equida.data import array_domain
    >>> find_unreadable(array_domain([[0.0, 1.0], [0.0, np.nan]], name="desk"))
    {1: 'holds values that are not finite'}
    """
    starts = range(0, len(domain), _CHUNK)
    chunks = [range(start, min(start + _CHUNK, len(domain))) for start in starts]
    bad: dict[int, str] = {}
    checked = _checked(domain, chunks, deep, turned, views)
    for chunk, found in zip(chunks, checked, strict=True):
        bad.update(found)
        if advance is not None:
            advance(len(chunk))
    return bad


def named(domain: Domain, bad: Mapping[int, str]) -> Unreadable:
    """The samples of a domain at some positions by their names, with the reasons.

    >>> from equida.data import array_domain
    >>> named(array_domain(np.zeros((3, 2)), name="desk"), {1: "holds values that are not finite"})
    [('row 1', 'holds values that are not finite')]
    """
    return [(domain.identity(position), reason) for position, reason in bad.items()]


def drop_samples(domain: DomainT, positions: Collection[int]) -> DomainT:
    """The domain without the samples at some positions.

    Positions tell samples apart that have one name: rows that were computed from one file.

    >>> from equida.data import array_domain
    >>> len(drop_samples(array_domain(np.zeros((3, 2)), name="desk"), [1]))
    2
    """
    kept = np.ones(len(domain), bool)
    kept[list(positions)] = False
    return domain.select(kept)


def without_unreadable(domain: DomainT, bad: Mapping[int, str], *, skip: bool) -> DomainT:
    """The domain without the samples at the positions in `bad`.

    Raises:
        InputError: some are unreadable and `skip` is False, or all of them are.
    """
    if bad and (not skip or len(bad) == len(domain)):
        where = f" under {domain.root}" if isinstance(domain, ImageDomain) else ""
        of_all = counted(len(domain), "file" if where else "row")
        which = f"{domain.name}: {len(bad):,} of {of_all}{where}"
        raise InputError(unreadable_message(which, named(domain, bad), skipped=skip))
    return drop_samples(domain, bad) if bad else domain


def unreadable_message(which: str, bad: Iterable[tuple[str, str]], *, skipped: bool = False) -> str:
    """A message that names every unreadable sample and says what to do.

    Args:
        which: how many of what cannot be read.
        bad: their names and the reasons.
        skipped: whether they are left out already, and none is left.
    """
    named = [f"\n  {name}: {reason}" for name, reason in bad]
    them = "it" if len(named) == 1 else "them"
    choice = "" if skipped else f", or leave {them} out with {SKIP}"
    return f"{which} cannot be read; replace or delete {them}{choice}:{''.join(named)}"


def check_finite(
    domain: ArrayDomain, views: int | None = None, *, origin: str = "", skippable: bool = True
) -> None:
    """Raise InputError where a value in the rows is not finite.

    Args:
        domain: the rows.
        views: how many views of each row are looked at; by default all.
        origin: what the message calls the domain; by default its name.
        skippable: whether such rows could be left out instead.
    """
    several = len(domain.values.shape) == 3
    step = max(1, _ROWS_AT_ONCE // domain.views)
    for start in range(0, len(domain), step):
        given = take_rows(domain.values, np.arange(start, min(start + step, len(domain))))
        flat = _of_views(given, views)
        usable = _usable(flat)
        if not bool(usable.all()):
            row, place = (~usable).nonzero()[0].tolist()
            column = place % given.shape[-1] if several else place
            called = repr(domain.columns[column]) if domain.columns else column
            raise InputError(
                f"{origin or domain.name}: {domain.identity(start + row)} has a value in column"
                f" {called} that {_complaint(flat[row, place], skippable)}"
            )


def _of_views(values: Tensor, views: int | None) -> Tensor:
    """The values of each row in its first views, of all where it is None."""
    return (values[:, :views] if values.ndim == 3 else values).flatten(1)


def _usable(values: Tensor) -> Tensor:
    """Which values are finite, also as float32 and when their squares are added up."""
    return values.to(torch.float32).abs() <= MOST_VALUE


def _complaint(value: Tensor, skippable: bool) -> str:
    if bool(value.isfinite()):
        return f"is too large for float32, {float(value):.3g}; scale the features down"
    choice = f"remove it, or leave it out with {SKIP}" if skippable else "or remove it"
    return f"is not finite; compute it again, {choice}"


def _checked(
    domain: Domain,
    chunks: Sequence[range],
    deep: bool,
    turned: list[str] | None,
    views: int | None,
) -> Iterator[list[tuple[int, str]]]:
    if isinstance(domain, ArrayDomain):
        yield from (_not_finite(domain, chunk, views) for chunk in chunks)
        return
    assert isinstance(domain, ImageDomain)
    root, paths = str(domain.root), domain.paths
    look = check_image if turned is None else partial(check_image, turned=turned)

    def check(chunk: range) -> list[tuple[int, str]]:
        found = []
        for index in chunk:
            file = os.path.join(root, paths[index])
            with at_work.reading(file):
                reason = look(file, deep=deep)
            if reason is not None:
                found.append((index, reason))
        return found

    # Decoding and waiting for a disk or a network both let other threads run.
    workers, at_work = max(8, os.cpu_count() or 1), FilesBeingRead()
    what = f"check of the images of {domain.name}"
    yield from read_ahead(check, chunks, workers, ahead=4 * workers, what=what, at_work=at_work)


def _not_finite(domain: ArrayDomain, chunk: range, views: int | None) -> list[tuple[int, str]]:
    given = _of_views(take_rows(domain.values, np.asarray(chunk)), views)
    wrong = (~_usable(given).all(1)).nonzero().flatten().tolist()
    whole = {row: bool(given[row].isfinite().all()) for row in wrong}
    reasons = {False: "values that are not finite", True: "values that are too large for float32"}
    return [(chunk[row], f"holds {reasons[whole[row]]}") for row in wrong]
