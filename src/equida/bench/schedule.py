"""Doing the runs of a grid: in processes of this machine, or on a cluster."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from equida.bench.grid import Planned
from equida.bench.work import MOST_ATTEMPTS, Outcome, attempts, do_run
from equida.errors import InputError
from equida.torch_modes import cores

CONNECT_SECONDS = 10.0


@dataclass(frozen=True)
class Workers:
    """Where runs are done."""

    jobs: int = 0
    """At once; 0: as many as cores (or GPUs, where there are any)."""
    threads: int = 0
    """Of torch in each process; 0: so that all processes together have one for each core. On a
    cluster 0 leaves them to its workers."""
    cluster: str = ""
    """dask://HOST:PORT, or nothing for this machine."""

    def resolved(self) -> "Workers":
        """With the numbers that 0 stands for."""
        import torch

        jobs = self.jobs or torch.cuda.device_count() or cores()
        share = 0 if self.cluster else max(1, cores() // jobs)
        return Workers(jobs, self.threads or share, self.cluster)


def do_runs(planned: Sequence[Planned], workers: Workers) -> Iterator[Outcome]:
    """Do the runs and yield how each ended, in the order in which they end.

    What earlier calls left (a failure, a process that died) is forgotten first: it is tried again.
    Each outcome comes once, also where a worker dies and its run is done by another one.
    """
    for run in planned:
        for name in ("failed.json", "running.json"):
            (run.folder / name).unlink(missing_ok=True)
    left = {str(run.folder): run for run in planned}
    with _backend(workers) as parallel:
        # Each round ends runs, or costs some run one of its attempts.
        for _ in range((MOST_ATTEMPTS + 1) * len(planned) + 1):
            if not left:
                return
            for outcome in _round(_next(list(left.values())), workers, parallel):
                if left.pop(outcome.folder, None) is not None:
                    yield outcome
    if left:
        raise InputError(
            f"worker processes keep dying before they begin ({len(left)} runs are left);"
            " try --jobs 1 to see why"
        )


def _next(left: Sequence[Planned]) -> Sequence[Planned]:
    """The runs that no dead process was at; then those that one was at, each alone.

    When a process dies, joblib ends the others too; only alone does a run show its own guilt.
    """
    suspects = [run for run in left if attempts(run.folder)]
    return [run for run in left if run not in suspects] or suspects[:1]


def _round(planned: Sequence[Planned], workers: Workers, parallel: Any) -> Iterator[Outcome]:
    """Outcomes until all runs have ended or a process of this machine has died."""
    from joblib import delayed
    from joblib.externals.loky.process_executor import BrokenProcessPool

    tasks = (
        delayed(do_run)(run.config, str(run.folder), number, workers.threads, os.getpid())
        for number, run in enumerate(planned)
    )
    with contextlib.suppress(BrokenProcessPool):
        yield from parallel(tasks)


@contextlib.contextmanager
def _backend(workers: Workers) -> Iterator[Any]:
    """joblib's Parallel on the chosen workers, which yields outcomes as they come."""
    from joblib import Parallel, parallel_config

    if not workers.cluster:
        yield Parallel(workers.jobs, backend="loky", return_as="generator_unordered", batch_size=1)
        return
    address = dask_address(workers.cluster)
    try:
        from distributed import Client
    except ImportError:
        raise InputError("a cluster needs Dask: pip install 'equida[cluster]'") from None
    try:
        client: Any = Client(address, timeout=CONNECT_SECONDS)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise InputError(
            f"no Dask scheduler answers at {address} ({error}); start one with: dask scheduler"
        ) from None
    with client, parallel_config(backend="dask", wait_for_workers_timeout=30):
        if not client.scheduler_info()["workers"]:
            raise InputError(
                f"the scheduler at {address} has no workers; start: dask worker {address}"
            )
        yield Parallel(return_as="generator_unordered", batch_size=1)


def dask_address(cluster: str) -> str:
    """The scheduler's address as Dask writes it.

    >>> dask_address("dask://localhost:8786")
    'tcp://localhost:8786'
    """
    scheme, _, place = cluster.partition("://")
    host, _, port = place.rpartition(":")
    if scheme != "dask" or not host or not port.isdigit():
        raise InputError(f"--cluster is {cluster!r}; expected dask://HOST:PORT")
    return f"tcp://{place}"
