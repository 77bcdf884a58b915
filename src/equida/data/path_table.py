"""Many paths in two buffers, which cost little memory and are sent to a process at once."""

import hashlib
from collections.abc import Iterable, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray


class PathTable(Sequence[str]):
    """A read-only sequence of strings, kept as one block of UTF-8 and the ends of its pieces.

    A list of 150,000 Python strings takes more than twice the memory, and is pickled string by
    string when it is sent to another process. File names that are not UTF-8 survive.

    >>> table = PathTable(["mug/1.jpg", "pen/2.jpg"])
    >>> table[1], len(table), list(table.take([1, 1]))
    ('pen/2.jpg', 2, ['pen/2.jpg', 'pen/2.jpg'])
    """

    def __init__(self, paths: Iterable[str]) -> None:
        pieces = [path.encode("utf-8", "surrogateescape") for path in paths]
        self._text = b"".join(pieces)
        self._bounds = np.zeros(len(pieces) + 1, np.int64)
        np.cumsum([len(piece) for piece in pieces], out=self._bounds[1:])
        self._index: NDArray[np.int64] | None = None

    def take(self, indices: Sequence[int] | NDArray[np.int64]) -> "PathTable":
        """The paths at `indices`, in that order, sharing this table's text."""
        chosen = object.__new__(PathTable)
        chosen._text, chosen._bounds = self._text, self._bounds
        wanted = np.asarray(indices, np.int64)
        chosen._index = wanted if self._index is None else self._index[wanted]
        return chosen

    def digest(self) -> bytes:
        """What two tables of the same paths in the same order share."""
        found = hashlib.blake2b(self._text, digest_size=16)
        found.update(self._bounds.tobytes())
        found.update(b"all" if self._index is None else self._index.tobytes())
        return found.digest()

    def __len__(self) -> int:
        return len(self._bounds) - 1 if self._index is None else len(self._index)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> "PathTable": ...
    def __getitem__(self, index: int | slice) -> "str | PathTable":
        if isinstance(index, slice):
            return self.take(np.arange(len(self))[index])
        if not -len(self) <= index < len(self):
            raise IndexError(f"path {index} of {len(self)}")
        row = index % len(self) if self._index is None else int(self._index[index])
        start, end = int(self._bounds[row]), int(self._bounds[row + 1])
        return self._text[start:end].decode("utf-8", "surrogateescape")

    def __repr__(self) -> str:
        return f"PathTable({len(self)} paths)"
