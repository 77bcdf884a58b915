"""Doing the runs of a grid: in processes of this machine, or on a cluster.

Beside a run's own files there may be `failed.json` (why it failed; the next call tries it again)
and `running.json` (who is at it).
"""

import contextlib
import dataclasses
import functools
import logging
import os
import socket
import threading
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equida import plugins
from equida.cluster import dask_address, dask_client
from equida.data import Task
from equida.data.spec import DataSpec, open_task
from equida.errors import InputError
from equida.evaluation.validators import VALIDATORS, own_validators
from equida.experiments.grid import Judge, PlannedRun, Stopped
from equida.files import locked, read_json, remove
from equida.runs.entry import Entry
from equida.torch_modes import MOST_PROCESSES, check_count, cores, threads_for, torch_threads
from equida.training.config import RunConfig
from equida.training.folder import RunFolder
from equida.training.processes import exit_with_parent

NO_CODE = plugins.Permission()
LOG = logging.getLogger(__name__)

ONE_AT_A_TIME = threading.Lock()
"""Threads of a cluster's worker share torch's random numbers: two runs at once would not be the
same each time."""
MOST_ATTEMPTS = 2
"""How often a run may take its process down with it before it counts as failed."""


@dataclass(frozen=True)
class Workers:
    """Where runs are done."""

    jobs: int = 0
    """Runs at once; 0: as many as there are GPUs, or else cores."""
    threads: int = 0
    """Threads of torch in each process; 0: OMP_NUM_THREADS if that is set, else one on rows of
    features, and on images so many that all processes together have one for each core. On a cluster
    0 leaves images to its workers."""
    cluster: str = ""
    """dask://HOST:PORT, or nothing for this machine."""

    def __post_init__(self) -> None:
        for name, number in (("--jobs", self.jobs), ("--threads", self.threads)):
            check_count(name, number, f"a whole number from 0 to {MOST_PROCESSES}")
        if self.cluster:
            dask_address(self.cluster)

    def resolved(self, *, on_rows: bool = False) -> "Workers":
        """The workers with the numbers that 0 stands for.

        Args:
            on_rows: whether the runs train on rows of features, whose steps are too small to be
                shared among threads.
        """
        import torch

        jobs = self.jobs or torch.cuda.device_count() or cores()
        share = 0 if self.cluster else max(1, cores() // jobs)
        threads = threads_for(self.threads, on_rows=on_rows, otherwise=share)
        return Workers(jobs, threads, self.cluster)

    @property
    def elsewhere(self) -> bool:
        """Whether other processes do the runs, which import for themselves what they need."""
        return self.jobs > 1 or bool(self.cluster)


@dataclass(frozen=True)
class Ended:
    """How a run ended; its result is in its folder."""

    folder: str
    failure: str | None = None
    stopped: bool = False
    """Whether it ended early because its judge stopped it."""


class GridResults:
    """What the runs of a grid say by now. The file of each result is read once."""

    def __init__(self, planned: Sequence[PlannedRun]) -> None:
        self.planned = {str(run.folder): run for run in planned}
        self._entries = {folder: self._read(run) for folder, run in self.planned.items()}

    @property
    def entries(self) -> list[Entry]:
        """One for each run of the grid."""
        return list(self._entries.values())

    @property
    def unfinished(self) -> list[PlannedRun]:
        """The runs without a result."""
        return [run for f, run in self.planned.items() if self._entries[f].result is None]

    def update(self, ended: Ended) -> Entry:
        """Take in how a run ended; its entry."""
        run = self.planned[ended.folder]
        entry = self._read(run) if ended.failure is None else run.entry(None, ended.failure)
        self._entries[ended.folder] = entry
        return entry

    @staticmethod
    def _read(run: PlannedRun) -> Entry:
        try:
            return run.entry(_result(run.folder))
        except InputError as error:
            LOG.warning("done again: %s", error)
            return run.entry(None)


def finished_result(folder: Path) -> Mapping[str, Any] | None:
    """The result of the run there; None where there is none, or one that cannot be read."""
    try:
        return _result(folder)
    except InputError:
        return None


def _result(folder: Path) -> Mapping[str, Any] | None:
    # Asking for the folder of a run makes it.
    return RunFolder(folder).read_result() if os.path.lexists(folder / "result.json") else None


def do_runs(planned: Sequence[PlannedRun], workers: Workers) -> Iterator[Ended]:
    """Do the runs and yield how each ended, in the order in which they end.

    What earlier calls left (a failure, a process that died) is forgotten first: it is tried again.
    Each run ends once, also where a worker dies and another one does its run.
    """
    for run in planned:
        for name in ("failed.json", "running.json"):
            (run.folder / name).unlink(missing_ok=True)
    # A process may have begun in another folder than this one is in by now.
    left = {os.path.abspath(run.folder): run for run in planned}
    with _backend(workers) as parallel:
        # Each round ends runs, or costs some run one of its attempts.
        for _ in range((MOST_ATTEMPTS + 1) * len(planned) + 1):
            if not left:
                return
            for ended in _round(_next(list(left.values())), workers, parallel):
                if ended.folder in left:
                    here = left.pop(ended.folder).folder
                    yield dataclasses.replace(ended, folder=str(here))
    if left:
        raise InputError(
            f"worker processes keep dying before they begin (runs that are left: {len(left):,});"
            " try --jobs 1 to see why"
        )


def _next(left: Sequence[PlannedRun]) -> Sequence[PlannedRun]:
    """The runs that no dead process was at; then those that one was at, each alone.

    When a process dies, joblib ends the others too; only a run on its own shows whether it was the
    cause.
    """
    suspects = [run for run in left if attempts(run.folder)]
    return [run for run in left if run not in suspects] or suspects[:1]


def _round(planned: Sequence[PlannedRun], workers: Workers, parallel: Any) -> Iterator[Ended]:
    """How runs end, until all have ended or a process of this machine has died."""
    from joblib import delayed
    from joblib.externals.loky.process_executor import BrokenProcessPool

    modules = _validator_modules(planned) if workers.elsewhere else ()
    grid, code = os.getpid(), plugins.permission(modules)
    tasks = (
        delayed(do_run)(
            run.config,
            os.path.abspath(run.folder),
            number,
            workers.threads,
            grid,
            code,
            run.judge,
        )
        for number, run in enumerate(planned)
    )
    with contextlib.suppress(BrokenProcessPool):
        yield from parallel(tasks)


def _validator_modules(planned: Sequence[PlannedRun]) -> list[str]:
    """The modules that other processes import, so that they know the validators of this one."""
    asked = {run.config.recipe.keep for run in planned}
    asked |= {run.judge.figure for run in planned if run.judge}
    modules = []
    for name, module in own_validators().items():
        try:
            plugins.require_importable([f"{module}:{VALIDATORS[name].function.__qualname__}"])
        except InputError as error:
            if name in asked:
                raise
            LOG.warning("validator %s is left out: %s", name, error)
        else:
            modules.append(module)
    return modules


@contextlib.contextmanager
def _backend(workers: Workers) -> Iterator[Any]:
    """joblib's Parallel on the chosen workers, which yields how runs end as they do."""
    from joblib import Parallel, parallel_config

    if not workers.cluster:
        yield Parallel(workers.jobs, backend="loky", return_as="generator_unordered", batch_size=1)
        return
    with (
        dask_client(workers.cluster),
        parallel_config(backend="dask", wait_for_workers_timeout=30),
    ):
        yield Parallel(return_as="generator_unordered", batch_size=1)


def do_run(
    config: RunConfig,
    folder: str,
    number: int = 0,
    threads: int = 0,
    grid: int = 0,
    code: plugins.Permission = NO_CODE,
    judge: Judge | None = None,
) -> Ended:
    """Do a run unless it is finished already; a failure is recorded, not raised.

    Args:
        config: the run.
        folder: where it is written; an unfinished run there goes on.
        number: which run of the grid it is; several GPUs share the work by it.
        threads: of torch in this process; 0 leaves them as they are.
        grid: the process that does the grid; its own workers end when it does.
        code: what may be run of the code that is not equida's own.
        judge: scores its evaluations and may stop it early, which is recorded as a failure.
    """
    path = Path(folder)
    exit_with_parent(grid)
    try:
        plugins.grant(code)
        run = RunFolder(path)
        # A worker outlives a killed grid for a moment.
        with ONE_AT_A_TIME, locked(run.path, wait=True):
            if finished_result(path) is not None:
                return Ended(folder)
            # One that is there all the same is damaged, and would be taken for a finished run.
            remove(path / "result.json")
            failure = _attempt(config, run, number, threads, judge)
            if failure is None:
                (path / "failed.json").unlink(missing_ok=True)
            else:
                run.write_json("config.json", config.to_json())
                run.write_json("failed.json", failure)
            (path / "running.json").unlink(missing_ok=True)
            if failure is None:
                return Ended(folder)
            return Ended(folder, failure["reason"], stopped="stopped" in failure)
    except (InputError, OSError) as error:
        return Ended(folder, str(error))


def _attempt(
    config: RunConfig, run: RunFolder, number: int, threads: int, judge: Judge | None
) -> dict[str, Any] | None:
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
        _train(config, run.path, number, threads, judge)
    except InputError as error:
        return {"reason": str(error)}
    except Stopped as stopped:
        run.remove_checkpoint()
        return {"reason": str(stopped), "stopped": "early"}
    except Exception as error:
        last = str(error).strip().splitlines()
        reason = f"{type(error).__name__}: {last[0] if last else ''}".rstrip(": ")
        return {"reason": reason, "traceback": traceback.format_exc()}
    return None


def _train(config: RunConfig, folder: Path, number: int, threads: int, judge: Judge | None) -> None:
    import torch

    from equida.training.loop import train
    from equida.training.processes import make_fabric

    gpus = torch.cuda.device_count()
    fabric = make_fabric(
        "gpu" if gpus else "auto",
        [number % gpus] if gpus else 1,
        precision=config.recipe.precision,
    )
    assert config.task is not None
    with torch_threads(threads):
        train(
            config,
            opened(config.task, config.data_sha256),
            folder=folder,
            fabric=fabric,
            observers=(judge,) if judge else (),
            validators=(judge.figure,) if judge else (),
            look_at_target=True,
        )


@functools.lru_cache(maxsize=16)
def opened(spec: DataSpec, data_sha256: str) -> Task:
    """The task, opened once in a process; files that were written anew have another digest."""
    return open_task(spec).task


def attempts(folder: Path) -> int:
    """How many processes began the run and did not end it."""
    try:
        return int(read_json(folder / "running.json")["attempts"])
    except (ValueError, KeyError, TypeError, OverflowError):
        return 0
