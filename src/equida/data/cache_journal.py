"""The journal: features that were computed before a run ended, whatever ended it.

Records of one size are appended batch by batch and forced to disk, so that a killed process leaves
whole batches and at most one torn one, which is computed again.
"""

import contextlib
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from equida.data.cache_file import Settings
from equida.errors import InputError

try:
    import fcntl
except ImportError:  # Windows: two runs into one file are then not noticed
    fcntl = None  # type: ignore[assignment]


class Journal:
    """Features by content, in the folder FILE.part.

    Attributes:
        folder: where it lies.
        position: the number of each content's record.
        unreadable: contents that are known not to be images.
    """

    def __init__(self, folder: Path, settings: Settings, batch_size: int) -> None:
        self.folder, self.batch_size = folder, batch_size
        self._record = np.dtype(
            [
                ("content", np.uint8, (32,)),
                ("readable", "<i8"),
                ("features", settings.dtype, settings.row_shape),
            ]
        )
        self._file = folder / "records"
        self.position: dict[bytes, int] = {}
        self.unreadable: set[bytes] = set()
        self._begin(json.dumps({**asdict(settings), "batch_size": batch_size}))

    def _begin(self, described: str) -> None:
        """Take over what an earlier run left, if it was after the same features."""
        note = self.folder / "settings.json"
        if not note.is_file() or note.read_text() != described:
            self._file.unlink(missing_ok=True)
            draft = self.folder / "settings.json.new"
            draft.write_text(described)
            draft.replace(note)
        self._file.touch()
        records = self._file.stat().st_size // self._record.itemsize
        # Only whole batches are kept: the network then sees the batches of an undisturbed run.
        records -= records % self.batch_size
        os.truncate(self._file, records * self._record.itemsize)
        for start in range(0, records, self.batch_size):
            batch = self._map()[start : start + self.batch_size]
            for number, (content, readable) in enumerate(
                zip(batch["content"], batch["readable"], strict=True), start
            ):
                self._index(content.tobytes(), bool(readable), number)

    def __len__(self) -> int:
        return self._file.stat().st_size // self._record.itemsize

    def _index(self, content: bytes, readable: bool, number: int) -> None:
        if readable:
            self.position[content] = number
        else:
            self.unreadable.add(content)

    def append(
        self, contents: list[bytes], readable: list[bool], features: NDArray[np.generic]
    ) -> None:
        """Keep one batch; when this returns, it survives the end of the process.

        The last batch is filled up with records of no content, so that records always come in
        whole batches.
        """
        start = len(self)
        records = np.zeros(self.batch_size, self._record)
        number = len(contents)
        records["content"][:number] = np.frombuffer(b"".join(contents), np.uint8).reshape(-1, 32)
        records["readable"][:number] = readable
        records["features"][:number] = features[:number]
        with self._file.open("ab") as file:
            file.write(records.tobytes())
            file.flush()
            os.fsync(file.fileno())
        for offset, (content, fine) in enumerate(zip(contents, readable, strict=True)):
            self._index(content, fine, start + offset)

    def features(self, records: NDArray[np.int64]) -> NDArray[np.generic]:
        """The features of some records."""
        if not len(records):
            return np.empty((0, *self._record["features"].shape), self._record["features"].base)
        return self._map()["features"][records]

    def _map(self) -> NDArray[np.void]:
        # Mapped anew for each use: the pages of a mapping that stays count as memory in use.
        return np.memmap(self._file, self._record, "r")


@contextlib.contextmanager
def work_folder(path: Path) -> Iterator[Path]:
    """The folder FILE.part, held by this process alone; removed when all went well.

    After a kill, an interruption or an error it stays, for the next run to go on from, unless
    nothing was computed.
    """
    folder = path.with_name(f"{path.name}.part")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("w")
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from None
    with lock:
        if fcntl is not None:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise InputError(f"{path} is being written by another process") from None
        try:
            yield folder
        except InputError:
            if not any(file.stat().st_size for file in folder.glob("records")):
                shutil.rmtree(folder)
            raise
        shutil.rmtree(folder)
