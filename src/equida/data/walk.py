"""The one way in which folders of images are searched.

Names that start with a dot, and files and folders that systems and archives leave behind, are
passed over; an image is known by its extension; links to folders are followed, except those that
lead back to a folder they are inside of, and those behind three other links: folders that link to
each other would be walked through in every order.
"""

import difflib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from equida.data.images import is_image_name
from equida.errors import InputError

# What systems and archives leave behind; `image_list` holds the lists that come with a data set.
_LITTER = frozenset(("thumbs.db", "desktop.ini", "__macosx", "image_list", "lost+found"))

MOST_LINKS = 3
"""How many links to folders a path may go through."""

_Place = tuple[int, int]  # device and inode: what two paths to one folder share


@dataclass
class _Listing:
    """What one folder holds directly."""

    images: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    folders: dict[str, "FolderTree"] = field(default_factory=dict)
    set_aside: dict[str, "FolderTree"] = field(default_factory=dict)
    loops: list[str] = field(default_factory=list)
    error: str = ""


class FolderTree:
    """A folder and what is below it; each folder is listed once, when it is first looked into.

    So several questions about one folder (which domains are below it, which classes a domain has,
    whether the data are the same as before) cost one walk, and no deeper one than they need.

    Args:
        path: an existing folder.

    Raises:
        InputError: by every attribute that needs a listing, where the folder cannot be listed.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        resolved = self.path.resolve()
        self._places = tuple(map(_place, (resolved, *resolved.parents)))
        self._links = 0

    @property
    def images(self) -> list[str]:
        """The names of the image files directly inside, sorted."""
        return self._listed().images

    @property
    def others(self) -> list[str]:
        """The names of the other files directly inside, sorted."""
        return self._listed().others

    @property
    def folders(self) -> dict[str, "FolderTree"]:
        """The folders directly inside by name, sorted."""
        return self._listed().folders

    @property
    def loops(self) -> list[str]:
        """The names of links directly inside that are not followed."""
        return self._listed().loops

    @property
    def listable(self) -> bool:
        """Whether this folder can be listed."""
        return not self._listing.error

    def inner(self, name: str) -> "FolderTree | None":
        """The folder directly inside that is called `name`, also one that is passed over."""
        listing = self._listed()
        return listing.folders.get(name) or listing.set_aside.get(name)

    def walk(self, *, skip_forbidden: bool = False) -> Iterator[tuple[str, "FolderTree"]]:
        """This folder and all folders below it, each before its own, in order of their names.

        Args:
            skip_forbidden: pass over folders that cannot be listed, instead of raising an error.

        Yields:
            The path from this folder with "/" at its end ("" for this folder itself), and the
            folder.
        """
        waiting = [("", self)]
        while waiting:
            prefix, folder = waiting.pop()
            if skip_forbidden and not folder.listable:
                continue
            yield prefix, folder
            inner = reversed(folder.folders.items())
            waiting.extend((f"{prefix}{name}/", tree) for name, tree in inner)

    def __repr__(self) -> str:
        return f"FolderTree({str(self.path)!r})"

    def _listed(self) -> _Listing:
        if self._listing.error:
            raise InputError(self._listing.error)
        return self._listing

    @cached_property
    def _listing(self) -> _Listing:
        listing = _Listing()
        try:
            with os.scandir(self.path) as found:
                for entry in sorted(found, key=lambda entry: entry.name):
                    self._sort_in(entry, listing)
        except PermissionError:
            return _Listing(error=f"{self.path}: no permission to list this folder")
        except OSError as error:
            return _Listing(error=f"{self.path}: {os.strerror(error.errno or 0).lower()}")
        return listing

    def _sort_in(self, entry: os.DirEntry[str], listing: _Listing) -> None:
        name = entry.name
        if name.startswith("."):
            return
        litter = name.lower() in _LITTER
        if _is_folder(entry):
            place = _place(entry.path)
            links = self._links + entry.is_symlink()
            if place in self._places or links > MOST_LINKS:
                listing.loops.append(name)
            else:
                child = self._child(name, place, links)
                (listing.set_aside if litter else listing.folders)[name] = child
        elif not litter:
            (listing.images if is_image_name(name) else listing.others).append(name)

    def _child(self, name: str, place: _Place, links: int) -> "FolderTree":
        child = object.__new__(FolderTree)
        child.path, child._places = self.path / name, (*self._places, place)
        child._links = links
        return child


def folder_tree(folder: "str | Path | FolderTree") -> FolderTree:
    """The tree of a folder; a tree is given back as it is.

    Raises:
        InputError: there is no such folder.
    """
    if isinstance(folder, FolderTree):
        return folder
    path = existing(folder)
    if not path.is_dir():
        raise InputError(f"{folder} is a file; expected a folder")
    return FolderTree(path)


def find_images(paths: Iterable[Path]) -> Iterator[Path]:
    """The files among `paths`, and the images at any depth below the folders among them."""
    for path in paths:
        if not path.is_dir():
            yield path
            continue
        for _, folder in FolderTree(path).walk(skip_forbidden=True):
            yield from (folder.path / name for name in folder.images)


def existing(path: str | Path) -> Path:
    """`path`, or an error that names the part that does not exist and what was likely meant."""
    path = Path(os.path.expanduser(path))  # a user that there is not stays as it is
    if os.path.exists(path):
        return path
    part = path
    while not os.path.exists(part.parent):
        part = part.parent
    try:
        near = difflib.get_close_matches(part.name, os.listdir(part.parent), n=1)
    except OSError:
        near = []
    meant = f"; did you mean {part.parent / near[0]}?" if near else f"; {part.parent} exists"
    raise InputError(f"{path} does not exist{meant}")


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link that leads to itself
        return False


def _place(folder: str | Path) -> _Place:
    status = os.stat(folder)
    return status.st_dev, status.st_ino
