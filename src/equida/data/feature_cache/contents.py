"""The images of some domains as one sequence, each identified by the SHA-256 of its bytes.

Reading every byte only to find that nothing has changed would be slow. So once a file was read, its
size and time of change stand for its bytes; these are remembered in FILE.seen beside the feature
file, which can be deleted at any time.
"""

import hashlib
import os
import stat
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from equida.data.domain import ImageDomain
from equida.data.feature_cache.file import RowFacts
from equida.data.read_ahead import FilesBeingRead, read_ahead
from equida.files import write_atomic, write_errors

_CHUNK = 256
_AHEAD = 4
_STAMP = 16
_SEEN = np.dtype([("stamp", f"V{_STAMP}"), ("content", "V32")])


class Meter(Protocol):
    """A display of progress, such as a bar."""

    def start(self, label: str, total: int) -> None: ...
    def advance(self, count: int) -> None: ...


class Contents:
    """All images of `domains`, one after another, with the digests of their bytes.

    Args:
        path: the feature file; digests are remembered beside it.
        folder: where digests are kept until the feature file is written.
        domains: the domains of the images.
        workers: how many threads read files.
        meter: shows the progress.
    """

    def __init__(
        self,
        path: Path,
        folder: Path,
        domains: Sequence[ImageDomain],
        workers: int,
        meter: Meter,
    ) -> None:
        self.domains = domains
        self._sidecar, self._draft = path.with_name(f"{path.name}.seen"), folder / "seen"
        self._ends = np.cumsum([len(domain) for domain in domains])
        self._contents = np.empty((len(self), 32), np.uint8)
        remembered = _load(self._sidecar)
        seen = {**remembered, **_load(self._draft)}
        chunks = [
            range(start, min(start + _CHUNK, len(self))) for start in range(0, len(self), _CHUNK)
        ]
        stamps: dict[bytes, bytes] = {}
        meter.start("reading", len(self))
        self._at_work = FilesBeingRead()
        pieces = read_ahead(
            lambda chunk: self._read(chunk, seen),
            chunks,
            workers + 1,
            ahead=_AHEAD * (workers + 1),
            what="digest of an image",
            at_work=self._at_work,
        )
        for chunk, found in zip(chunks, pieces, strict=True):
            for number, (stamp, content) in zip(chunk, found, strict=True):
                self._contents[number] = np.frombuffer(content, np.uint8)
                if stamp:
                    stamps[stamp] = content
            meter.advance(len(chunk))
        self._changed = stamps.keys() != remembered.keys()
        if self._changed:
            _save(self._draft, stamps)

    def __len__(self) -> int:
        return int(self._ends[-1])

    def owner(self, number: int) -> int:
        """The number of the domain that image `number` belongs to."""
        return int(np.searchsorted(self._ends, number, side="right"))

    def sample(self, number: int) -> tuple[ImageDomain, int]:
        """The domain of image `number`, and the image's position in it."""
        owner = self.owner(number)
        return self.domains[owner], number - int(self._ends[owner]) + len(self.domains[owner])

    def path(self, number: int) -> Path:
        domain, index = self.sample(number)
        return domain.path(index)

    def of(self, number: int) -> bytes:
        """The digest of image `number`."""
        content: bytes = self._contents[number].tobytes()
        return content

    def first_of_each(self, known: Collection[bytes]) -> list[int]:
        """One image of each content that is not known, in order."""
        todo, met = [], set(known)
        for number in range(len(self)):
            content = self.of(number)
            if content not in met:
                met.add(content)
                todo.append(number)
        return todo

    def names_of(
        self, reasons: Mapping[bytes, str], others: Collection[bytes]
    ) -> tuple[tuple[str, str], ...]:
        """Every image whose content is in `reasons` or `others`: its file and the reason."""
        if not reasons and not others:
            return ()
        found = ((number, self.of(number)) for number in range(len(self)))
        return tuple(
            (str(self.path(number)), reasons.get(content, "was unreadable before"))
            for number, content in found
            if content in reasons or content in others
        )

    def rows(self, kept: NDArray[np.int64], classes: tuple[str, ...]) -> RowFacts:
        """What the feature file says of the images `kept`."""
        owners = np.searchsorted(self._ends, kept, side="right").astype(np.int64)
        labels = np.concatenate(
            [
                np.full(len(domain), -1, np.int64) if domain.labels is None else domain.labels
                for domain in self.domains
            ]
        )
        samples = (self.sample(int(number)) for number in kept)
        return RowFacts(
            domains=tuple(domain.name for domain in self.domains),
            classes=classes,
            paths=[domain.identity(index) for domain, index in samples],
            labels=labels[kept],
            owners=owners,
            content=self._contents[kept],
        )

    def remember(self) -> None:
        """Put the digests beside the feature file, once that is written."""
        if self._changed:
            with write_errors(self._sidecar.parent):
                self._draft.replace(self._sidecar)

    def _read(self, chunk: range, seen: Mapping[bytes, bytes]) -> list[tuple[bytes, bytes]]:
        found = []
        for number in chunk:
            path = self.path(number)
            with self._at_work.reading(path):
                found.append(_stamped(path, seen))
        return found


def _stamped(path: Path, seen: Mapping[bytes, bytes]) -> tuple[bytes, bytes]:
    """What stands for a file's bytes, and the digest of the bytes.

    For a file that cannot be opened they are b"" and a digest of its name; decoding it will tell
    the reason.
    """
    name = os.fsencode(os.path.abspath(path))
    try:
        status = os.stat(path)
        described = b"%d %d " % (status.st_size, status.st_mtime_ns) + name
        stamp = hashlib.blake2b(described, digest_size=_STAMP).digest()
        if stamp in seen:
            return stamp, seen[stamp]
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path} is not a file")
        with path.open("rb") as file:
            return stamp, hashlib.file_digest(file, "sha256").digest()
    except OSError:
        return b"", hashlib.sha256(b"cannot be opened: " + name).digest()


def _load(path: Path) -> dict[bytes, bytes]:
    try:
        stored = np.fromfile(path, _SEEN)
    except OSError:
        return {}
    return {
        stamp.tobytes(): content.tobytes()
        for stamp, content in zip(stored["stamp"], stored["content"], strict=True)
    }


def _save(path: Path, stamps: Mapping[bytes, bytes]) -> None:
    write_atomic(path, b"".join(stamp + content for stamp, content in stamps.items()))
