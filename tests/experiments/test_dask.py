"""A grid on a real Dask cluster: a scheduler and two workers, one of which is killed."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.dask_cluster import Workers, dask_workers

from equida.errors import InputError
from equida.experiments.execute import Workers as GridWorkers
from equida.experiments.execute import do_runs
from equida.experiments.grid import Grid, plan
from equida.runs.variant import Variant

pytest.importorskip("distributed", reason="needs the extra cluster")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, Workers]]:
    with dask_workers(tmp_path) as made:
        yield made


def test_a_killed_worker_costs_no_result(
    cluster: tuple[str, Workers], toy_office: Path, tmp_path: Path
) -> None:
    address, workers = cluster
    changes = {"iterations": 150, "evaluate_every": 10, "bottleneck": 4, "batch_size": 8}
    methods = (Variant("source_only"), Variant("cwsm"), Variant("nsm"))
    grid = Grid("office31", methods, ("A2W", "D2W"), (0,), "features", changes, str(toy_office))
    runs = plan(grid, tmp_path / "runs")
    killed, ended = 0, []
    for one in do_runs(runs, GridWorkers(2, 1, address)):
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
    monkeypatch.setattr("equida.cluster.CONNECT_SECONDS", 0.5)
    grid = Grid("office31", (Variant("nsm"),), ("A2W",), (0,), "features")
    with pytest.raises(InputError, match="no Dask scheduler answers"):
        list(do_runs(plan(grid, tmp_path), GridWorkers(1, 1, "dask://127.0.0.1:1")))
