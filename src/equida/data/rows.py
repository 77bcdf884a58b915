"""Rows of arrays that may not fit into memory: in a file, or chosen from another array."""

import abc
import warnings
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


class Rows(abc.ABC):
    """An array that is read a few rows at a time; `numpy.asarray` reads the whole of it."""

    shape: tuple[int, ...]

    @abc.abstractmethod
    def take(self, indices: NDArray[np.int64]) -> Tensor:
        """A copy of the rows at `indices`."""

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(
        self, dtype: np.dtype[Any] | None = None, copy: bool | None = None
    ) -> NDArray[Any]:
        return np.asarray(self.take(np.arange(len(self))).numpy(), dtype)


Values = NDArray[Any] | Tensor | Rows


def take_rows(values: Values, indices: NDArray[np.int64]) -> Tensor:
    """A copy of the rows of `values` at `indices`, as a tensor of the same type."""
    if isinstance(values, Rows):
        return values.take(indices)
    if isinstance(values, Tensor):
        return values[torch.from_numpy(indices).to(values.device)]
    return torch.from_numpy(np.ascontiguousarray(values[indices]))


def as_table(values: Values) -> tuple[Tensor, Tensor | None] | None:
    """`values` as a tensor that shares their memory, and which of its rows they are.

    The second is None where they are all rows in order. The result is None where there is no such
    tensor: on another device, or in a layout that torch lacks. Taking rows from it costs a third of
    `take_rows`.
    """
    if isinstance(values, RowSelection):
        base = as_table(values.base)
        return None if base is None else (base[0], torch.from_numpy(values.indices))
    if isinstance(values, StoredRows):
        return as_table(values.opened())
    if isinstance(values, np.ndarray):
        try:
            with warnings.catch_warnings():
                # torch warns of memory-mapped arrays, which are read-only; nothing writes here.
                warnings.simplefilter("ignore")
                return torch.from_numpy(values), None
        except (TypeError, ValueError):
            return None
    if isinstance(values, Tensor) and values.device.type == "cpu":
        return values, None
    return None


class RowSelection(Rows):
    """Some rows of another array; a selection from a selection refers to the array itself."""

    def __init__(self, values: Values, indices: NDArray[np.int64]) -> None:
        self.base, self.indices = values, indices
        self.shape = (len(indices), *values.shape[1:])
        if isinstance(values, RowSelection):
            self.base, self.indices = values.base, values.indices[indices]

    def take(self, indices: NDArray[np.int64]) -> Tensor:
        return take_rows(self.base, self.indices[indices])


class StoredRows(Rows):
    """One array in a file; each process opens it when it first reads from it."""

    def __init__(self, file: Path, key: str, shape: tuple[int, ...]) -> None:
        self.file, self.key, self.shape = file, key, shape
        self._opened: NDArray[Any] | Tensor | None = None

    @abc.abstractmethod
    def _open(self) -> NDArray[Any] | Tensor: ...

    def opened(self) -> NDArray[Any] | Tensor:
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    def take(self, indices: NDArray[np.int64]) -> Tensor:
        return take_rows(self.opened(), indices)

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_opened": None}


class SafetensorsRows(StoredRows):
    """A tensor in a .safetensors file, memory-mapped."""

    def _open(self) -> Tensor:
        from safetensors import safe_open

        with safe_open(self.file, framework="pt") as stored:
            tensor: Tensor = stored.get_tensor(self.key)
        return tensor


class NpzRows(StoredRows):
    """An array in an .npz file: memory-mapped, or read as a whole where it is compressed."""

    def _open(self) -> NDArray[Any]:
        with zipfile.ZipFile(self.file) as archive:
            member = archive.getinfo(f"{self.key}.npy")
            with archive.open(member) as stream:
                if member.compress_type != zipfile.ZIP_STORED:
                    return np.lib.format.read_array(stream, allow_pickle=False)
                shape, fortran, dtype = npy_header(stream)
                start = stream.tell()
        with self.file.open("rb") as raw:
            # The local header of a zip member has 30 bytes; the last 4 are the lengths of the name
            # and of the extra field, which follow it.
            raw.seek(member.header_offset + 26)
            start += member.header_offset + 30 + sum(np.frombuffer(raw.read(4), "<u2").tolist())
        return np.memmap(self.file, dtype, "r", start, shape, "F" if fortran else "C")


def npy_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether in Fortran order, and type of the array at the start of `stream`."""
    if np.lib.format.read_magic(stream) == (1, 0):
        return np.lib.format.read_array_header_1_0(stream)
    return np.lib.format.read_array_header_2_0(stream)
