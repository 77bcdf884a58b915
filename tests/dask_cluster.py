"""A real Dask cluster on loopback: a scheduler and workers, each a process of its own."""

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import equida
from equida.files import json_has

PATIENCE = 120.0
Workers = list["subprocess.Popen[bytes]"]


@contextlib.contextmanager
def dask_workers(
    folder: Path, count: int = 2, env: Mapping[str, str] | None = None
) -> Iterator[tuple[str, Workers]]:
    """The scheduler's address as dask://HOST:PORT, and the workers.

    Args:
        folder: where the processes work.
        count: how many workers there are.
        env: their environment; by default that of this process, with equida to be found.
    """
    contact = folder / "scheduler.json"
    environment = dict(env or os.environ | {"PYTHONPATH": str(Path(equida.__file__).parents[1])})
    environment |= {
        "OMP_NUM_THREADS": "1",
        "DASK_DISTRIBUTED__WORKER__USE_FILE_LOCKING": "False",
    }
    started: Workers = []

    def start(*words: str) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", *words, "--scheduler-file", str(contact)],
            env=environment,
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        started.append(process)
        return process

    try:
        start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        _wait_for(lambda: json_has(contact, "address"), started)
        flags = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1"]
        workers = [start("worker", *flags) for _ in range(count)]
        address = json.loads(contact.read_text())["address"]
        from distributed import Client

        with Client(address, timeout=PATIENCE) as client:  # type: ignore[no-untyped-call]
            client.wait_for_workers(count, timeout=PATIENCE)
        yield address.replace("tcp://", "dask://"), workers
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.wait(10)


def _wait_for(ready: Callable[[], object], processes: Workers) -> None:
    deadline = time.monotonic() + PATIENCE
    while not ready():
        assert all(process.poll() is None for process in processes), "a process ended early"
        assert time.monotonic() < deadline, "the cluster did not come up"
        time.sleep(0.05)
