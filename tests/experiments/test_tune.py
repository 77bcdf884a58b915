"""A search over settings: resumed, in parallel, without target labels, and what it refuses."""

import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import equida
from equida.cli import main
from equida.errors import InputError
from equida.experiments import study as studies
from equida.experiments import tune as tuning
from equida.experiments.execute import Ended, Workers, do_run
from equida.experiments.grid import Judge, PlannedRun
from equida.experiments.tune import Tuned, TuneRequest, run_tune
from equida.methods import METHODS
from equida.runs.search import Search, read_search
from equida.training.request import AdaptRequest, Remarks

pytest.importorskip("optuna", reason="needs optuna: pip install 'equida[tune]'")

from equida.experiments.study import Study, search_space, sqlite_url, storage_errors

TINY: dict[str, Any] = {"iterations": 6, "evaluate_every": 2, "batch_size": 20, "bottleneck": 4}


class Here:
    """Does runs in this process; `done` has their folders, and `most` may end the whole search."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.most = 1000

    def __call__(self, planned: Sequence[PlannedRun], workers: Workers) -> Iterator[Ended]:
        for run in planned:
            if len(self.done) >= self.most:
                raise KeyboardInterrupt
            self.done.append(run.folder.name)
            yield do_run(run.config, str(run.folder), judge=run.judge)


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> Here:
    made = Here()
    monkeypatch.setattr(tuning, "do_runs", made)
    return made


def write_blobs(file: Path, target_labels: Any = None) -> Path:
    """Two moved domains of three classes that overlap, so that settings differ in their scores."""
    random = np.random.default_rng(0)
    centres, labels = random.normal(size=(3, 6)), np.arange(60) % 3
    a, b = (centres[labels] + move + random.normal(size=(60, 6)) for move in (0.0, 0.8))
    given = labels if target_labels is None else target_labels
    names = np.array(["x", "y", "z"])
    np.savez(file, a_x=a, a_y=labels, b_x=b, b_y=given, bare_x=b, classes=names)
    return file


@pytest.fixture(scope="module")
def blobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_blobs(tmp_path_factory.mktemp("data") / "blobs.npz")


def request(blobs: Path, out: Path, target: str = "b", **more: Any) -> TuneRequest:
    run = AdaptRequest(f"{blobs}:a", f"{blobs}:{target}", recipe_params=TINY)
    usual: dict[str, Any] = {"trials": 4, "jobs": 1}
    return TuneRequest(run, out, **(usual | more))


def tune(blobs: Path, out: Path, target: str = "b", **more: Any) -> Tuned:
    return run_tune(request(blobs, out, target, **more), Remarks())


def settings(search: Search) -> list[tuple[Any, ...]]:
    return [(one.method, dict(one.overrides), one.state, one.score) for one in search.tried]


@pytest.mark.slow(reason="whole searches with their database")
def test_the_default_is_first_and_the_best_is_chosen(
    blobs: Path, tmp_path: Path, here: Here
) -> None:
    done = tune(blobs, tmp_path / "out", method="nsm,bnm", trials=6)
    tried = done.search.tried
    assert [(one.method, dict(one.overrides), one.default) for one in tried[:2]] == [
        ("nsm", {}, True),
        ("bnm", {}, True),
    ]
    assert not any(one.default for one in tried[2:])
    assert len(here.done) == 6
    for one in tried:
        result = json.loads((Path(one.folder) / "result.json").read_text())
        assert one.score == result["last"]["knn_balance"]
        ranges = {searched.name: searched.range for searched in search_space(one.method)}
        for name, value in one.overrides.items():
            assert ranges[name].low <= value <= ranges[name].high
    best = max(one.score or 0.0 for one in tried)
    assert done.search.chosen is not None
    assert done.search.chosen.score == best
    assert done.method_params == dict(done.search.chosen.overrides)
    assert read_search(tmp_path / "out") == done.search
    assert done.run.result is not None
    assert done.run.result["last"]["knn_balance"] == best
    labels = done.run.predict(np.zeros((2, 6), "f4"), progress=False).labels
    assert len(labels) == 2


def test_what_is_searched_are_the_declared_ranges() -> None:
    names = [one.name for one in search_space("bnm+cwsm")]
    assert names == ["bnm.trade_off", "cwsm.trade_off", "cwsm.r"]
    assert search_space("source_only") == []
    # Office-Home has presets for NSM: they are its default setting there, eps among them.
    preset = {one.name: one.default for one in search_space("nsm", "office_home")}
    assert preset == {"trade_off": 1.0, "r": 0.5, "alpha": 2.0, "eps": 1e-6}
    for method in METHODS:
        for one in search_space(method):
            assert one.range.low <= one.range.high


@pytest.mark.slow(reason="whole searches with their database")
def test_an_interrupted_search_continues_as_if_it_had_not_been(
    blobs: Path, tmp_path: Path, here: Here
) -> None:
    whole = tune(blobs, tmp_path / "whole", method="nsm,bnm", trials=6, jobs=2)
    here.done.clear()
    here.most = 3  # the third setting has begun, with the fourth
    with pytest.raises(KeyboardInterrupt):
        tune(blobs, tmp_path / "cut", method="nsm,bnm", trials=6, jobs=2)
    before, here.most = list(here.done), 1000
    again = tune(blobs, tmp_path / "cut", method="nsm,bnm", trials=6, jobs=2)
    assert settings(again.search) == settings(whole.search)
    # What was told of before is not done again; the run that had ended untold is only read.
    assert here.done[len(before) :] == [Path(one.folder).name for one in again.search.tried[2:]]
    here.done.clear()
    assert settings(tune(blobs, tmp_path / "cut", method="nsm,bnm", trials=6).search) == settings(
        whole.search
    )
    assert here.done == []
    further = tune(blobs, tmp_path / "cut", method="nsm,bnm", trials=7)
    assert len(further.search.tried) == 7
    assert len(here.done) == 1


@pytest.mark.slow(reason="whole searches with their database")
def test_target_labels_are_not_read(blobs: Path, tmp_path: Path, here: Here) -> None:
    nonsense = write_blobs(tmp_path / "blobs.npz", np.random.default_rng(1).permutation(60) % 3)
    known = tune(blobs, tmp_path / "known", trials=3)
    other = tune(nonsense, tmp_path / "other", trials=3)
    bare = tune(blobs, tmp_path / "bare", "bare", trials=3)
    assert settings(known.search) == settings(other.search) == settings(bare.search)
    for done in (known, other, bare):
        assert done.run.accuracy is None
        assert not done.search.uses_target_labels
        for file in (done.folder).rglob("result.json"):
            result = json.loads(file.read_text())
            assert "accuracy" not in result["last"]
            assert "confusion" not in result
            assert "oracle" not in result["picks"]


@pytest.mark.slow(reason="whole searches with their database")
def test_an_oracle_is_marked_everywhere(
    blobs: Path, tmp_path: Path, here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    words = ["tune", f"{blobs}:a", f"{blobs}:b", "--oracle", "--trials", "3", "--jobs", "1"]
    words += ["--out", str(out)]
    for name, value in TINY.items():
        words += [f"--{name.replace('_', '-')}", str(value)]
    assert main(words) == 0
    printed = capsys.readouterr()
    mark = "oracle (uses target labels)"
    assert mark in printed.err
    assert mark in " ".join(printed.out.split())
    for folder in (out, out / "chosen"):
        record = json.loads((folder / "search.json").read_text())
        assert record["uses_target_labels"] is True
        assert record["score"] == "accuracy"
    page = (out / "report.html").read_text()
    assert mark in page
    assert "This search looked at target labels" in page
    search = read_search(out)
    assert search is not None
    assert search.chosen is not None
    results = [json.loads(file.read_text()) for file in (out / "trials").glob("*/result.json")]
    assert len(results) == 3
    assert search.chosen.score == max(result["last"]["accuracy"] for result in results)
    with pytest.raises(InputError, match="--oracle needs target labels, and bare has none"):
        tune(blobs, tmp_path / "bare", "bare", oracle=True)


@pytest.mark.slow(reason="whole searches with their database")
def test_two_workers_give_the_search_of_two_at_once(
    blobs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(tuning, "do_runs", Here())
        expected = tune(blobs, tmp_path / "here", jobs=2)
    done = tune(blobs, tmp_path / "out", jobs=2)
    assert settings(done.search) == settings(expected.search)
    assert len(list((tmp_path / "out" / "trials").glob("*/result.json"))) == 4
    url, about = sqlite_url(tmp_path / "out" / "study.db"), done.search.about
    with storage_errors(url):
        study = Study(url, f"equida-{tuning._digest(about)}", ["nsm"], None, 0, "nobody")
        assert [one.number for one in study.ended()] == [0, 1, 2, 3]
        assert [one.state for one in study.ended()] == ["finished"] * 4


def test_tables_that_another_machine_has_just_made_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    optuna = pytest.importorskip("optuna")
    from sqlalchemy.exc import IntegrityError, OperationalError

    opened = []
    late: list[Exception] = [
        IntegrityError("CREATE TABLE", {}, Exception("duplicate key")),
        OperationalError("CREATE TABLE", {}, Exception("table studies already exists")),
    ]

    class Storage(optuna.storages.RDBStorage):  # type: ignore[misc, name-defined]
        def __init__(self, url: str) -> None:
            opened.append(url)
            if late:
                raise late.pop()
            super().__init__(url)

    monkeypatch.setattr(optuna.storages, "RDBStorage", Storage)
    monkeypatch.setattr(studies, "RETRY_SECONDS", 0.0)
    url = sqlite_url(tmp_path / "study.db")
    with storage_errors(url):
        assert Study(url, "shared", ["nsm"], None, 0, "me").ended() == []
    assert len(opened) == 3
    late += [OperationalError("CONNECT", {}, Exception("the server does not answer"))]
    with pytest.raises(InputError, match="the server does not answer"), storage_errors(url):
        Study(url, "shared", ["nsm"], None, 0, "me")
    assert len(opened) == 4


@pytest.mark.slow(reason="whole searches with their database")
def test_machines_share_a_database(blobs: Path, tmp_path: Path, here: Here) -> None:
    storage = sqlite_url(tmp_path / "shared {1}.db")
    first = tune(blobs, tmp_path / "first", trials=2, storage=storage)
    second = tune(blobs, tmp_path / "second", trials=3, storage=storage)
    assert settings(second.search)[:2] == settings(first.search)
    assert [bool(one.folder) for one in second.search.tried] == [False, False, True]
    assert second.run.path == tmp_path / "second" / "chosen"
    assert not (tmp_path / "second" / "study.db").exists()


@pytest.mark.slow(reason="whole searches with their database")
def test_a_setting_that_somebody_else_began_is_left_to_them(
    blobs: Path, tmp_path: Path, here: Here
) -> None:
    done = tune(blobs, tmp_path / "out", trials=2)
    name = f"equida-{tuning._digest(done.search.about)}"
    url = sqlite_url(tmp_path / "out/study.db")
    with storage_errors(url):
        study = Study(url, name, ["nsm"], None, 0, "me")
        theirs = study.ask()
        assert study.unfinished() == [theirs]
    again = tune(blobs, tmp_path / "out", trials=3)
    assert [one.number for one in again.search.tried] == [0, 1, 3]


@pytest.mark.slow(reason="whole searches with their database")
def test_a_run_below_the_median_is_stopped_and_not_chosen(
    blobs: Path, tmp_path: Path, here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Judge] = []
    plain = tuning._Leader._judge

    def strict(leader: Any) -> Judge:
        """Whatever comes after six runs is behind."""
        seen.append(plain(leader))
        ended = len(leader.search.tried)
        return Judge(leader.search.score, {4: 2.0}) if ended == 6 else seen[-1]

    monkeypatch.setattr(tuning._Leader, "_judge", strict)
    done = tune(blobs, tmp_path / "out", trials=7)
    stopped = done.search.tried[-1]
    assert stopped.state == "stopped"
    assert "stopped at step 4" in stopped.reason
    assert done.search.chosen is not None
    assert done.search.chosen.number < 6
    folder = Path(stopped.folder)
    assert not (folder / "result.json").exists()
    assert not (folder / "checkpoint.pt").exists()
    scores = [
        json.loads(line)["evaluation"]["knn_balance"]
        for one in done.search.tried[:6]
        for line in (Path(one.folder) / "log.jsonl").read_text().splitlines()
        if '"evaluation"' in line and json.loads(line)["step"] == 4
    ]
    # Steps before a third of the run, and the last one, stop nothing; fewer than five runs neither.
    assert seen[4].thresholds == {}
    assert dict(seen[6].thresholds).keys() == {2, 4}
    assert seen[6].thresholds[4] == pytest.approx(np.median(scores))


@pytest.mark.slow(reason="whole searches with their database")
@pytest.mark.parametrize("validator", ["cluster_agreement", "mixval"])
def test_a_costly_validator_is_computed_where_it_decides(
    validator: str, blobs: Path, tmp_path: Path, here: Here
) -> None:
    done = tune(blobs, tmp_path / "out", trials=1, validator=validator)
    assert 0.0 < (done.search.tried[0].score or 0.0) <= 1.0
    assert done.search.chosen_by == validator


def test_a_method_without_hyperparameters_is_tried_once(
    blobs: Path, tmp_path: Path, here: Here
) -> None:
    """Before: one setting counted as often as there were trials."""
    said: list[str] = []
    asked = request(blobs, tmp_path / "s", method="source_only", trials=3)
    tuned = run_tune(asked, Remarks(said.append))
    assert len(tuned.search.tried) == len(here.done) == 1
    assert "source_only has no hyper-parameter to search: only the default setting is tried" in said
    assert len(tune(blobs, tmp_path / "t", method="source_only,nsm", trials=3).search.tried) == 3


def test_settings_that_fail_are_said(blobs: Path, tmp_path: Path, here: Here) -> None:
    asked = request(blobs, tmp_path / "out", trials=2)
    run = dataclasses.replace(asked.run, recipe_params={**TINY, "learning_rate": 1e30})
    with pytest.raises(
        InputError, match=r"none of 2 settings .* the first failed: .*learning rate"
    ):
        run_tune(dataclasses.replace(asked, run=run), Remarks())


@pytest.mark.slow(reason="whole searches with their database")
def test_a_task_of_a_benchmark_and_rows_in_memory(
    toy_office: Path, tmp_path: Path, here: Here
) -> None:
    done = equida.tune(
        dataset="office31", task="A2W", data=toy_office, trials=1, jobs=1,
        recipe_params=TINY, out=tmp_path / "office", progress=False,
    )  # fmt: skip
    assert done.run.task == "A2W"
    assert "setting" in done._repr_html_()
    random = np.random.default_rng(0)
    X, y = random.normal(size=(40, 4)), np.arange(40) % 2
    done = equida.tune(
        (X, y), X + 1, trials=1, jobs=1, recipe_params=TINY, out=tmp_path / "rows", progress=False
    )
    assert done.page.is_file()
    assert "NSM" in repr(done)


def test_mistakes_are_one_line(blobs: Path, tmp_path: Path, here: Here) -> None:
    tune(blobs, tmp_path / "there", trials=1)
    (tmp_path / "not.db").write_text("this is no database")
    changes: list[tuple[dict[str, Any], str]] = [
        ({"validator": "best"}, "validator 'best' does not exist"),
        ({"trials": 0}, "--trials is 0; it must be a whole number from 1"),
        ({"method": "nms"}, "did you mean 'nsm'"),
        ({"oracle": True, "validator": "knn"}, "--oracle and --validator knn both choose"),
        ({"storage": "sqlite:////nowhere/at/all.db"}, "--storage sqlite:.*cannot be used"),
        ({"storage": f"sqlite:///{tmp_path}/not.db"}, "not a database"),
        ({"storage": "postgres"}, "--storage 'postgres' cannot be used"),
        ({"storage": "nosuch://me:secret@host/x"}, r"nosuch://me:\*\*\*@host/x"),
        ({"storage": "mysql://me:secret@host/x"}, r"me:\*\*\*@host.*install the driver"),
        ({"task": "A2W"}, "--task A2W is one of a data set"),
        ({"cluster": "here"}, "--cluster is 'here'"),
    ]
    for change, said in changes:
        with pytest.raises(InputError, match=said) as caught:
            tune(blobs, tmp_path / "new", **change)
        assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match=r"another value of score .*'bnm' here"):
        tune(blobs, tmp_path / "there", validator="bnm")
    other = write_blobs(tmp_path / "other.npz", np.zeros(60, int))
    with pytest.raises(InputError, match="holds a search with other data"):
        tune(other, tmp_path / "there")
    with pytest.raises(InputError, match="holds a run, not a search"):
        tune(blobs, tmp_path / "there" / "chosen")
    with pytest.raises(InputError, match="say which task of office31"):
        run_tune(TuneRequest(AdaptRequest(None, None, dataset="office31")), Remarks())
    with pytest.raises(InputError, match="say what to search on"):
        run_tune(TuneRequest(AdaptRequest(None, None)), Remarks())


@pytest.mark.slow(reason="whole searches with their database")
def test_a_database_runs_no_code(blobs: Path, tmp_path: Path, here: Here) -> None:
    import optuna

    done = tune(blobs, tmp_path / "out", trials=1)
    (tmp_path / "theirs.py").write_text("raise SystemExit('imported')")
    study = optuna.load_study(
        study_name=f"equida-{tuning._digest(done.search.about)}",
        storage=sqlite_url(tmp_path / "out" / "study.db"),
    )
    attributes = {"method": "theirs:Method", "overrides": {}, "default": False}
    study.add_trial(optuna.create_trial(value=2.0, user_attrs=attributes))
    with pytest.raises(InputError, match="theirs:Method"):
        tune(blobs, tmp_path / "out", trials=2)
