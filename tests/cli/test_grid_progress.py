"""What a grid shows while it goes on."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from equida.bench.grid import Grid, Planned, plan
from equida.bench.results import read_records
from equida.bench.schedule import Workers
from equida.bench.sweep import Variant
from equida.bench.work import Outcome
from equida.cli.grid_progress import GridProgress
from equida.report.tables import Comparison, comparison
from equida.training.folder import RunFolder

GRID = Grid("office31", (Variant("bnm"), Variant("nsm")), ("A2W",), (0, 1), "features")


@pytest.fixture
def planned(tmp_path: Path) -> list[Planned]:
    return plan(GRID, tmp_path)


@pytest.fixture
def progress(planned: list[Planned]) -> GridProgress:
    def table() -> Comparison:
        return comparison(read_records(planned), "office31", GRID.tasks, GRID.seeds)

    return GridProgress(planned, planned[1:], Workers(jobs=2), table)


def finish(run: Planned, accuracy: float) -> Outcome:
    evaluation = {"step": 1.0, "accuracy": accuracy, "equity": 0.5, "discriminability": 0.5}
    result = {"task": "A2W", "metric": "accuracy", "last": evaluation, "picks": {}, "seconds": 2.0}
    RunFolder(run.folder).write_json("result.json", result)
    return Outcome(str(run.folder))


def test_runs_done_running_failed_and_time_left(
    progress: GridProgress, planned: list[Planned], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of four was done before; one ends well and one badly in ten seconds."""
    now = progress.started
    monkeypatch.setattr("equida.cli.grid_progress.time.monotonic", lambda: now + 10)
    assert progress.line() == "1/4 runs done, 0 running; 10 s so far"
    progress.ended(finish(planned[1], 0.5))
    progress.ended(Outcome(str(planned[2].folder), "no memory"))
    RunFolder(planned[3].folder).write_json("running.json", {"attempts": 1})
    at_work = f"1 running ({planned[3].name})"
    assert progress.line() == f"2/4 runs done, {at_work}, 1 failed; about 5 s left"


def test_on_a_terminal_the_table_fills(progress: GridProgress, planned: list[Planned]) -> None:
    screen = io.StringIO()
    progress.console = Console(file=screen, force_terminal=True, width=100)
    with progress:
        progress.live.refresh()  # type: ignore[union-attr]
        assert "87.5" not in screen.getvalue()
        progress.ended(finish(planned[1], 0.875))
        progress.live.refresh()  # type: ignore[union-attr]
        assert "87.5" in screen.getvalue()


def test_into_a_file_each_run_is_a_line(
    progress: GridProgress, planned: list[Planned], capsys: pytest.CaptureFixture[str]
) -> None:
    with progress:
        progress.ended(finish(planned[1], 0.875))
        progress.ended(Outcome(str(planned[2].folder), "no memory"))
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "3 of 4 runs to do, 2 at once"
    assert said[1].startswith(f"2/4 {planned[1].name}: 87.5 % in 2.0 s; about ")
    assert f"{planned[2].name}: failed: no memory" in said[2]
    assert said[3].startswith("2 runs in ")
