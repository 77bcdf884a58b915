"""A comparison on a data set that nobody has registered, found by its path."""

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import pytest

from equida.data import BENCHMARKS
from equida.errors import InputError
from equida.experiments.execute import GridResults, Workers, do_run
from equida.experiments.grid import plan
from equida.experiments.run import BenchRequest, make_grid
from equida.runs.group import group_runs
from equida.runs.read import read_runs
from equida.runs.table import make_table
from equida.training.request import Remarks

TINY: dict[str, Any] = {"iterations": 4, "evaluate_every": 2}


def done(request: BenchRequest) -> GridResults:
    """The runs of a comparison, done in this process."""
    planned = plan(make_grid(request, Remarks()), request.out)
    results = GridResults(planned)
    for run in planned:
        results.update(do_run(run.config, str(run.folder)))
    return results


def request(dataset: Path | str, out: Path, **more: Any) -> BenchRequest:
    usual: dict[str, Any] = {"methods": "source_only", "seeds": 1, "recipe_params": TINY}
    return BenchRequest(str(dataset), out, **(usual | more))


@pytest.mark.slow(reason="several runs")
def test_a_path_gives_the_figures_of_the_registered_data_set(
    toy_office: Path, tmp_path: Path
) -> None:
    own = done(request(toy_office, tmp_path / "own", tasks="amazon2webcam,webcam2dslr"))
    known = done(request("office31", tmp_path / "known", data=str(toy_office), tasks="A2W,W2D"))
    mine, theirs = ({e.task: dict(e.result or {}) for e in each.entries} for each in (own, known))
    assert list(mine) == ["amazon2webcam", "webcam2dslr"]
    for task, registered in (("amazon2webcam", "A2W"), ("webcam2dslr", "W2D")):
        assert mine[task]["benchmark"] is None
        assert mine[task]["last"] == theirs[registered]["last"]
        assert mine[task]["confusion"] == theirs[registered]["confusion"]


@pytest.mark.slow(reason="several runs")
def test_runs_are_found_again_after_data_have_moved_and_group_by_digest(
    toy_office: Path, tmp_path: Path
) -> None:
    first, second = tmp_path / "a" / "office.npz", tmp_path / "b" / "office.npz"
    for place in (first, second):
        place.parent.mkdir()
        shutil.copy(toy_office, place)
    asked = request(first, tmp_path / "runs", tasks="dslr2webcam,amazon2webcam")
    done(asked)
    shutil.rmtree(first.parent)
    again = plan(make_grid(dataclasses.replace(asked, dataset=str(second)), Remarks()), asked.out)
    assert not GridResults(again).unfinished
    (group,) = group_runs(read_runs(asked.out))
    # As found: the order of the data set's tasks, not that of the folders of runs.
    assert (group.title, group.tasks) == ("office", ("amazon2webcam", "dslr2webcam"))
    assert group.data_set is not None
    table = make_table(
        group.entries, benchmark=group.data_set, tasks=group.tasks, seeds=group.seeds
    )
    assert [column.title for column in table.columns] == ["amazon→webcam", "dslr→webcam", "Avg"]
    assert "Accuracy (%) on office" in table.caption


def test_defaults_of_a_registered_data_set_do_not_follow_from_a_name(
    toy_office: Path, tmp_path: Path
) -> None:
    file = tmp_path / "visda2017.npz"
    shutil.copy(toy_office, file)
    grid = make_grid(request(file, tmp_path / "runs", methods="nsm"), Remarks())
    assert grid.data_set is not None
    assert grid.data_set.name in BENCHMARKS
    assert {run.config.benchmark for run in plan(grid, tmp_path)} == {None}


def test_what_differing_classes_leave_out_is_said(
    tmp_path: Path, toy_office: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import numpy as np

    stored = dict(np.load(toy_office))
    kept = stored["webcam_y"] < 30
    stored["webcam_x"], stored["webcam_y"] = stored["webcam_x"][kept], stored["webcam_y"][kept]
    file = tmp_path / "less.npz"
    np.savez(file, **stored)
    said: list[str] = []
    asked = request(file, tmp_path / "runs", tasks="amazon2webcam,amazon2dslr")
    grid = make_grid(asked, Remarks(said.append))
    assert len(said) == 1
    assert said[0].startswith(
        "amazon2webcam: 30 classes, those that both domains have by their labels"
    )
    assert [run.config.task and run.config.task.classes for run in plan(grid, tmp_path)] == [
        "shared",
        "shared",
    ]
    kept_all = make_grid(dataclasses.replace(asked, classes="source"), Remarks(said.append))
    assert kept_all.data_spec("amazon2webcam").classes == "source"
    assert len(said) == 1


def test_no_oracle_where_no_target_has_labels(tmp_path: Path, toy_office: Path) -> None:
    """Before: a table of dashes. One task with labels is enough for a table."""
    import numpy as np

    stored = dict(np.load(toy_office))
    del stored["webcam_y"]
    file = tmp_path / "bare.npz"
    np.savez(file, **stored)
    asked = request(file, tmp_path / "runs", tasks="amazon2webcam", select="oracle")
    with pytest.raises(InputError, match="target labels, and the target of amazon2webcam has none"):
        make_grid(asked, Remarks())
    make_grid(dataclasses.replace(asked, tasks="amazon2webcam,amazon2dslr"), Remarks())


@pytest.mark.parametrize(
    ("variable", "asked", "on_rows", "expected"),
    [("", 0, True, 1), ("3", 0, True, 3), ("3", 2, True, 2), ("", 0, False, 4), ("3", 0, False, 3)],
)
def test_threads_of_a_run(
    variable: str, asked: int, on_rows: bool, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One on features, a share of the cores on images; the user's number comes first."""
    monkeypatch.setenv("OMP_NUM_THREADS", variable)
    monkeypatch.setattr("equida.experiments.execute.cores", lambda: 8)
    assert Workers(2, asked).resolved(on_rows=on_rows).threads == expected
