"""A grid on a real Dask cluster: a scheduler and two workers, one of which is killed."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import equida
from equida.errors import InputError
from equida.experiments.execute import Workers, do_runs
from equida.experiments.grid import Grid, plan
from equida.runs.variant import Variant

pytest.importorskip("distributed", reason="needs the extra cluster")
PATIENCE = 120.0


def wait_for(ready: Callable[[], object], processes: list[subprocess.Popen[bytes]]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not ready():
        assert all(process.poll() is None for process in processes), "a process ended early"
        assert time.monotonic() < deadline, "the cluster did not come up"
        time.sleep(0.05)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """The scheduler's address, and the two workers; all on loopback."""
    contact = tmp_path / "scheduler.json"
    environment = os.environ | {
        "PYTHONPATH": str(Path(equida.__file__).parents[1]),
        "OMP_NUM_THREADS": "1",
        "DASK_DISTRIBUTED__WORKER__USE_FILE_LOCKING": "False",
    }
    started: list[subprocess.Popen[bytes]] = []

    def start(*words: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", *words, "--scheduler-file", str(contact)],
            env=environment,
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        started.append(process)
        return process

    try:
        start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")
        wait_for(contact.exists, started)
        flags = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1"]
        workers = [start("worker", *flags) for _ in range(2)]
        address = json.loads(contact.read_text())["address"]
        from distributed import Client

        with Client(address, timeout=PATIENCE) as client:  # type: ignore[no-untyped-call]
            client.wait_for_workers(2, timeout=PATIENCE)
        yield address.replace("tcp://", "dask://"), workers
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.wait(10)


def test_a_killed_worker_costs_no_result(
    cluster: tuple[str, list[subprocess.Popen[bytes]]], toy_office: Path, tmp_path: Path
) -> None:
    address, workers = cluster
    changes = {"iterations": 150, "evaluate_every": 10, "bottleneck": 4, "batch_size": 8}
    methods = (Variant("source_only"), Variant("cwsm"), Variant("nsm"))
    grid = Grid("office31", methods, ("A2W", "D2W"), (0,), "features", changes, str(toy_office))
    runs = plan(grid, tmp_path / "runs")
    killed, ended = 0, []
    for one in do_runs(runs, Workers(2, 1, address)):
        ended.append(one)
        for run in runs:
            file = run.folder / "running.json"
            if not killed and file.exists():
                killed = int(json.loads(file.read_text())["process"])
                assert killed in [worker.pid for worker in workers]
                os.kill(killed, signal.SIGKILL)
    assert killed
    assert sorted(one.folder for one in ended) == sorted(str(run.folder) for run in runs)
    assert all(one.failure is None for one in ended)
    assert all((run.folder / "result.json").exists() for run in runs)
    assert not list((tmp_path / "runs").glob("*/checkpoint.pt"))


def test_an_absent_scheduler_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("equida.experiments.execute.CONNECT_SECONDS", 0.5)
    grid = Grid("office31", (Variant("nsm"),), ("A2W",), (0,), "features")
    with pytest.raises(InputError, match="no Dask scheduler answers"):
        list(do_runs(plan(grid, tmp_path), Workers(1, 1, "dask://127.0.0.1:1")))
