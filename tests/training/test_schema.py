"""Runs of the version before files had a schema: read, predicted with, exported, resumed."""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import equida
from equida.cli import main
from equida.errors import InputError
from equida.experiments.grid import fingerprint
from equida.models.weights import wheel_file
from equida.runs.read import Run, load_run, read_runs
from equida.runs.target import target_remarks
from equida.training.config import RunConfig
from equida.training.folder import RunFolder
from equida.training.recipe import Recipe
from equida.training.schema import SCHEMA, check_result, migrate


def flags_of(config: RunConfig) -> list[str]:
    """The flags of `equida adapt` that ask for a run on rows again."""
    assert config.task is not None
    words = ["--from", config.from_run] if config.from_run else ["-s", config.task.source]
    words += ["-t", config.task.target, "--method", config.method, "--seed", str(config.seed)]
    for field in dataclasses.fields(Recipe):
        value = getattr(config.recipe, field.name)
        text = {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
        words += [f"--{field.name.replace('_', '-')}", text] if text else []
    for name, value in config.overrides.items():
        words += [f"--{name.replace('.', '-').replace('_', '-')}", str(value)]
    return [*words, "--quiet"]


def stored(folder: Path, name: str) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((folder / name).read_text())
    return values


def test_all_runs_of_version_0_are_read(runs_of_version_0: Path) -> None:
    runs = {run.path.name: run for run in read_runs(runs_of_version_0 / "runs")}
    assert len(runs) == 4 + 1 + 12 + 1
    assert runs["adapt_nsm"].config.overrides == {"trade_off": 1.5}
    assert runs["adapt_source_free"].config.from_run == str(runs_of_version_0 / "runs/adapt_nsm")
    origin = runs["adapt_features"].config.feature_origin
    assert origin is not None
    assert origin.backbone == "tf_efficientnet_lite0"
    assert runs["unfinished"].result is None
    for run in runs.values():
        if run.result is None:
            continue
        written = stored(run.path, "result.json")
        assert run.accuracy == written["last"]["accuracy"]
        assert run.picks["oracle"].uses_target_labels
        assert run.picks["bnm"].step == written["picks"]["bnm"]["step"]
        assert len(run.predictions.samples) == len(run.predictions.probs)


def test_the_recipe_of_version_0_is_inferred_once(runs_of_version_0: Path) -> None:
    """By the backbone, unless the values are clearly another recipe's."""
    runs = runs_of_version_0 / "runs"
    names = {run.config.recipe_name for run in read_runs(runs / "bench")}
    assert names == {"features"}
    assert {run.config.recipe_name for run in read_runs(runs / "bench_paper")} == {"paper"}
    bare = {"method": "nsm", "recipe": {}}
    for backbone, name in (("none", "features"), ("lenet", "digits"), ("resnet50", "paper")):
        assert migrate(bare | {"backbone": backbone}, "config.json")["recipe_name"] == name


@pytest.mark.parametrize("name", ["adapt_nsm", "adapt_composed", "adapt_source_free"])
def test_runs_of_version_0_predict_and_export(name: str, runs_of_version_0: Path) -> None:
    run = equida.load_run(runs_of_version_0 / "runs" / name)
    said = run.predict(f"{runs_of_version_0}/toy.npz:b")
    kept = run.predictions
    assert said.paths == kept.samples
    np.testing.assert_allclose(said.probs, kept.probs.numpy(), atol=1e-6)
    out = run.export(runs_of_version_0 / "export", onnx=False)
    assert stored(out, "model.json")["classes"] == list(run.classes)


@pytest.mark.slow(reason="loads a network")
@pytest.mark.skipif(wheel_file("tf_efficientnet_lite0") is None, reason="needs the weight wheel")
def test_a_run_on_features_of_version_0_predicts_images(runs_of_version_0: Path) -> None:
    from PIL import Image

    image = runs_of_version_0 / "image.jpg"
    Image.fromarray(np.full((40, 40, 3), 90, np.uint8)).save(image)
    run = equida.load_run(runs_of_version_0 / "runs" / "adapt_features")
    assert run.predict(image).labels[0] in run.classes
    rows = run.predict(run.path / "features-1.safetensors")
    np.testing.assert_allclose(rows.probs, run.predictions.probs.numpy(), atol=1e-6)


@pytest.mark.parametrize("name", ["adapt_nsm", "adapt_composed", "adapt_source_free"])
def test_the_same_arguments_find_it_finished(
    name: str, runs_of_version_0: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = runs_of_version_0 / "runs" / name
    config = load_run(out).config
    before = (out / "result.json").read_bytes()
    assert main(["adapt", *flags_of(config), "--out", str(out)]) == 0
    assert "is finished already" in capsys.readouterr().err
    assert (out / "result.json").read_bytes() == before


def test_an_unfinished_run_of_version_0_is_resumed(runs_of_version_0: Path) -> None:
    """It goes on from its checkpoint; its own version would have drawn other units to drop."""
    out = runs_of_version_0 / "runs" / "unfinished"
    steps = RunFolder(out).read_log()
    assert main(["adapt", *flags_of(load_run(out).config), "--out", str(out)]) == 0
    weights, expected = (
        load_file(out / "model.safetensors"),
        load_file(out / "expected.safetensors"),
    )
    assert weights.keys() == expected.keys()
    for tensor, value in expected.items():
        torch.testing.assert_close(weights[tensor], value, rtol=0.0, atol=0.05)
    assert RunFolder(out).read_log()[: len(steps)] == steps
    assert stored(out, "config.json")["schema"] == SCHEMA


@pytest.mark.parametrize("versions", ["as recorded", "none", "other"])
def test_a_run_of_version_0_is_done_again_and_says_what_differs(
    versions: str, runs_of_version_0: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was made by other code, whatever its number of the version is."""
    folder = runs_of_version_0 / "runs" / "adapt_nsm"
    config = stored(folder, "config.json")
    changed: dict[str, Any] = {"none": {}, "other": {"torch": "1.0"}}
    config["versions"] = changed.get(versions, config["versions"])
    (folder / "config.json").write_text(json.dumps(config))
    out = runs_of_version_0 / "again"
    assert main(["rerun", str(folder), "--quiet", "--out", str(out)]) == 1
    said = capsys.readouterr().out
    assert "with the same versions" not in said
    assert "an older equida made the first run (schema 0, not 1)" in said
    unknown = "the first run has not recorded its version of "
    assert (f"{unknown}equida, python, torch" in said) == (versions == "none")
    assert ("torch 1.0 became " in said) == (versions == "other")
    # The data and the batches are the same; only the units that are dropped are others.
    accuracies = [stored(each, "result.json")["last"]["accuracy"] for each in (folder, out)]
    assert abs(accuracies[0] - accuracies[1]) < 0.2
    assert f"accuracy: {accuracies[0]:.6g}  {accuracies[1]:.6g}" in said


def test_runs_of_version_0_are_on_the_page_and_beside_the_paper(
    runs_of_version_0: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("jinja2", reason="needs the extra report")
    page, paper = runs_of_version_0 / "page.html", runs_of_version_0 / "paper"
    assert main(["report", str(runs_of_version_0 / "runs"), "--out", str(page)]) == 0
    assert "17 finished runs, 1 unfinished or failed" in capsys.readouterr().out
    text = page.read_text()
    assert "CDAN+BNM" in text
    assert main(["paper", str(runs_of_version_0 / "runs" / "bench"), "--out", str(paper)]) == 0
    assert "Office-31: 12 finished runs" in capsys.readouterr().out
    # By hand from the four files: NSM has two tasks and two seeds at each r, so four pairs.
    assert "too few pairs (4; at least 6 are needed)" in (paper / "paper.md").read_text()


@pytest.fixture
def finished(runs_of_version_0: Path) -> Run:
    """A run that this version has made."""
    toy = f"{runs_of_version_0}/toy.npz"
    small = {"iterations": 4, "batch_size": 8, "bottleneck": 4}
    out = runs_of_version_0 / "new"
    return equida.adapt(f"{toy}:a", f"{toy}:b", recipe_params=small, out=out)


def test_what_is_stored_carries_schema_recipe_and_digests(finished: Run) -> None:
    config, result = (stored(finished.path, f"{name}.json") for name in ("config", "result"))
    for values in (config, result):
        assert values["schema"] == 1
        assert values["recipe_name"] == "features"
        assert len(values["data_sha256"]) == 64
        assert values["weights_sha256"] == ""


@pytest.mark.parametrize("name", ["config.json", "result.json"])
def test_a_newer_schema_is_one_line(name: str, finished: Run) -> None:
    values = stored(finished.path, name) | {"schema": 2}
    (finished.path / name).write_text(json.dumps(values))
    expected = f"{name} has schema 2, but this version of equida reads schemas up to 1; install"
    with pytest.raises(InputError, match=expected) as caught:
        load_run(finished.path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"colour": "blue"}, "config.json has a field 'colour' that this version"),
        ({"recipe": {"speed": 1}}, "config.json: recipe has a field 'speed' that this version"),
        ({"feature_origin": {"backbone": "a"}}, "feature_origin has no 'weights_sha256'; it is da"),
        ({"plugins": [{"kind": "method"}]}, r"config.json: plugins\[0\] has no 'name'"),
        ({"aims": {"nsm": {"prior": "source"}}}, "config.json: aims.nsm has no 'strength'"),
        ({"task": {"target": "b"}}, "config.json: task has no 'source'"),
        ({"task": 7}, "config.json: task is 7; expected a table of names and values or nothing"),
    ],
)
def test_an_unknown_field_is_one_line(change: dict[str, Any], said: str, finished: Run) -> None:
    values = stored(finished.path, "config.json") | change
    (finished.path / "config.json").write_text(json.dumps(values))
    with pytest.raises(InputError, match=said) as caught:
        load_run(finished.path)
    assert "\n" not in str(caught.value)


def test_a_file_that_a_record_names_as_class_shares_is_not_read(
    finished: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its first line would stand in the error message of whoever uses a stranger's run."""
    (tmp_path / "secret").write_text("root:x:0:0\n")
    values = stored(finished.path, "config.json")
    values["overrides"] = {"prior": str(tmp_path / "secret")}
    (finished.path / "config.json").write_text(json.dumps(values))
    for verb in ("rerun", "export"):
        assert main([verb, str(finished.path)]) == 2
        said = capsys.readouterr().err
        assert "files that it names are not read" in said
        assert "root" not in said.replace(str(tmp_path), "")


def test_names_by_digest_stay_those_of_version_0(runs_of_version_0: Path) -> None:
    """Folders of a comparison end in a digest of the config: runs made then are found again."""
    runs = read_runs(runs_of_version_0 / "runs" / "bench")
    assert runs
    for run in runs:
        assert run.path.name.endswith(f"-{fingerprint(run.config)}")


GOOD: dict[str, Any] = {
    "task": "a2b", "classes": ["ant", "bee"], "metric": "accuracy", "kept": "last", "seconds": 1.0,
    "last": {"step": 4, "equity": 0.5, "discriminability": 0.5}, "picks": {},
    "shares": {"predicted": [0.5, 0.5], "aim": None, "agreement": 0.9, "imbalance": 0.2},
    "harm": {
        "levelled": False, "collapsed": True, "source_only": {"equity": 0.4},
        "adapted": {"equity": 0.1},
    },
    "calibration": {"temperature": 1.2, "expected_accuracy": 0.8},
}  # fmt: skip


@pytest.mark.parametrize(
    ("section", "change", "said"),
    [
        ("calibration", 7, "calibration is 7; expected a table"),
        ("calibration", {"temperature": 1.0}, "calibration has no 'expected_accuracy'"),
        ("calibration", GOOD["calibration"] | {"temperature": "hot"}, "temperature is 'hot'"),
        ("uncalibrated", {"reason": "few held out"}, "uncalibrated has no 'seen'"),
        ("uncalibrated", {"reason": "a", "seen": "b", "needed": 1}, "seen is 'b'"),
        ("harm", GOOD["harm"] | {"adapted": {}}, "harm.adapted.equity"),
        ("harm", {"levelled": True}, "harm has no 'collapsed'"),
        ("shares", {"aim": None}, "shares has no 'predicted'"),
        ("shares", {"predicted": [0.5, 0.5], "imbalance": 0.2}, "one of 'imbalance' and"),
        ("shares", {"predicted": [1.0]}, "shares.predicted has 1 of 2 shares"),
    ],
)
def test_what_a_result_says_of_its_target_is_checked(section: str, change: Any, said: str) -> None:
    check_result(GOOD)
    assert target_remarks(GOOD)
    with pytest.raises(InputError, match=re.escape(said)):
        check_result(GOOD | {section: change})


@pytest.mark.parametrize("name", ["config.json", "result.json"])
def test_a_record_that_is_null_is_one_line(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("null")
    folder = RunFolder(tmp_path)
    read = folder.read_config if name == "config.json" else folder.read_result
    with pytest.raises(InputError, match=f"{name} holds null; expected a record"):
        read()
