"""A run is a folder; whoever reads results reads these files.

`config.json` says how to do the run again, `log.jsonl` has one line for each measurement,
`checkpoint.pt` is there while the run is unfinished, `model.safetensors` holds the weights,
`predictions.safetensors` those of the target, and `result.json` is written last.
"""

import io
import json
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from equida.errors import InputError
from equida.files import (
    check_regular,
    parse_json,
    read_json,
    write_atomic,
    write_errors,
)
from equida.records import conform
from equida.training.config import RunConfig
from equida.training.schema import check_result, migrate

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class LogLine:
    """What a line of log.jsonl may hold."""

    step: int
    terms: Mapping[str, float]
    evaluation: Mapping[str, float | None]


class RunFolder:
    """The files of one run. Each is written beside its name first and then renamed, so that a
    killed process leaves the old or the new one, never half of it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with write_errors(path):
            path.mkdir(parents=True, exist_ok=True)

    def write_json(self, name: str, value: Mapping[str, Any]) -> None:
        write_atomic(self.path / name, json.dumps(value, indent=1, allow_nan=False) + "\n")

    def write_text(self, name: str, text: str) -> None:
        write_atomic(self.path / name, text)

    def read_json(self, name: str) -> Any:
        """The parsed file, or None where there is none."""
        file = self.path / name
        if not os.path.lexists(file):
            return None
        if (parsed := read_json(file)) is None:
            raise InputError(f"{file} holds null; expected a record")
        return parsed

    def read_config(self) -> RunConfig | None:
        """The config of the run here, of this version or an earlier one; None without one."""
        stored = self.read_json("config.json")
        try:
            return None if stored is None else RunConfig.from_json(stored)
        except InputError as error:
            raise InputError(f"{self.path}: {error}") from error

    def read_result(self) -> dict[str, Any] | None:
        """The result of the run here, in the present schema; None while it is unfinished."""
        stored = self.read_json("result.json")
        if stored is None:
            return None
        try:
            result = migrate(stored, "result.json")
            check_result(result)
        except InputError as error:
            raise InputError(f"{self.path}: {error}") from error
        return result

    def temperature(self) -> float:
        """The temperature that the finished run here has calibrated its confidences by; 1 where it
        has not."""
        calibration = (self.read_result() or {}).get("calibration") or {}
        return float(calibration.get("temperature", 1.0))

    def append_log(self, line: Mapping[str, Any]) -> None:
        with write_errors(self.path), (self.path / "log.jsonl").open("a") as log:
            log.write(json.dumps(line) + "\n")

    def truncate_log(self, step: int) -> None:
        """Drop what was logged after `step`: a resumed run will log it again."""
        lines = [line for line in self.read_log() if line["step"] <= step]
        write_atomic(self.path / "log.jsonl", "".join(json.dumps(line) + "\n" for line in lines))

    def read_log(self) -> list[dict[str, Any]]:
        """The lines of the log. What is damaged is left out with a warning, except for a last line
        that a killed process left half written.
        """
        file = self.path / "log.jsonl"
        if not os.path.lexists(file):
            return []
        try:
            check_regular(file)
            texts = file.read_bytes().splitlines()
        except (InputError, OSError) as error:
            LOG.warning("left out: %s", error)
            return []
        lines = [_log_line(text) for text in texts]
        if damaged := lines[:-1].count(None):
            LOG.warning("left out: %d of %d lines of %s are damaged", damaged, len(lines), file)
        return [line for line in lines if line is not None]

    def save_checkpoint(self, state: Mapping[str, Any]) -> None:
        buffer = io.BytesIO()
        torch.save(dict(state), buffer)
        write_atomic(self.path / "checkpoint.pt", buffer.getbuffer())

    def load_checkpoint(self) -> dict[str, Any] | None:
        """The state of an unfinished run, or None."""
        file = self.path / "checkpoint.pt"
        if not os.path.lexists(file):
            return None
        check_regular(file)
        try:
            state: dict[str, Any] = torch.load(file, map_location="cpu", weights_only=True)
        except Exception as error:
            raise InputError(f"{file} cannot be read ({error}); remove it to start anew") from error
        return state

    def remove_checkpoint(self) -> None:
        with write_errors(self.path):
            (self.path / "checkpoint.pt").unlink(missing_ok=True)

    def save_tensors(
        self,
        name: str,
        tensors: Mapping[str, Tensor],
        metadata: Mapping[str, str] | None = None,
    ) -> None:
        from safetensors.torch import save

        plain = {key: value.detach().cpu().contiguous() for key, value in tensors.items()}
        write_atomic(self.path / name, save(plain, dict(metadata or {})))

    def load_tensors(self, name: str) -> dict[str, Tensor]:
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        check_regular(self.path / name)
        try:
            return load_file(self.path / name)
        except (OSError, SafetensorError) as error:
            raise InputError(
                f"{self.path / name} cannot be read ({error}); repeat the run, or copy it again"
            ) from error


def _log_line(text: bytes) -> dict[str, Any] | None:
    """The parsed line, or None where it is not one of a run's log."""
    try:
        line: dict[str, Any] = parse_json(text, "log.jsonl")
        conform(line, LogLine, "log.jsonl")
    except InputError:
        return None
    return line if isinstance(line.get("step"), int) else None
