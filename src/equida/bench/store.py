"""Reading a folder of runs: whoever wants results reads these files."""

import json
import logging
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor

from equida.errors import InputError
from equida.training.config import RunConfig
from equida.training.folder import RunFolder

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Predictions:
    """What a run says of every target sample."""

    probs: Tensor
    labels: Tensor
    """-1 where unknown."""
    samples: tuple[str, ...]
    """Path or row of each sample."""


@dataclass(frozen=True)
class Run:
    """One run of the store."""

    path: Path
    config: RunConfig
    result: dict[str, Any] | None
    """None while it is unfinished or where it failed."""
    failure: str | None = None
    """Why it failed, if it did."""

    @cached_property
    def log(self) -> list[dict[str, Any]]:
        """The lines of log.jsonl."""
        return RunFolder(self.path).read_log()

    @cached_property
    def predictions(self) -> Predictions:
        """The final target predictions."""
        from safetensors import safe_open

        with safe_open(self.path / "predictions.safetensors", "pt") as file:
            samples = json.loads((file.metadata() or {})["samples"])
            return Predictions(file.get_tensor("probs"), file.get_tensor("labels"), tuple(samples))


def read_runs(root: Path) -> list[Run]:
    """Every run below `root`, in order of their folders.

    A folder whose files cannot be understood is left out with a warning, so that it does not stand
    in the way of the others.
    """
    if not root.is_dir():
        raise InputError(f"{root} is not a folder; expected one with runs, made by equida bench")
    runs = []
    for file in sorted(root.rglob("config.json")):
        try:
            runs.append(_run(RunFolder(file.parent)))
        except InputError as error:
            LOG.warning("left out: %s: %s", file.parent, error)
    return runs


def _run(folder: RunFolder) -> Run:
    result = folder.read_json("result.json")
    if result is not None and not {"task", "last", "picks"} <= set(result):
        raise InputError("result.json is not one of a run")
    failed = folder.read_json("failed.json")
    config = RunConfig.from_json(folder.read_json("config.json"))
    return Run(folder.path, config, result, failed["reason"] if failed else None)
