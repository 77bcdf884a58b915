"""Runs in processes: every outcome once, also where one of them dies."""

import os
from pathlib import Path

import pytest

from equida.bench.grid import Grid, plan
from equida.bench.schedule import Workers, do_runs
from equida.bench.sweep import Variant
from equida.errors import InputError

QUICK = {"iterations": 4, "evaluate_every": 2, "bottleneck": 4, "batch_size": 8}


def test_threads_and_jobs_together_fill_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    assert Workers().resolved() == Workers(8, 1)
    assert Workers(jobs=3).resolved() == Workers(3, 2)
    assert Workers(jobs=20).resolved() == Workers(20, 1)
    assert Workers(cluster="dask://a:1").resolved().threads == 0


def test_a_process_that_dies_fails_its_run_and_no_other(
    toy_office: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    toy = Grid(
        "office31",
        (Variant("source_only"),),
        ("A2W",),
        (0, 1, 2),
        "features",
        QUICK,
        str(toy_office),
    )
    deadly = Grid(
        "digits", (Variant("source_only"),), ("U2M",), (0,), "digits", QUICK, backbone="dying:make"
    )
    runs = [*plan(deadly, tmp_path), *plan(toy, tmp_path)]
    outcomes = {o.folder: o.failure for o in do_runs(runs, Workers(2, 1))}
    assert len(outcomes) == 4
    assert "died 2 times" in str(outcomes[str(runs[0].folder)])
    assert [outcomes[str(run.folder)] for run in runs[1:]] == [None] * 3


@pytest.mark.parametrize(
    "address", ["localhost:8786", "ray://localhost:1", "dask://localhost", "dask://:1"]
)
def test_cluster_addresses_that_are_none(address: str, tmp_path: Path) -> None:
    grid = Grid("office31", (Variant("nsm"),), ("A2W",), (0,), "features")
    with pytest.raises(InputError, match="dask://HOST:PORT"):
        list(do_runs(plan(grid, tmp_path), Workers(1, 1, address)))
