"""What a grid shows while it goes on."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from equida.experiments.execute import Ended, GridResults, Workers
from equida.experiments.grid import Grid, PlannedRun, plan
from equida.experiments.watch import GridWatch
from equida.progress import Mode
from equida.runs.entry import Entry
from equida.runs.table import Table, make_table
from equida.runs.variant import Variant
from equida.training.folder import RunFolder

GRID = Grid("office31", (Variant("bnm"), Variant("nsm")), ("A2W",), (0, 1), "features")


class Followed:
    """A grid of four runs, of which one was done before, and what shows it."""

    def __init__(self, folder: Path, mode: Mode) -> None:
        self.planned = plan(GRID, folder)
        self.results = GridResults(self.planned)
        self.watch = GridWatch(4, self.planned[1:], Workers(jobs=2), self.table, mode)

    def table(self) -> Table:
        entries = self.results.entries
        return make_table(entries, benchmark="office31", tasks=GRID.tasks, seeds=GRID.seeds)

    def finish(self, run: PlannedRun, accuracy: float) -> Entry:
        evaluation = {"step": 1.0, "accuracy": accuracy, "equity": 0.5, "discriminability": 0.5}
        result = {"metric": "accuracy", "last": evaluation, "picks": {}, "seconds": 2.0}
        result |= {
            "task": run.task,
            "classes": [],
            "method": run.config.method,
            "seed": run.seed,
            "kept": "last",
        }
        RunFolder(run.folder).write_json("result.json", result)
        return self._end(Ended(str(run.folder)))

    def fail(self, run: PlannedRun) -> Entry:
        return self._end(Ended(str(run.folder), "no memory"))

    def _end(self, ended: Ended) -> Entry:
        entry = self.results.update(ended)
        self.watch.ended(entry, ended)
        return entry


def test_runs_done_running_failed_and_time_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of four was done before; one ends well in two seconds and one badly."""
    grid = Followed(tmp_path, "silent")
    now = grid.watch.started
    monkeypatch.setattr("equida.experiments.watch.time.monotonic", lambda: now + 10)
    assert grid.watch.line() == "1/4 runs done, 0 running; 10 s so far"
    grid.finish(grid.planned[1], 0.5)
    grid.fail(grid.planned[2])
    RunFolder(grid.planned[3].folder).write_json("running.json", {"attempts": 1})
    at_work = "1 running (NSM A2W seed 1)"
    assert grid.watch.line() == f"2/4 runs done, {at_work}, 1 failed; about 2 s left"


def test_in_a_terminal_the_table_fills(tmp_path: Path) -> None:
    grid, screen = Followed(tmp_path, "terminal"), io.StringIO()
    grid.watch.console = Console(file=screen, force_terminal=True, width=100)
    with grid.watch as watch:
        assert watch.live is not None
        watch.live.refresh()
        assert "87.5" not in screen.getvalue()
        grid.finish(grid.planned[1], 0.875)
        watch.live.refresh()
        assert "87.5" in screen.getvalue()


def test_into_a_file_each_run_is_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    grid = Followed(tmp_path, "lines")
    with grid.watch:
        finished = grid.finish(grid.planned[1], 0.875)
        failed = grid.fail(grid.planned[2])
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "3 of 4 runs to do, 2 at once"
    assert said[1].startswith(f"2/4 {finished.name}: 87.5 % in 2.0 s; about ")
    assert f"{failed.name}: failed: no memory" in said[2]
    assert said[3].startswith("2 runs in ")


def test_where_nobody_looks_nothing_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grid = Followed(tmp_path, "silent")
    with grid.watch:
        grid.finish(grid.planned[1], 0.875)
    assert capsys.readouterr() == ("", "")
