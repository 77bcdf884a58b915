"""A run is a folder; whoever reads results reads these files.

`config.json` says how to do the run again, `log.jsonl` has one line for each measurement,
`checkpoint.pt` is there while the run is unfinished, `model.safetensors` holds the weights,
`predictions.safetensors` those of the target, and `result.json` is written last.
"""

import contextlib
import errno
import io
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from equida.errors import InputError


class RunFolder:
    """The files of one run. Each is written beside its name first and then renamed, so that a
    killed process leaves the old or the new one, never half of it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._writing():
            path.mkdir(parents=True, exist_ok=True)

    @contextlib.contextmanager
    def alone(self, *, wait: bool = False) -> Iterator[None]:
        """Inside, no other process of this machine does the same run; a dead one's lock is dropped.

        Raises:
            InputError: another process is at it, and `wait` is False.
        """
        try:
            import fcntl
        except ImportError:  # not on Windows
            yield
            return
        with self._writing():
            file = (self.path / "lock").open("w")
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(
                    f"another process is at work in {self.path}; wait for it, or choose another"
                    " folder"
                ) from None
            yield

    def write_json(self, name: str, value: Mapping[str, Any]) -> None:
        self._replace(name, (json.dumps(value, indent=1) + "\n").encode())

    def write_text(self, name: str, text: str) -> None:
        self._replace(name, text.encode())

    def read_json(self, name: str) -> Any:
        """The parsed file, or None where there is none."""
        try:
            return json.loads((self.path / name).read_text())
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise InputError(f"{self.path / name} is damaged ({error}); remove it") from error

    def append_log(self, line: Mapping[str, Any]) -> None:
        with self._writing(), (self.path / "log.jsonl").open("a") as log:
            log.write(json.dumps(line) + "\n")

    def truncate_log(self, step: int) -> None:
        """Drop what was logged after `step`: a resumed run will log it again."""
        lines = [line for line in self.read_log() if line["step"] <= step]
        self._replace("log.jsonl", "".join(json.dumps(line) + "\n" for line in lines).encode())

    def read_log(self) -> list[dict[str, Any]]:
        """The lines of the log; a last line that a killed process left half written is dropped."""
        file = self.path / "log.jsonl"
        lines = []
        for text in file.read_text().splitlines() if file.exists() else []:
            with contextlib.suppress(ValueError):
                lines.append(json.loads(text))
        return lines

    def save_checkpoint(self, state: Mapping[str, Any]) -> None:
        buffer = io.BytesIO()
        torch.save(dict(state), buffer)
        self._replace("checkpoint.pt", buffer.getbuffer())

    def load_checkpoint(self) -> dict[str, Any] | None:
        """The state of an unfinished run, or None."""
        file = self.path / "checkpoint.pt"
        if not file.exists():
            return None
        try:
            state: dict[str, Any] = torch.load(file, map_location="cpu", weights_only=True)
        except Exception as error:
            raise InputError(f"{file} cannot be read ({error}); remove it to start anew") from error
        return state

    def remove_checkpoint(self) -> None:
        with self._writing():
            (self.path / "checkpoint.pt").unlink(missing_ok=True)

    def save_tensors(
        self,
        name: str,
        tensors: Mapping[str, Tensor],
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        from safetensors.torch import save

        plain = {key: value.detach().cpu().contiguous() for key, value in tensors.items()}
        self._replace(name, save(plain, dict(metadata or {})))

    def load_tensors(self, name: str) -> dict[str, Tensor]:
        from safetensors.torch import load_file

        return load_file(self.path / name)

    def _replace(self, name: str, content: bytes | memoryview) -> None:
        part = self.path / f"{name}.part"
        with self._writing():
            with part.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            part.replace(self.path / name)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            what = "free some space and start again" if full else "choose another folder"
            raise InputError(f"cannot write into {self.path}: {error.strerror}; {what}") from error
