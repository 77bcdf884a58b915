"""Rows of arrays that may not fit into memory: in a file, or chosen from another array."""

import abc
import contextlib
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from equida.data.npz import open_npz
from equida.errors import InputError
from equida.files import check_regular

Dtype = np.dtype[Any] | torch.dtype


class Rows(abc.ABC):
    """An array that is read a few rows at a time; `numpy.asarray` reads the whole of it."""

    shape: tuple[int, ...]
    dtype: Dtype

    @abc.abstractmethod
    def take(self, indices: NDArray[np.int64]) -> Tensor:
        """A copy of the rows at `indices`."""

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(
        self, dtype: np.dtype[Any] | None = None, copy: bool | None = None
    ) -> NDArray[Any]:
        whole = self.take(np.arange(len(self)))
        # numpy has no bfloat16.
        return np.asarray(
            (whole.float() if whole.dtype == torch.bfloat16 else whole).numpy(), dtype
        )


Values = NDArray[Any] | Tensor | Rows


def check_values(values: Values, origin: str) -> None:
    """Refuse an array that cannot be the rows of a domain; every domain of rows goes through this.

    Args:
        values: what would be the rows.
        origin: where they come from, for the error message.

    Raises:
        InputError: it has too few or too many axes, its rows are empty, or it does not hold real
            numbers.
    """
    shape, dtype = tuple(values.shape), values.dtype
    if len(shape) not in (2, 3, 4):
        raise InputError(
            f"{origin}: values have shape {shape}; expected (rows, features), (rows, views,"
            " features) or (rows, channels, height, width)"
        )
    if 0 in shape[1:]:
        raise InputError(
            f"{origin}: values have shape {shape}, so each row is empty; expected at least one"
            " feature"
        )
    real = dtype.kind in "fiub" if isinstance(dtype, np.dtype) else not dtype.is_complex
    if not real:
        raise InputError(f"{origin}: values are {dtype}; expected real numbers")


def take_rows(values: Values, indices: NDArray[np.int64]) -> Tensor:
    """A copy of the rows of `values` at `indices`, as a tensor of the same type."""
    if isinstance(values, Rows):
        return values.take(indices)
    if isinstance(values, Tensor):
        return values[torch.from_numpy(indices).to(values.device)]
    return torch.from_numpy(_for_torch(values[indices]))


def _for_torch(rows: NDArray[Any]) -> NDArray[Any]:
    """The rows in a layout that torch has: in the byte order of the machine, of at most 64 bits."""
    extended = rows.dtype.kind == "f" and rows.dtype.itemsize > 8
    dtype = np.dtype(np.float64) if extended else rows.dtype.newbyteorder("=")
    return np.ascontiguousarray(rows, dtype)


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
        self.base, self.indices, self.dtype = values, indices, values.dtype
        self.shape = (len(indices), *values.shape[1:])
        if isinstance(values, RowSelection):
            self.base, self.indices = values.base, values.indices[indices]

    def take(self, indices: NDArray[np.int64]) -> Tensor:
        return take_rows(self.base, self.indices[indices])


class StoredRows(Rows):
    """One array in a file; each process opens it when it first reads from it."""

    def __init__(self, file: Path, key: str, shape: tuple[int, ...], dtype: Dtype) -> None:
        self.file, self.key, self.shape, self.dtype = file, key, shape, dtype
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


SAFETENSORS_DTYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
    "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8,
    "U64": torch.uint64, "U32": torch.uint32, "U16": torch.uint16, "U8": torch.uint8,
    "BOOL": torch.bool,
}  # fmt: skip
"""The types of .safetensors that hold real numbers."""


class SafetensorsRows(StoredRows):
    """A tensor in a .safetensors file, memory-mapped."""

    def _open(self) -> Tensor:
        with open_safetensors(self.file, "pt") as stored:
            tensor: Tensor = stored.get_tensor(self.key)
        return tensor


@contextlib.contextmanager
def open_safetensors(path: Path, framework: str = "np") -> Iterator[Any]:
    """The tensors of a .safetensors file.

    Raises:
        InputError: the file, or whatever is read from it in the block, is damaged.
    """
    from safetensors import SafetensorError, safe_open

    check_regular(path)
    try:
        with safe_open(path, framework) as stored:
            yield stored
    except InputError:
        raise
    except (SafetensorError, OSError, ValueError, TypeError, AttributeError) as error:
        # numpy lacks some types of safetensors, and says so in different ways.
        raise InputError(f"{path} is damaged: {error}; make it again") from None


class NpzRows(StoredRows):
    """An array in an .npz file: memory-mapped, or read as a whole where it is compressed."""

    def _open(self) -> NDArray[Any]:
        with open_npz(self.file) as stored:
            return stored.mapped(self.key)
