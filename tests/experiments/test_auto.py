"""`method="auto"`: an ordinary run whose setting a label-free validator has chosen."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import rel_entr

import equida
from equida.cli import main
from equida.errors import InputError
from equida.methods.auto import CANDIDATES
from equida.runs.read import Run
from equida.runs.search import Search
from equida.training.evaluate import auto_score
from equida.training.recorder import Recorder

TINY: dict[str, Any] = {"iterations": 6, "evaluate_every": 3, "batch_size": 20, "bottleneck": 4}
RANDOM = np.random.default_rng(0)
LABELS = np.arange(60) % 3
CENTRES = RANDOM.normal(size=(3, 6))
SOURCE = CENTRES[LABELS] + RANDOM.normal(size=(60, 6))
TARGET = CENTRES[LABELS] + 0.8 + RANDOM.normal(size=(60, 6))


def adapt(out: Path, method: str = "auto", labels: Any = LABELS, **more: Any) -> Run:
    target = (TARGET, labels)
    usual: dict[str, Any] = {"recipe_params": TINY, "out": out, "progress": False}
    return equida.adapt((SOURCE, LABELS), target, method=method, **(usual | more))


def searched(run: Run) -> Search:
    assert run.search is not None
    return run.search


def test_the_run_has_the_setting_that_the_validator_prefers(tmp_path: Path) -> None:
    run = adapt(tmp_path / "run")
    tried = searched(run).tried
    assert [(one.method, dict(one.overrides)) for one in tried] == [
        ("nsm", {}),
        ("nsm", {"r": 1.0}),
        ("bnm", {}),
        ("clusters+nsm", {}),
    ]
    for one in tried:
        result = json.loads((Path(one.folder) / "result.json").read_text())
        assert one.score == result["last"]["knn_balance"]
        assert result["method"] == one.method
    scores = [one.score or 0.0 for one in tried]
    best = tried[scores.index(max(scores))]
    assert (run.method, dict(run.config.overrides)) == (best.method, dict(best.overrides))
    assert run.result is not None
    assert run.result["last"]["knn_balance"] == best.score
    assert len(run.predict(np.zeros((2, 6), "f4"), progress=False).labels) == 2
    assert equida.load_run(tmp_path / "run").search == run.search
    times = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("result.json")}
    assert len(times) == 5
    again = adapt(tmp_path / "run")
    assert again.result == run.result
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("result.json")} == times


@pytest.mark.slow(reason="several runs")
def test_target_labels_do_not_choose(tmp_path: Path) -> None:
    wrong = np.roll(LABELS, 1)  # every label is wrong
    first, second = adapt(tmp_path / "right"), adapt(tmp_path / "wrong", labels=wrong)
    assert [one.score for one in searched(first).tried] == [
        one.score for one in searched(second).tried
    ]
    assert first.method == second.method
    assert first.accuracy != second.accuracy


@pytest.mark.slow(reason="several runs")
def test_the_cost_is_at_most_that_of_five_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[int] = []
    after = Recorder.after_step

    def counted(recorder: Recorder, done: int) -> None:
        steps.append(done)
        after(recorder, done)

    monkeypatch.setattr(Recorder, "after_step", counted)
    adapt(tmp_path / "nsm", "nsm")
    one = len(steps)
    adapt(tmp_path / "auto")
    assert len(CANDIDATES) * TINY["iterations"] < len(steps) - one <= 5 * one


def test_without_source_data(tmp_path: Path) -> None:
    first = adapt(tmp_path / "first", "source_only")
    run = equida.adapt(
        None, TARGET, from_run=first, method="auto", recipe_params=TINY, out=tmp_path / "next",
        progress=False,
    )  # fmt: skip
    assert [one.method for one in searched(run).tried] == ["nsm", "nsm", "bnm"]


def test_every_candidate_has_the_prior_that_is_asked_for(tmp_path: Path) -> None:
    shares = {"prior": [0.5, 0.25, 0.25], "prior_strength": 1}
    run = adapt(tmp_path / "run", method_params=shares)
    for one in searched(run).tried:
        assert "prior=shares" in one.title
        config = json.loads((Path(one.folder) / "config.json").read_text())
        assert set(config["aims"]) == set(one.method.split("+"))
        for aim in config["aims"].values():
            assert aim["aim"] == [0.5, 0.25, 0.25]
    assert adapt(tmp_path / "run", method_params=shares).result == run.result
    with pytest.raises(InputError, match="holds a finished run of another configuration"):
        adapt(tmp_path / "run", method_params={"prior": "source"})
    with pytest.raises(InputError, match=r"prior_strength is 1, but the prior is 'estimate'"):
        adapt(tmp_path / "other", method_params={"prior": "estimate", "prior_strength": 1})


def test_candidates_aim_at_estimated_shares_where_the_target_looks_imbalanced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = np.repeat([0, 1, 2], [48, 6, 6])
    rows = 4 * CENTRES[labels] + 0.8 + RANDOM.normal(size=(60, 6))
    source = (4 * CENTRES[LABELS] + RANDOM.normal(size=(60, 6)), LABELS)
    usual: dict[str, Any] = {"method": "auto", "recipe_params": TINY, "progress": True}
    run = equida.adapt(source, rows, out=tmp_path / "run", **usual)
    said = "the target looks imbalanced: candidates aim at estimated class shares"
    assert said in capsys.readouterr().err
    assert [one.method for one in searched(run).tried] == ["nsm", "nsm", "bnm"]
    for one in searched(run).tried:
        assert one.overrides["prior"] == "estimate"
        config = json.loads((Path(one.folder) / "config.json").read_text())
        assert set(config["aims"]) == set(one.method.split("+"))
        for aim in config["aims"].values():
            np.testing.assert_allclose(aim["aim"], [0.8, 0.1, 0.1], atol=0.1)
    assert run.config.overrides["prior"] == "estimate"
    assert equida.adapt(source, rows, out=tmp_path / "run", **usual).result == run.result
    assert said in capsys.readouterr().err
    # Who asks for equal shares gets them.
    equal = equida.adapt(
        source, rows, out=tmp_path / "equal", method_params={"prior": "uniform"}, **usual
    )
    assert said not in capsys.readouterr().err
    assert [one.method for one in searched(equal).tried] == ["nsm", "nsm", "bnm", "clusters+nsm"]


def test_balance_is_measured_against_the_prior(tmp_path: Path) -> None:
    shares = np.array([0.5, 0.25, 0.25])
    run = adapt(tmp_path / "run", method_params={"prior": shares.tolist()})
    search = searched(run)
    assert search.score == "knn_balance against the prior"
    for one in search.tried:
        result = json.loads((Path(one.folder) / "result.json").read_text())
        away = rel_entr(result["shares"]["predicted"], shares).sum()
        expected = result["last"]["knn"] * (1 - away / -np.log(0.5))
        assert one.score == pytest.approx(max(0.0, expected), rel=1e-4)


@pytest.mark.parametrize(
    ("predicted", "prior", "expected"),
    [
        ([0.8, 0.1, 0.1], [0.8, 0.1, 0.1], 1.0),  # as it should be
        ([1.0, 0.0, 0.0], [0.8, 0.1, 0.1], 0.0),  # a collapse
        ([0.0, 1.0, 0.0], [0.8, 0.1, 0.1], 0.0),
        ([1.0, 0.0, 0.0], [0.0, 0.5, 0.5], 0.0),
        ([0.5, 0.25, 0.25], [1 / 3] * 3, 0.9464),  # the entropy over log 3
    ],
)
def test_the_score_of_runs_with_a_prior(
    predicted: list[float], prior: list[float], expected: float
) -> None:
    aim = {"shares": prior, "uses_target_labels": False}
    result = {
        "kept": "last",
        "last": {"step": 5.0, "knn": 0.9, "knn_balance": 0.7},
        "shares": {"predicted": predicted},
        "aims": {"nsm": aim, "clusters": aim},
    }
    name, score = auto_score(result)
    assert name == "knn_balance against the prior"
    assert score == pytest.approx(0.9 * expected, abs=1e-4)
    seen = result | {"aims": {"nsm": aim | {"uses_target_labels": True}}}
    assert auto_score(seen) == ("knn_balance", 0.7)  # target labels choose nothing


def test_a_candidate_of_another_configuration_is_not_passed_over(tmp_path: Path) -> None:
    run = adapt(tmp_path / "run")
    folder = Path(searched(run).tried[0].folder)
    (folder / "result.json").unlink()
    (tmp_path / "run" / "result.json").unlink()
    with pytest.raises(InputError, match="holds an unfinished run of another configuration"):
        adapt(tmp_path / "run", recipe_params={**TINY, "iterations": 4})


def test_a_candidate_that_fails_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from equida.methods.nsm import NSM

    def not_finite(self: Any, *arguments: Any) -> Any:
        return {"nsm": arguments[2].logits.sum() * float("nan")}

    monkeypatch.setattr(NSM, "forward", not_finite)
    search = searched(adapt(tmp_path / "run"))
    assert [one.state for one in search.tried] == ["failed", "failed", "finished", "failed"]
    assert "the first candidate, NSM, failed: the loss term 'nsm' is nan" in search.summary


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "rows.npz", tmp_path / "run"
    np.savez(file, a_x=SOURCE, a_y=LABELS, b_x=TARGET)
    words = ["adapt", "-s", f"{file}:a", "-t", f"{file}:b", "--method", "auto", "--out", str(out)]
    for name, value in TINY.items():
        words += [f"--{name.replace('_', '-')}", str(value)]
    assert main(words) == 0
    printed = capsys.readouterr()
    assert "chosen of 4 settings by knn_balance: " in printed.out
    assert "4/4 Clusters+NSM: knn_balance " in printed.err
    assert main(["report", str(out), "--out", str(tmp_path / "page.html"), "--maps", "0"]) == 0
    assert "Chosen of 4 settings by knn_balance: " in (tmp_path / "page.html").read_text()
    assert main([*words[:-1], str(out), "--prior", "guess"]) == 2
    assert "--prior: prior is 'guess'; it must be uniform" in capsys.readouterr().err
    assert main([*words, "--r", "1"]) == 2
    assert "unrecognized options: --r" in capsys.readouterr().err


def test_mistakes_are_one_line(tmp_path: Path) -> None:
    from PIL import Image

    for name in ("x", "y"):
        (tmp_path / "images" / name).mkdir(parents=True)
        for number in range(2):
            Image.new("RGB", (16, 16)).save(tmp_path / "images" / name / f"{number}.png")
    images = str(tmp_path / "images")
    with pytest.raises(InputError, match="the target has images; add --features"):
        equida.adapt(images, images, method="auto", out=tmp_path / "run", progress=False)
    with pytest.raises(InputError, match="r is given, but --method auto chooses it"):
        adapt(tmp_path / "run", method_params={"r": 1.0})
    with pytest.raises(InputError, match="--method auto works on one process"):
        adapt(tmp_path / "run", devices=2)
    adapt(tmp_path / "other", "bnm")
    with pytest.raises(InputError, match="holds a finished run of another kind"):
        adapt(tmp_path / "other")
    adapt(tmp_path / "run")
    with pytest.raises(InputError, match="holds a finished run of another configuration"):
        adapt(tmp_path / "run", recipe_params={**TINY, "iterations": 4})
    file = tmp_path / "run" / "search.json"
    file.write_text(file.read_text().replace('"auto"', '"tune"'))
    with pytest.raises(InputError, match=r"holds search.json of equida tune"):
        adapt(tmp_path / "run")
    file.write_text("{}")
    with pytest.raises(InputError, match=r"search.json is not a search of schema 1"):
        adapt(tmp_path / "run")
