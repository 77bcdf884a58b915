"""The journal: features that were computed before a call was interrupted or killed.

Records of one size are appended batch by batch and forced to the disk, so that a killed process
leaves complete batches and at most one incomplete batch, which is computed again.
"""

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from equida.data.feature_cache.file import Engine, FeatureSettings, made_by
from equida.errors import InputError
from equida.files import locked, remove_part, write_atomic, write_errors


class Journal:
    """Features by content, in the folder FILE.part.

    Attributes:
        folder: the folder of the journal.
        position: the number of the record of each content.
        unreadable: contents that are known not to be images.
        engines: what has computed the features, with versions.
    """

    def __init__(
        self, folder: Path, settings: FeatureSettings, batch_size: int, engine: Engine = "auto"
    ) -> None:
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
        self.engines: list[str] = []
        self._engines = folder / "engines.txt"
        with write_errors(folder):
            self._begin(json.dumps({**asdict(settings), "batch_size": batch_size}), engine)

    def _begin(self, described: str, engine: Engine) -> None:
        """Take over what an earlier call left, if it computed the same features."""
        note = self.folder / "settings.json"
        same = note.is_file() and note.read_text() == described
        if same and self._engines.is_file():
            self.engines = self._engines.read_text().splitlines()
        if not same or not made_by(engine, self.engines):
            self.engines = []
            self._file.unlink(missing_ok=True)
            self._engines.unlink(missing_ok=True)
            write_atomic(note, described)
        self._file.touch()
        records = self._file.stat().st_size // self._record.itemsize
        # Only complete batches are kept: the network then sees the same batches as without a kill.
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
        self,
        contents: list[bytes],
        readable: list[bool],
        features: NDArray[np.generic],
        engine: str = "",
    ) -> None:
        """Keep one batch; once this returns, the batch survives the end of the process.

        The last batch is filled up with empty records, so that all batches have the same size.
        """
        if engine and engine not in self.engines:
            self.engines.append(engine)
            write_atomic(self._engines, "\n".join(self.engines))
        start = len(self)
        records = np.zeros(self.batch_size, self._record)
        number = len(contents)
        records["content"][:number] = np.frombuffer(b"".join(contents), np.uint8).reshape(-1, 32)
        records["readable"][:number] = readable
        records["features"][:number] = features[:number]
        with write_errors(self.folder), self._file.open("ab") as file:
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
        # Mapped anew for each use: the pages of a lasting mapping count as memory in use.
        return np.memmap(self._file, self._record, "r")


@contextlib.contextmanager
def work_folder(path: Path) -> Iterator[Path]:
    """The folder FILE.part, locked against other processes and removed when all went well.

    After a kill, an interruption or an error it stays, so that the next call can continue from it,
    unless nothing was computed.

    Raises:
        InputError: another process makes the same file.
    """
    folder = path.with_name(f"{path.name}.part")
    with locked(folder):
        try:
            yield folder
        except InputError:
            if not any(file.stat().st_size for file in folder.glob("records")):
                remove_part(folder)
            raise
        remove_part(folder)
