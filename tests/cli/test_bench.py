"""`equida bench` as a user calls it: done once, killed, failing, swept, in every format."""

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests import processes
from tests.small_data import blobs

from equida.cli import main
from equida.data.benchmarks import BENCHMARKS
from equida.models.extractor import FeatureExtractor
from equida.training.recorder import Recorder

QUICK = ["--bottleneck", "4", "--batch-size", "8", "--jobs", "1"]
SHORT = ["--iterations", "4", "--evaluate-every", "2"]
Bench = Callable[..., int]


@pytest.fixture
def bench(toy_office: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    # As on one core: small networks with several threads take long on a busy machine.
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0})

    def call(*words: str, out: str = "runs") -> int:
        start = ["bench", "office31", "--data", str(toy_office), "--out", str(tmp_path / out)]
        return main([*start, *QUICK, *words])

    return call


def results(root: Path) -> dict[str, int]:
    return {file.parent.name: file.stat().st_mtime_ns for file in root.glob("*/result.json")}


@pytest.mark.slow(reason="several runs")
def test_finished_runs_are_not_repeated_and_a_changed_recipe_is_a_new_run(
    bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--methods", "source_only,nsm", "--tasks", "A2W,D2W", "--seeds", "2", *SHORT]
    assert bench(*words) == 0
    first = capsys.readouterr()
    assert "8/8" in first.err
    before = results(tmp_path / "runs")
    assert len(before) == 8
    assert bench(*words) == 0
    second = capsys.readouterr()
    assert results(tmp_path / "runs") == before
    assert second.err == ""
    assert second.out == first.out
    assert bench("--methods", "nsm", "--tasks", "A2W", "--seeds", "1", "--iterations", "3") == 0
    assert before.items() <= results(tmp_path / "runs").items()
    assert len(results(tmp_path / "runs")) == 9


def test_other_data_in_the_same_place_are_other_runs(
    bench: Bench, toy_office: Path, tmp_path: Path
) -> None:
    words = ["--methods", "nsm", "--tasks", "A2W", "--seeds", "1", *SHORT]
    assert bench(*words) == 0
    with np.load(toy_office) as stored:
        arrays: dict[str, Any] = {name: stored[name] for name in stored.files}
    key = next(name for name in arrays if name.endswith("_x"))
    arrays[key] = arrays[key] + 1
    np.savez(toy_office, **arrays)
    assert bench(*words) == 0
    assert len(results(tmp_path / "runs")) == 2


@pytest.mark.slow(reason="several runs")
def test_features_are_computed_once_for_all_runs(
    pictures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of images in Office-31's layout, by two calls with different methods."""
    data, out = tmp_path / "office31", tmp_path / "runs"
    for number, domain in enumerate(("amazon", "dslr", "webcam")):
        for name in BENCHMARKS["office31"].classes:
            folder = data / domain / "images" / name
            folder.mkdir(parents=True)
            picture = pictures / ("photos" if number else "drawings") / "blue" / f"{number}.jpg"
            shutil.copy(picture, folder / "frame_0001.jpg")
    words = ["bench", "office31", "--data", str(data), "--features", "--out", str(out), "--seeds"]
    words += ["1", "--tasks", "A2W,D2W", "--backbone", "tiny_backbone:net", *QUICK, *SHORT]
    batches: list[int] = []
    plain = FeatureExtractor.features

    def counted(self: FeatureExtractor, x: Any, engine: Any) -> Any:
        batches.append(len(x))
        return plain(self, x, engine)

    monkeypatch.setattr(FeatureExtractor, "features", counted)
    assert main([*words, "--methods", "source_only,nsm"]) == 0
    computed = sum(batches)
    assert 3 <= computed <= 3 * 31  # images with the same bytes may share their features
    assert main([*words, "--methods", "cwsm"]) == 0
    assert sum(batches) == computed
    assert len(results(out)) == 6


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_the_grid(toy_office: Path, tmp_path: Path, end: signal.Signals) -> None:
    """Also where the grid's own process alone is told to end."""
    runs = tmp_path / "runs"
    command = processes.equida("bench", "office31", "--data", toy_office, "--out", runs)
    command += ["--methods", "nsm,bnm", *QUICK[:-1], "2", "--iterations", "1000000"]
    with processes.Process(command) as process:
        process.wait_until(lambda: len(list(runs.glob("*/running.json"))) >= 2, "two runs")
        process.send(end)
        ended = process.wait()
        deadline = time.monotonic() + processes.LIMIT
        while process.left_behind():
            assert time.monotonic() < deadline, process.stacks()
            time.sleep(0.05)
    if end == signal.SIGTERM:
        assert ended.code == 143
        assert "equida: interrupted; the same command continues from here" in ended.err


def test_the_table_is_printed_and_written_in_every_format(
    bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--methods", "nsm", "--tasks", "A2W", "--seeds", "1", "--measures", *SHORT]
    for kind in ("md", "tex", "csv", "json"):
        assert bench(*words, "--format", kind) == 0
        printed = capsys.readouterr().out
        assert printed == (tmp_path / "runs" / f"table.{kind}").read_text()
    table = json.loads(printed)
    run = json.loads(next((tmp_path / "runs").glob("*/result.json")).read_text())
    cells = table["rows"][0]["cells"]
    assert cells["A2W"]["mean"] == pytest.approx(100 * run["last"]["accuracy"])
    assert cells["A2W"]["paper"] == 95.4
    assert cells["Equity"]["mean"] == pytest.approx(run["last"]["equity"])


def test_a_selection_shows_what_it_picks(
    bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--methods", "nsm", "--tasks", "A2W", "--seeds", "1", *SHORT]
    for select in ("oracle", "entropy"):
        assert bench(*words, "--select", select, "--format", "json") == 0
        table = json.loads(capsys.readouterr().out)
        run = json.loads(next((tmp_path / "runs").glob("*/result.json")).read_text())
        picked = 100 * run["picks"][select]["accuracy"]
        assert table["rows"][0]["cells"]["A2W"]["mean"] == pytest.approx(picked)
        assert table["select"] == select


def test_a_sweep_makes_its_runs_and_shares_the_default(bench: Bench, tmp_path: Path) -> None:
    words = ["--tasks", "A2W", "--seeds", "1", *SHORT]
    assert bench("--methods", "nsm", *words) == 0
    before = results(tmp_path / "runs")
    assert bench("--methods", "cwsm,nsm", "--sweep", "r=0.5,1", "--sweep", "alpha=1,2", *words) == 0
    after = results(tmp_path / "runs")
    assert before.items() <= after.items()
    assert len(after) == 2 + 4
    table = json.loads((tmp_path / "runs" / "table.json").read_text())
    assert [row["title"] for row in table["rows"]] == [
        "CWSM (r=0.5)", "CWSM (r=1)", "NSM (r=0.5, alpha=1)", "NSM (r=0.5, alpha=2)",
        "NSM (r=1, alpha=1)", "NSM (r=1, alpha=2)",
    ]  # fmt: skip


def test_a_failing_run_is_recorded_and_the_others_go_on(
    bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--methods", "nsm", "--tasks", "A2W", "--seeds", "1", *SHORT]
    words += ["--sweep", "learning_rate=1e38,1e-3"]
    assert bench(*words) == 1
    said = capsys.readouterr()
    assert "failed: the loss term" in said.err
    assert "failed" in said.out
    assert len(results(tmp_path / "runs")) == 1
    [record] = (tmp_path / "runs").glob("*/failed.json")
    assert "lower the learning rate" in json.loads(record.read_text())["reason"]
    assert bench(*words) == 1
    assert "1 of 2 runs to do" in capsys.readouterr().err


def test_a_killed_grid_goes_on_where_it_was(
    bench: Bench, toy_office: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["--methods", "source_only,nsm", "--tasks", "A2W", "--seeds", "2"]
    words += ["--iterations", "200", "--evaluate-every", "10"]
    root = tmp_path / "killed"
    command = processes.equida("bench", "office31", "--data", toy_office, "--out", root)
    with processes.Process([*command, *QUICK, *words, "--jobs", "2"]) as process:
        process.wait_until(
            lambda: any(root.glob("*/result.json")) and any(root.glob("*/checkpoint.pt")),
            "a result and a checkpoint",
        )
        process.send(signal.SIGKILL, group=True)
        process.wait()
    before = results(root)
    assert 0 < len(before) < 4
    resumed: list[int] = []
    plain = Recorder.resume

    def noted(self: Any) -> int:
        resumed.append(plain(self))
        return resumed[-1]

    monkeypatch.setattr(Recorder, "resume", noted)
    assert bench(*words, out="killed") == 0
    assert len(resumed) == 4 - len(before)
    assert max(resumed) >= 10
    assert before.items() <= results(root).items()
    assert bench(*words, out="whole") == 0
    for file in root.glob("*/result.json"):
        ours, whole = (
            json.loads((tmp_path / out / file.parent.name / "result.json").read_text())
            for out in ("killed", "whole")
        )
        assert ours["last"] == whole["last"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--methods", "nms"], "did you mean 'nsm'"),
        (["--methods", "nsm,auto"], "'auto' is a search among methods and stands in no table"),
        (["--methods", "NSM"], "did you mean 'nsm'"),
        (["--format", "html"], "--format is 'html'; it must be one of rich, md, tex, csv, json"),
        (["--backbone", "resnet50"], "--backbone has no effect"),
        (["--tasks", "A2X"], "no task 'A2X'"),
        (["--select", "best"], "--select is 'best'"),
        (["--sweep", "q=1"], "q: neither the recipe nor any of"),
        (["--seeds", "none"], "--seeds"),
        (["--jobs", "-1"], "--jobs"),
        (["--recipe", "papr"], "did you mean 'paper'"),
        (["--data", "nowhere"], "nowhere"),
        (["--cluster", "dask"], "dask://HOST:PORT"),
        (["--iterations", "0"], "iterations is 0"),
    ],
)
def test_mistakes_are_said_on_one_line(
    bench: Bench, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench(*words) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


@pytest.mark.usefixtures("own_folder")
def test_bench_says_what_is_odd_about_its_data(capsys: pytest.CaptureFixture[str]) -> None:
    """Before: adapt and compare did alone."""
    data = blobs()
    views = np.stack([data.source, data.source], 1)
    np.savez("views.npz", a_x=views, a_y=data.labels, b_x=views + 1, b_y=data.labels)
    asked = ["views.npz", "--methods", "nsm", "--seeds", "1", "--out", "b", "--quiet"]
    assert main(["bench", *asked, *QUICK, *SHORT]) == 0
    assert "a has 2 views of 8 features for each sample" in capsys.readouterr().err
