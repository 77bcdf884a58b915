"""Which method to use on two domains of one's own."""

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equida.data import array_domain
from equida.errors import InputError
from equida.experiments import run as experiments
from equida.experiments.compare import CompareRequest, best_row, run_compare
from equida.experiments.execute import Ended, Workers, do_run
from equida.experiments.grid import PlannedRun
from equida.runs.read import load_run
from equida.training.request import Remarks

TINY: dict[str, Any] = {"iterations": 4, "evaluate_every": 2, "batch_size": 20}


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Runs are done in this process; the folders of those that were done."""
    done: list[str] = []

    def in_this_process(planned: Sequence[PlannedRun], workers: Workers) -> Iterator[Ended]:
        for run in planned:
            done.append(run.folder.name)
            yield do_run(run.config, str(run.folder))

    monkeypatch.setattr(experiments, "do_runs", in_this_process)
    return done


@pytest.fixture
def blobs(tmp_path: Path) -> Path:
    """Two moved domains of three classes, and the second without labels."""
    random = np.random.default_rng(0)
    centres, labels = 3.0 * random.normal(size=(3, 6)), np.arange(45) % 3
    a, b = (centres[labels] + move + random.normal(size=(45, 6)) for move in (0.0, 0.5))
    file = tmp_path / "blobs.npz"
    names = np.array(["x", "y", "z"])
    np.savez(file, a_x=a, a_y=labels, b_x=b, b_y=labels, bare_x=b, classes=names)
    return file


def request(blobs: Path, out: Path, target: str = "b", **more: Any) -> CompareRequest:
    usual: dict[str, Any] = {"methods": "source_only,nsm", "seeds": 2, "recipe_params": TINY}
    return CompareRequest(f"{blobs}:a", f"{blobs}:{target}", out, **(usual | more))


def test_one_table_with_scores_beside_and_resumed(
    blobs: Path, tmp_path: Path, here: list[str]
) -> None:
    table = run_compare(request(blobs, tmp_path / "out"), Remarks())
    assert [row.title for row in table.rows] == ["Source only", "NSM"]
    keys = [column.key for column in table.columns]
    assert keys[:3] == ["a2b", "source_accuracy", "entropy"]
    assert len(here) == 4
    for row in table.rows:
        runs = [load_run(tmp_path / "out" / name) for name in here if row.variant.method in name]
        assert row.cells["a2b"].mean == pytest.approx(
            50.0 * sum(run.accuracy or 0.0 for run in runs)
        )
        last = [run.result["last"]["bnm"] for run in runs if run.result]
        assert row.cells["bnm"].mean == pytest.approx(sum(last) / 2)
    picked = best_row(table, "bnm")
    assert picked is not None
    assert f"{picked.title} (" in table.notes[-2]
    assert "With the target's labels (which choose nothing here)" in table.notes[-1]
    assert "With the target's labels" in (tmp_path / "out" / "table.md").read_text()
    here.clear()
    again = run_compare(request(blobs, tmp_path / "out", methods="source_only,nsm,bnm"), Remarks())
    assert [name.split("-")[1] for name in here] == ["bnm", "bnm"]
    assert len(again.rows) == 3


@pytest.mark.slow(reason="a whole comparison")
def test_without_target_labels_there_is_no_accuracy(
    blobs: Path, tmp_path: Path, here: list[str]
) -> None:
    table = run_compare(request(blobs, tmp_path / "out", "bare", seeds=1), Remarks())
    assert not any(column.accuracy for column in table.columns)
    assert table.caption.startswith("Label-free scores on a2bare")
    assert "Without a target label, the scores would pick" in table.notes[-1]
    assert all(row.cells["entropy"].mean is not None for row in table.rows)
    labelled = request(blobs, tmp_path / "two", seeds=1, ignore_target_labels=True)
    assert not any(column.accuracy for column in run_compare(labelled, Remarks()).columns)


def test_rows_in_memory(tmp_path: Path, here: list[str]) -> None:
    x, y = np.random.default_rng(0).normal(size=(30, 4)), np.arange(30) % 2
    source, target = array_domain(x, y, name="source"), array_domain(x + 1, name="target")
    asked = CompareRequest(source, target, tmp_path, "nsm", 1, recipe_params=TINY)
    (row,) = run_compare(asked, Remarks()).rows
    assert row.cells["snd"].count == 1


def test_mistakes_are_found_before_data_are_read(tmp_path: Path) -> None:
    asked = CompareRequest("nowhere", "nowhere", tmp_path / "out")
    changes: list[tuple[dict[str, Any], str]] = [
        ({"methods": "nsm,nms"}, "did you mean 'nsm'"),
        ({"seeds": "none"}, "--seeds is 'none'"),
        ({"select": "best"}, "--select is 'best'"),
        ({"recipe": "quick"}, "recipe 'quick' does not exist"),
        ({}, "nowhere does not exist"),
    ]
    for change, said in changes:
        with pytest.raises(InputError, match=said):
            run_compare(dataclasses.replace(asked, **change), Remarks())
