"""Names for things that can be chosen: methods, recipes, data sets."""

import difflib
from collections.abc import Iterator
from typing import Generic, TypeVar

from equida.errors import InputError

T = TypeVar("T")


class Registry(Generic[T]):
    """A dictionary by name whose failed look-up says what was meant.

    >>> methods = Registry[int]("method")
    >>> methods.add("nsm", 1)
    1
    >>> methods["nms"]
    Traceback (most recent call last):
    equida.errors.InputError: method 'nms' does not exist; did you mean 'nsm'? Known: nsm
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, T] = {}

    def add(self, name: str, entry: T) -> T:
        if name in self._entries:
            raise ValueError(f"{self.kind} {name!r} is registered twice")
        self._entries[name] = entry
        return entry

    def __getitem__(self, name: str) -> T:
        if name in self._entries:
            return self._entries[name]
        close = difflib.get_close_matches(name.lower(), self._entries, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else "."
        known = ", ".join(self._entries)
        raise InputError(f"{self.kind} {name!r} does not exist{hint} Known: {known}")

    def get(self, name: str | None) -> T | None:
        """The entry called `name`, or None."""
        return None if name is None else self._entries.get(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries
