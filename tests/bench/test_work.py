"""One run of a grid: done once, by one process, its failure recorded."""

import fcntl
import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from equida.bench.grid import Grid, Planned, plan
from equida.bench.sweep import Variant
from equida.bench.work import MOST_ATTEMPTS, do_run, is_finished
from equida.training.folder import RunFolder

QUICK = {"iterations": 4, "evaluate_every": 2, "bottleneck": 4, "batch_size": 8}


@pytest.fixture
def planned(toy_office: Path, tmp_path: Path) -> Callable[..., Planned]:
    def make(**changes: object) -> Planned:
        grid = Grid(
            "office31", (Variant("nsm"),), ("A2W",), (0,), "features", QUICK | changes,
            str(toy_office),
        )  # fmt: skip
        return plan(grid, tmp_path)[0]

    return make


def test_a_run_is_done_once(planned: Callable[..., Planned]) -> None:
    run = planned()
    assert do_run(run.config, str(run.folder)).failure is None
    result = run.folder / "result.json"
    written = result.stat().st_mtime_ns
    assert do_run(run.config, str(run.folder)).failure is None
    assert result.stat().st_mtime_ns == written
    assert not (run.folder / "running.json").exists()


def test_a_failure_is_recorded_with_its_reason_and_tried_again(
    planned: Callable[..., Planned],
) -> None:
    run = planned(learning_rate=1e30)
    outcome = do_run(run.config, str(run.folder))
    assert outcome.failure is not None
    assert "lower the learning rate" in outcome.failure
    recorded = json.loads((run.folder / "failed.json").read_text())
    assert recorded["reason"] == outcome.failure
    assert (run.folder / "config.json").exists()
    assert do_run(run.config, str(run.folder)).failure == outcome.failure


def test_a_missing_file_is_a_failure_too(toy_office: Path, tmp_path: Path) -> None:
    grid = Grid("office31", (Variant("nsm"),), ("A2W",), (0,), "features", {}, "/none.npz")
    run = plan(grid, tmp_path)[0]
    assert "none.npz" in str(do_run(run.config, str(run.folder)).failure)
    assert (run.folder / "failed.json").exists()


def test_an_unexpected_error_keeps_its_traceback(
    planned: Callable[..., Planned], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = planned()

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("first line\nsecond line")

    monkeypatch.setattr("equida.training.loop.train", fail)
    assert do_run(run.config, str(run.folder)).failure == "RuntimeError: first line"
    recorded = json.loads((run.folder / "failed.json").read_text())
    assert "Traceback" in recorded["traceback"]


def test_a_run_that_kills_its_process_is_given_up(planned: Callable[..., Planned]) -> None:
    run = planned()
    RunFolder(run.folder).write_json("running.json", {"attempts": MOST_ATTEMPTS})
    assert "died 2 times" in str(do_run(run.config, str(run.folder)).failure)


def test_two_processes_never_do_the_same_run(planned: Callable[..., Planned]) -> None:
    run = planned()
    RunFolder(run.folder)
    with (run.folder / "lock").open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        second = threading.Thread(target=do_run, args=(run.config, str(run.folder)))
        second.start()
        second.join(0.3)
        assert second.is_alive()
        # What the other process would have left.
        RunFolder(run.folder).write_json("result.json", {"last": {}})
    second.join(20)
    assert not second.is_alive()
    assert not (run.folder / "config.json").exists()


def test_a_result_that_cannot_be_read_is_made_again(planned: Callable[..., Planned]) -> None:
    run = planned()
    for damage in ("{", "[]", "{}"):
        RunFolder(run.folder).write_text("result.json", damage)
        assert not is_finished(run.folder)
        assert do_run(run.config, str(run.folder)).failure is None
        assert is_finished(run.folder)
