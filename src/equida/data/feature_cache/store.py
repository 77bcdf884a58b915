"""The store of features that commands share: by network, preprocessing and image content.

Each call that computes features leaves them in one file that is never changed: so processes need no
lock to read, and the least recently used files can be removed when all are together too large. The
store only saves time: whatever goes wrong with it, features are computed instead.
"""

import contextlib
import hashlib
import json
import logging
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equida.data.feature_cache.file import FeatureSettings
from equida.errors import InputError, counted
from equida.files import locked, open_atomic

LOG = logging.getLogger(__name__)

FORMAT = 1
DEFAULT_LIMIT = 5 * 10**9
UNITS = {"": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_DIGEST = 32


@dataclass(frozen=True)
class FeatureStore:
    """A folder of stored features, and how large it may become."""

    folder: Path
    limit: int = DEFAULT_LIMIT
    """In bytes; 0 stores nothing."""

    @classmethod
    def default(cls) -> "FeatureStore":
        """The user's store: in EQUIDA_CACHE, or where this system keeps caches.

        EQUIDA_CACHE_SIZE is its limit, such as 500MB; 5 GB by default, and 0 for none.
        """
        place = os.environ.get("EQUIDA_CACHE")
        folder = Path(place).expanduser() if place else _system_caches() / "equida"
        return cls(folder / "features", _size(os.environ.get("EQUIDA_CACHE_SIZE", "")))

    def engines(self, settings: FeatureSettings, batch_size: int) -> list[str]:
        """What has computed the features that are stored, with versions; "" where nobody knows."""
        return sorted(set(map(_engine, self._files(settings, batch_size))))

    def get(
        self,
        settings: FeatureSettings,
        batch_size: int,
        contents: Sequence[bytes],
        engine: str = "",
    ) -> dict[bytes, NDArray[Any]]:
        """The stored features of some images, by the digest of their bytes."""
        found: dict[bytes, NDArray[Any]] = {}
        wanted = set(contents)
        for file in self._files(settings, batch_size):
            if _engine(file) != engine:
                continue
            if not wanted:
                break
            with contextlib.suppress(OSError, ValueError):  # removed by another, or damaged
                used = self._read(file, settings, wanted)
                if used:
                    os.utime(file)
                found |= used
                wanted -= used.keys()
        return found

    def put(
        self,
        settings: FeatureSettings,
        batch_size: int,
        contents: Sequence[bytes],
        features: NDArray[Any],
        engine: str = "",
    ) -> None:
        """Store features; then remove the least recently used ones above the limit."""
        records = _record(settings)
        size = len(contents) * records.itemsize
        if size > self.limit > 0:
            LOG.warning(
                "features are not kept for other commands: those of %s take %.1f MB, and"
                " EQUIDA_CACHE_SIZE allows %.1f MB",
                counted(len(contents), "image"),
                size / 1e6,
                self.limit / 1e6,
            )
        if not 0 < size <= self.limit:
            return
        rows = np.empty(len(contents), records)
        rows["content"] = np.frombuffer(b"".join(contents), np.uint8).reshape(-1, _DIGEST)
        rows["features"] = features
        folder = self._folder(settings, batch_size)
        name = hashlib.sha256(rows["content"].tobytes()).hexdigest()[:32]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            note = folder / "settings.json"
            if not note.exists():
                with open_atomic(note) as file:
                    file.write(json.dumps(_described(settings, batch_size)).encode())
            end = f".{engine.replace(' ', '-')}.rows" if engine else ".rows"
            with locked(folder, wait=True), open_atomic(folder / f"{name}{end}") as file:
                file.write(rows.tobytes())
            self._shrink()
        except (OSError, InputError) as error:
            said = getattr(error, "strerror", None)
            LOG.warning(
                "features are not kept for other commands (%s); set EQUIDA_CACHE to a folder that"
                " can be written, or use --no-cache",
                f"{said}: {error.filename}" if isinstance(error, OSError) and said else error,
            )

    def size(self) -> tuple[int, int]:
        """How many bytes are stored, and in how many files."""
        sizes = [status.st_size for _, status in self._listed()]
        return sum(sizes), len(sizes)

    def summary(self) -> str:
        """Where it is and how full, in words."""
        used, files = self.size()
        held = f"{used / 1e6:,.1f} MB in {counted(files, 'file')}"
        return f"{self.folder}: {held}, of {self.limit / 1e6:,.0f} MB"

    def clear(self) -> int:
        """Remove everything, and return how many bytes it took.

        Raises:
            InputError: something is left; what can be removed is removed nevertheless.
        """
        freed = left = 0
        refused: list[OSError] = []
        for file, status in self._listed(refused):
            try:
                file.unlink()
                freed += status.st_size
            except FileNotFoundError:  # removed by another
                pass
            except OSError as error:
                refused.append(error)
                left += 1
        if refused:
            seen = counted(left, "file") if left else "some files"
            raise InputError(
                f"{self.folder}: {seen} could not be removed ({refused[0].strerror}:"
                f" {refused[0].filename}), {freed / 1e6:,.1f} MB were; get permission to write"
                " there, or set EQUIDA_CACHE to another folder"
            )
        return freed

    def _shrink(self) -> None:
        listed = sorted(self._listed(), key=lambda pair: -pair[1].st_mtime)
        total = 0
        for file, status in listed:
            total += status.st_size
            if total > self.limit:
                file.unlink(missing_ok=True)

    def _listed(self, refused: list[OSError] | None = None) -> list[tuple[Path, os.stat_result]]:
        """The files of the store; folders that cannot be looked into are added to `refused`."""
        found = []
        folders = _inside(self.folder, refused)
        for file in (file for folder in folders for file in _inside(folder, refused)):
            with contextlib.suppress(OSError):
                if file.suffix == ".rows":
                    found.append((file, file.stat()))
        return found

    def _folder(self, settings: FeatureSettings, batch_size: int) -> Path:
        line = json.dumps(_described(settings, batch_size), sort_keys=True)
        return self.folder / hashlib.sha256(line.encode()).hexdigest()[:32]

    def _files(self, settings: FeatureSettings, batch_size: int) -> list[Path]:
        return sorted(self._folder(settings, batch_size).glob("*.rows"))

    @staticmethod
    def _read(file: Path, settings: FeatureSettings, wanted: set[bytes]) -> dict[bytes, Any]:
        records = _record(settings)
        if not file.stat().st_size or file.stat().st_size % records.itemsize:
            raise ValueError(f"{file} is cut short")
        rows = np.memmap(file, records, "r")
        digests = [digest.tobytes() for digest in np.ascontiguousarray(rows["content"])]
        return {
            digest: np.array(rows["features"][number])
            for number, digest in enumerate(digests)
            if digest in wanted
        }


def _inside(folder: Path, refused: list[OSError] | None) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        if refused is not None:
            refused.append(error)
        return []


def _engine(file: Path) -> str:
    """The engine that a file of stored features names.

    >>> _engine(Path("0a1b.onnxruntime-1.20.1.rows")), _engine(Path("0a1b.rows"))
    ('onnxruntime 1.20.1', '')
    """
    _, _, rest = file.name.partition(".")
    return rest.removesuffix("rows").removesuffix(".").replace("-", " ", 1)


def _described(settings: FeatureSettings, batch_size: int) -> dict[str, Any]:
    """What stored features depend on; the batch size decides their last bits."""
    return {"format": FORMAT, **asdict(settings), "batch_size": batch_size}


def _record(settings: FeatureSettings) -> np.dtype[Any]:
    return np.dtype(
        [("content", np.uint8, (_DIGEST,)), ("features", settings.dtype, settings.row_shape)]
    )


def _system_caches() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


def _size(text: str) -> int:
    """The number of bytes that a text means.

    >>> _size("500MB"), _size("0"), _size("")
    (500000000, 0, 5000000000)
    """
    if not text:
        return DEFAULT_LIMIT
    plain = text.strip().upper()
    number = plain.rstrip("KMGTB ")
    unit = plain[len(number) :].strip()
    wrong = InputError(
        f"EQUIDA_CACHE_SIZE is {text!r}; expected a size such as 500MB or 5GB, or 0 to keep nothing"
    )
    try:
        size = int(float(number) * UNITS[unit])
    except (ValueError, KeyError, OverflowError):
        raise wrong from None
    if size < 0 or (not unit and 0 < size < UNITS["MB"]):  # most often a number of gigabytes
        raise wrong
    return size
