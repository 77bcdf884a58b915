"""One run of a grid, in whatever process it is done.

Beside a run's own files there may be `failed.json` (why it failed; it is tried again by the next
call), `running.json` (who is at it) and `lock`, which keeps two processes from doing the same run.
"""

import functools
import json
import os
import socket
import threading
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equida.data import Task
from equida.errors import InputError
from equida.training.config import RunConfig, TaskSource
from equida.training.folder import RunFolder
from equida.training.parent import end_with

ONE_AT_A_TIME = threading.Lock()
"""Threads of a cluster's worker share torch's random numbers: two runs at once would not be the
same each time."""
MOST_ATTEMPTS = 2
"""How often a run may take its process down with it before it counts as failed."""


@dataclass(frozen=True)
class Outcome:
    """How a run ended; the result itself is in its folder."""

    folder: str
    failure: str | None = None


def do_run(
    config: RunConfig, folder: str, number: int = 0, threads: int = 0, grid: int = 0
) -> Outcome:
    """Do a run unless it is finished already; a failure is recorded, not raised.

    Args:
        config: the run.
        folder: where it is written; an unfinished run there goes on.
        number: which run of the grid it is; several GPUs share the work by it.
        threads: of torch in this process; 0 leaves them as they are.
        grid: the process that does the grid; its own workers end when it does.
    """
    path = Path(folder)
    end_with(grid)
    try:
        run = RunFolder(path)
        # A worker outlives a killed grid for a moment.
        with ONE_AT_A_TIME, run.alone(wait=True):
            if is_finished(path):
                return Outcome(folder)
            failure = _attempt(config, run, number, threads)
            if failure is None:
                (path / "failed.json").unlink(missing_ok=True)
            else:
                run.write_json("config.json", config.to_json())
                run.write_json("failed.json", failure)
            (path / "running.json").unlink(missing_ok=True)
            return Outcome(folder, failure["reason"] if failure else None)
    except (InputError, OSError) as error:
        return Outcome(folder, str(error))


def is_finished(folder: Path) -> bool:
    """Whether the run there has a result that can be read; one that cannot is removed."""
    file = folder / "result.json"
    try:
        if isinstance(json.loads(file.read_text()).get("last"), dict):
            return True
    except FileNotFoundError:
        return False
    except (ValueError, AttributeError):
        pass
    file.unlink()
    return False


def _attempt(config: RunConfig, run: RunFolder, number: int, threads: int) -> dict[str, Any] | None:
    """Train; None, or why it did not work."""
    before = attempts(run.path)
    if before >= MOST_ATTEMPTS:
        return {
            "reason": f"the process that did this run died {before} times; most often that is a"
            " lack of memory: use fewer --jobs or a smaller batch"
        }
    here = {"attempts": before + 1, "host": socket.gethostname(), "process": os.getpid()}
    run.write_json("running.json", here)
    try:
        _train(config, run.path, number, threads)
    except InputError as error:
        return {"reason": str(error)}
    except Exception as error:
        last = str(error).strip().splitlines()
        reason = f"{type(error).__name__}: {last[0] if last else ''}".rstrip(": ")
        return {"reason": reason, "traceback": traceback.format_exc()}
    return None


def _train(config: RunConfig, folder: Path, number: int, threads: int) -> None:
    import torch

    from equida.training.fabric import make_fabric
    from equida.training.loop import train

    if threads:
        torch.set_num_threads(threads)
    gpus = torch.cuda.device_count()
    fabric = make_fabric(
        "gpu" if gpus else "auto",
        [number % gpus] if gpus else 1,
        precision=config.recipe.precision,
    )
    assert config.task is not None
    train(config, opened(config.task), folder=folder, fabric=fabric)


@functools.lru_cache(maxsize=16)
def opened(where: TaskSource) -> Task:
    """The task, opened once in a process."""
    from equida.training.tasks import open_task

    return open_task(where)[0]


def attempts(folder: Path) -> int:
    """How many processes took the run up without an end."""
    try:
        return int(json.loads((folder / "running.json").read_text())["attempts"])
    except (OSError, ValueError, KeyError):
        return 0
