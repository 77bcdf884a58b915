"""Names for things that can be chosen: methods, recipes, data sets."""

from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from equida import plugins
from equida.errors import InputError, suggestion

T = TypeVar("T")


class Registry(Generic[T]):
    """A dictionary by name whose failed look-up says what was meant.

    Names that installed plug-ins offer are known too; a plug-in is imported when its name is looked
    up. Unless `code` is False, so is `package.module:attribute`, where a flag or an argument has
    named it.

    Args:
        kind: what messages call an entry.
        group: the entry points of plug-ins; "": there are none.
        adopt: makes an entry of the object that a plug-in offers under a name.
        code: whether `package.module:attribute` is taken.
        also: what else may be given, for the message of a failed look-up.

    >>> methods = Registry[int]("method")
    >>> methods.add("nsm", 1)
    1
    >>> methods["nms"]
    Traceback (most recent call last):
    equida.errors.InputError: method 'nms' does not exist; did you mean 'nsm'? Known: nsm
    """

    def __init__(
        self,
        kind: str,
        group: str = "",
        adopt: Callable[[str, Any], T] | None = None,
        *,
        code: bool = True,
        also: str = "package.module:Class, code of your own",
    ) -> None:
        self.kind = kind
        self.group = group
        self._adopt = adopt
        self._code = code
        self._also = also
        self._entries: dict[str, T] = {}
        self._given: dict[str, Any] = {}

    def add(self, name: str, entry: T, *, replace: bool = False) -> T:
        if name in self._entries and not replace:
            raise ValueError(f"{self.kind} {name!r} is registered twice")
        self._entries[name] = entry
        return entry

    def give(self, name: str, found: Any) -> None:
        """Know an object from outside by a name that somebody has permitted."""
        self._given[name] = found

    def __getitem__(self, name: str) -> T:
        if name in self._entries:
            return self._entries[name]
        if self._adopt is not None and self._code and ":" in name:
            plugins.require_permission(self.kind, name)
            if name in self._given:
                return self._adopt(name, self._given[name])
            return self._adopt(name, plugins.load_object(self.kind, name))
        if self._adopt is not None and name in self.offers:
            entry = self._adopt(name, plugins.load_offer(self.kind, self.offers[name]))
            return self._entries.setdefault(name, entry)
        also = f" (or {self._also})" if self._adopt is not None else ""
        raise InputError(f"{self.kind} {name!r} does not exist{suggestion(name, self)}{also}")

    def get(self, name: str | None) -> T | None:
        """The entry called `name`; None where there is none, or where it cannot be had here."""
        try:
            return None if name is None else self[name]
        except InputError:
            return None

    @property
    def offers(self) -> dict[str, plugins.Offer]:
        """What installed plug-ins offer by names that are not taken."""
        return plugins.offers(self.group) if self.group else {}

    def registered(self) -> dict[str, T]:
        """What was registered so far, with the plug-ins that have been imported."""
        return dict(self._entries)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._entries, *self.offers]))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, name: object) -> bool:
        return name in self._entries or name in self.offers
