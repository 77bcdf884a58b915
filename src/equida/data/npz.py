"""Arrays in an .npz file, each checked against the place that it has in the file."""

import contextlib
import math
import struct
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from equida.errors import InputError
from equida.files import check_regular

_ENDING = ".npy"
# Deflate cannot do better, so that a longer array would never come out of so few bytes.
_LARGEST_RATIO = 1100


@dataclass(frozen=True)
class Header:
    """What the first bytes of an array say of it."""

    shape: tuple[int, ...]
    fortran: bool
    """Whether the first index varies fastest."""
    dtype: np.dtype[Any]
    length: int
    """The length of the header itself, in bytes."""


class Npz:
    """The arrays of an .npz file that is open; `open_npz` gives one."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self.path, self._archive = path, archive
        names = [name for name in archive.namelist() if name.endswith(_ENDING)]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"{path} holds two arrays called {twice!r}; make it again")
        self.keys = [name.removesuffix(_ENDING) for name in names]

    def header(self, key: str) -> Header:
        """Shape and type of an array, once its length and its place in the file are known to fit.

        Raises:
            InputError: the array is not as long as its header says, or other data overlap it.
        """
        member = self._archive.getinfo(key + _ENDING)
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise InputError(f"{self.path}: {key} is compressed in a way that numpy does not use")
        # Before it is opened: newer versions of zipfile refuse overlaps in words of their own.
        self._check_place(member, key)
        with self._archive.open(member) as stream:
            header = _read_header(stream)
        if header.dtype.hasobject:
            raise ValueError(f"{key} holds {header.dtype}")
        expected = header.length + math.prod(header.shape) * header.dtype.itemsize
        if min(header.shape, default=0) < 0 or member.file_size != expected:
            raise InputError(
                f"{self.path}: {key} has {member.file_size} bytes, but its header says"
                f" {header.dtype} of shape {header.shape}, {expected} bytes; make the file again"
            )
        room = _LARGEST_RATIO * member.compress_size + 1000
        stored = member.compress_type == zipfile.ZIP_STORED
        if member.file_size > room or (stored and member.file_size != member.compress_size):
            raise InputError(
                f"{self.path}: {key} cannot have {member.file_size} bytes in the"
                f" {member.compress_size} that it takes in the file; make the file again"
            )
        return header

    def _check_place(self, member: zipfile.ZipInfo, key: str) -> None:
        """Refuse a member whose bytes belong to another one, or to the directory, as well."""
        offsets = [other.header_offset for other in self._archive.infolist()]
        after = [offset for offset in offsets if offset > member.header_offset]
        end = min(after, default=self._archive.start_dir)
        start = self._start(member)
        if offsets.count(member.header_offset) > 1 or start + member.compress_size > end:
            raise InputError(f"{self.path}: {key} overlaps other data; make the file again")

    def read(self, key: str) -> NDArray[Any]:
        """The whole array, whose checksum is compared; pickled objects are refused."""
        self.header(key)
        with self._archive.open(key + _ENDING) as stream:
            array: NDArray[Any] = np.lib.format.read_array(stream, allow_pickle=False)
            stream.read()  # the checksum is compared where the data end
        return array

    def mapped(self, key: str) -> NDArray[Any]:
        """The array, memory-mapped; it is read as a whole where it is compressed."""
        header, member = self.header(key), self._archive.getinfo(key + _ENDING)
        if member.compress_type != zipfile.ZIP_STORED or 0 in header.shape:
            return self.read(key)
        start = self._start(member) + header.length
        if header.fortran:
            return np.memmap(self.path, header.dtype, "r", start, header.shape, "F")
        return np.memmap(self.path, header.dtype, "r", start, header.shape, "C")

    def _start(self, member: zipfile.ZipInfo) -> int:
        """Where the data of a member begin."""
        with self.path.open("rb") as raw:
            # The local header of a zip member has 30 bytes; the last 4 are the lengths of the name
            # and of the extra field, which follow it.
            raw.seek(member.header_offset + 26)
            name, extra = struct.unpack("<HH", raw.read(4))
        return int(member.header_offset + 30 + name + extra)


@contextlib.contextmanager
def open_npz(path: Path) -> Iterator[Npz]:
    """The arrays of an .npz file.

    Raises:
        InputError: the file, or whatever is read from it in the block, is damaged.
    """
    try:
        check_regular(path)
        with zipfile.ZipFile(path) as archive:
            yield Npz(path, archive)
    except (InputError, MemoryError):
        raise
    except Exception as error:  # damaged bytes make the readers raise nearly anything
        reason = str(error) or type(error).__name__
        raise InputError(
            f"{path} cannot be read as .npz: {reason}; only arrays of numbers and text are read,"
            " never pickled objects"
        ) from None


def npz_keys(path: Path) -> set[str]:
    """The names of the arrays in an .npz file; none where it cannot be read."""
    try:
        with open_npz(path) as stored:
            return set(stored.keys)
    except InputError:
        return set()


def _read_header(stream: IO[bytes]) -> Header:
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        read = np.lib.format.read_array_header_1_0(stream)
    elif version in ((2, 0), (3, 0)):
        read = np.lib.format.read_array_header_2_0(stream)
    else:
        raise ValueError(f"version {version} of the .npy format is not known")
    return Header(*read, length=stream.tell())
