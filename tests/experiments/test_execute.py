"""Doing runs: each once, by one process, its failure recorded, also where a process dies."""

import dataclasses
import fcntl
import json
import os
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.small_data import SHORT, blobs

import equida
from equida import plugins
from equida.errors import InputError
from equida.experiments.execute import (
    MOST_ATTEMPTS,
    Ended,
    GridResults,
    Workers,
    do_run,
    do_runs,
    finished_result,
)
from equida.experiments.grid import Grid, PlannedRun, plan
from equida.runs.variant import Variant
from equida.training.folder import RunFolder

QUICK = {"iterations": 4, "evaluate_every": 2, "bottleneck": 4, "batch_size": 8}


def test_threads_and_jobs_together_fill_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert Workers().resolved() == Workers(8, 1)
    assert Workers(jobs=3).resolved() == Workers(3, 2)
    assert Workers(jobs=20).resolved() == Workers(20, 1)
    assert Workers(cluster="dask://a:1").resolved().threads == 0


@pytest.mark.parametrize("jobs", [float("inf"), -1, 10**30, 1.5])
def test_more_runs_at_once_than_a_machine_can_do(jobs: Any) -> None:
    with pytest.raises(InputError, match=r"--jobs is .*; it must be a whole number from 0"):
        Workers(jobs).resolved()


def test_a_process_that_dies_fails_its_run_and_no_other(
    toy_office: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    toy = Grid(
        "office31",
        (Variant("source_only"),),
        ("A2W",),
        (0, 1, 2),
        "features",
        QUICK,
        str(toy_office),
    )
    # Workers that are there already have not been told of the folder that becomes known now.
    (first,) = do_runs(plan(dataclasses.replace(toy, seeds=(3,)), tmp_path), Workers(2, 1))
    assert first.failure is None
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    plugins.permit("dying:make")
    deadly = Grid(
        "digits", (Variant("source_only"),), ("U2M",), (0,), "digits", QUICK, backbone="dying:make"
    )
    runs = [*plan(deadly, tmp_path), *plan(toy, tmp_path)]
    ends = {e.folder: e.failure for e in do_runs(runs, Workers(2, 1))}
    assert len(ends) == 4
    assert "died 2 times" in str(ends[str(runs[0].folder)])
    assert [ends[str(run.folder)] for run in runs[1:]] == [None] * 3


@pytest.mark.parametrize(
    "address", ["localhost:8786", "ray://localhost:1", "dask://localhost", "dask://:1"]
)
def test_cluster_addresses_that_are_none(address: str, tmp_path: Path) -> None:
    grid = Grid("office31", (Variant("nsm"),), ("A2W",), (0,), "features")
    with pytest.raises(InputError, match="dask://HOST:PORT"):
        list(do_runs(plan(grid, tmp_path), Workers(1, 1, address)))


def test_a_run_on_features_has_the_threads_that_are_asked_for_and_gives_them_back(
    toy_office: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One by default, as its steps are too small to be shared."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert Workers(jobs=1).resolved(on_rows=True).threads == 1
    assert Workers(jobs=1, threads=3).resolved(on_rows=True).threads == 3
    before, seen = torch.get_num_threads(), list[int]()
    monkeypatch.setattr(torch, "set_num_threads", seen.append)
    grid = Grid(
        "office31", (Variant("source_only"),), ("A2W",), (0,), "features", QUICK, str(toy_office)
    )
    (run,) = plan(grid, tmp_path)
    assert do_run(run.config, str(run.folder), threads=3).failure is None
    assert (seen[0], seen[-1]) == (3, before)


RESULT = {
    "task": "A2W", "classes": ["mug", "pen"], "metric": "accuracy", "kept": "last",
    "last": {"step": 1, "accuracy": 0.5, "equity": 1.0, "discriminability": 1.0}, "picks": {},
    "seconds": 1.0,
}  # fmt: skip


@pytest.fixture
def planned(toy_office: Path, tmp_path: Path) -> Callable[..., PlannedRun]:
    def make(**changes: object) -> PlannedRun:
        grid = Grid(
            "office31", (Variant("nsm"),), ("A2W",), (0,), "features", QUICK | changes,
            str(toy_office),
        )  # fmt: skip
        return plan(grid, tmp_path)[0]

    return make


def test_a_run_is_done_once(planned: Callable[..., PlannedRun]) -> None:
    run = planned()
    assert do_run(run.config, str(run.folder)).failure is None
    result = run.folder / "result.json"
    written = result.stat().st_mtime_ns
    assert do_run(run.config, str(run.folder)).failure is None
    assert result.stat().st_mtime_ns == written
    assert not (run.folder / "running.json").exists()


def test_a_failure_is_recorded_with_its_reason_and_tried_again(
    planned: Callable[..., PlannedRun],
) -> None:
    run = planned(learning_rate=1e30)
    ended = do_run(run.config, str(run.folder))
    assert ended.failure is not None
    assert "lower the learning rate" in ended.failure
    recorded = json.loads((run.folder / "failed.json").read_text())
    assert recorded["reason"] == ended.failure
    assert (run.folder / "config.json").exists()
    assert do_run(run.config, str(run.folder)).failure == ended.failure


def test_a_missing_file_is_a_failure_too(toy_office: Path, tmp_path: Path) -> None:
    grid = Grid("office31", (Variant("nsm"),), ("A2W",), (0,), "features", {}, "/none.npz")
    run = plan(grid, tmp_path)[0]
    assert "none.npz" in str(do_run(run.config, str(run.folder)).failure)
    assert (run.folder / "failed.json").exists()


def test_an_unexpected_error_keeps_its_traceback(
    planned: Callable[..., PlannedRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = planned()

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("first line\nsecond line")

    monkeypatch.setattr("equida.training.loop.train", fail)
    assert do_run(run.config, str(run.folder)).failure == "RuntimeError: first line"
    recorded = json.loads((run.folder / "failed.json").read_text())
    assert "Traceback" in recorded["traceback"]


def test_a_run_that_kills_its_process_is_given_up(planned: Callable[..., PlannedRun]) -> None:
    run = planned()
    RunFolder(run.folder).write_json("running.json", {"attempts": MOST_ATTEMPTS})
    assert "died 2 times" in str(do_run(run.config, str(run.folder)).failure)


def test_two_processes_never_do_the_same_run(planned: Callable[..., PlannedRun]) -> None:
    run = planned()
    RunFolder(run.folder)
    with (run.folder / "lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        second = threading.Thread(target=do_run, args=(run.config, str(run.folder)))
        second.start()
        second.join(0.3)
        assert second.is_alive()
        # What the other process would have left.
        RunFolder(run.folder).write_json("result.json", RESULT)
    second.join(20)
    assert not second.is_alive()
    assert not (run.folder / "config.json").exists()


def test_a_result_that_cannot_be_read_is_made_again(planned: Callable[..., PlannedRun]) -> None:
    run = planned()
    for damage in ("{", "[]", "{}", "[" * 100_000, '{"last": {"step": "4"}}'):
        RunFolder(run.folder).write_text("result.json", damage)
        before = sorted(run.folder.iterdir())
        assert finished_result(run.folder) is None
        assert sorted(run.folder.iterdir()) == before, "looking must not delete"
        assert do_run(run.config, str(run.folder)).failure is None
        assert finished_result(run.folder) is not None


def test_each_result_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a grid of 200 runs, half of them finished before."""
    grid = Grid("office31", (Variant("nsm"),), ("A2W", "A2D"), tuple(range(100)), "features")
    planned = plan(grid, tmp_path)
    assert len(planned) == 200
    for run in planned[:100]:
        RunFolder(run.folder).write_json("result.json", RESULT)
    reads: Counter[str] = Counter()
    original = Path.open

    def count(self: Path, *arguments: Any, **named: Any) -> Any:
        reads[str(self)] += self.name == "result.json" and self.exists()
        return original(self, *arguments, **named)

    monkeypatch.setattr(Path, "open", count)
    results = GridResults(planned)
    assert len(results.unfinished) == 100
    for run in planned[100:]:
        RunFolder(run.folder).write_json("result.json", RESULT)
        entry = results.update(Ended(str(run.folder)))
        assert entry.accuracy("last") == 50.0
        assert len(results.entries) == 200
    assert sum(reads.values()) == 200
    assert max(reads.values()) == 1


def test_workers_that_began_in_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before: after a change of folder the results lay in the old one, and the table was empty."""
    data = blobs()
    pair = (data.source, data.labels), (data.target, data.labels)
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        table = equida.compare(
            *pair, methods=["source_only", "nsm"], seeds=1, jobs=2, recipe_params=SHORT,
            out="compared", progress=False,
        )  # fmt: skip
        assert len([row for row in table.rows if row.cells[table.columns[0].key].mean]) == 2
        assert len([*Path("compared").glob("*/result.json")]) == 2
