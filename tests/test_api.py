"""The front door: adapting, predicting and computing features from Python."""

import inspect
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from tests.small_data import BACKBONE, CALL, blobs, write_blobs, write_pictures
from torch import nn

import equida
from equida.cli import main
from equida.cli.adapt import Arguments
from equida.data import array_domain
from equida.errors import InputError
from equida.runs.read import Run

SMALL: dict[str, Any] = {"iterations": 6, "batch_size": 8, "bottleneck": 6, "evaluate_every": 3}
TINY: dict[str, Any] = {"iterations": 4, "batch_size": 4, "evaluate_every": 2, "workers": 0}


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder of its own, as runs are written below the current one."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def arrays() -> dict[str, Any]:
    """Four blobs in eight dimensions, and the same ones moved."""
    made = blobs()
    return {"x": made.source, "y": made.labels, "x_target": made.target}


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders photos and clipart with two classes, and the module front_door_net with net()."""
    write_pictures(tmp_path, ("photos", "clipart"), ("mug", "pen"))
    (tmp_path / "front_door_net.py").write_text(BACKBONE)
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def adapted(arrays: dict[str, Any], **options: Any) -> Run:
    options = {"recipe_params": SMALL, **options}
    return equida.adapt((arrays["x"], arrays["y"]), arrays["x_target"], **options)


def test_the_keywords_are_the_flags() -> None:
    """But for progress (--quiet), cache (--no-cache) and parameters, which are flags themselves."""
    given = set(inspect.signature(equida.adapt).parameters)
    others = {"quiet", "from", "no_cache"}
    flags = {name.rstrip("_") for name in Arguments.__dataclass_fields__} - others
    assert given == flags | {"from_run", "method_params", "recipe_params", "progress", "cache"}
    kinds = {p.kind for p in inspect.signature(equida.adapt).parameters.values()}
    assert inspect.Parameter.VAR_KEYWORD not in kinds


def test_arrays_are_adapted_into_a_folder_below_runs(arrays: dict[str, Any]) -> None:
    run = adapted(arrays)
    assert run.path.parent == Path("runs").absolute()
    assert re.fullmatch(r"source2target-nsm-\w{8}-seed0-\w{8}", run.path.name)
    assert (run.method, run.seed, run.classes) == ("nsm", 0, ("0", "1", "2", "3"))
    assert run.accuracy is None
    assert all(pick.accuracy is None for pick in run.picks.values())
    assert "oracle" not in run.picks
    config = json.loads((run.path / "config.json").read_text())
    assert config["task"] is None
    assert len(config["data_sha256"]) == 64
    assert config["recipe_name"] == "features"


def test_the_same_call_finds_it_finished_by_the_digest(arrays: dict[str, Any]) -> None:
    first = adapted(arrays)
    written = (first.path / "result.json").stat().st_mtime_ns
    assert adapted(arrays).path == first.path
    assert (first.path / "result.json").stat().st_mtime_ns == written
    other = arrays | {"x": arrays["x"] + 1.0}
    assert adapted(other).path != first.path
    with pytest.raises(InputError, match="holds a run on other data"):
        adapted(other, out=first.path)
    relabelled = arrays | {"y": arrays["y"][::-1].copy()}
    with pytest.raises(InputError, match="holds a run on other data"):
        adapted(relabelled, out=first.path)


def test_an_interrupted_call_continues(
    arrays: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from equida.training.recorder import Recorder

    whole = adapted(arrays, out="whole")
    plain = Recorder.after_step

    def stop(self: Recorder, done: int) -> None:
        plain(self, done)
        if done == 4:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Recorder, "after_step", stop)
        with pytest.raises(KeyboardInterrupt):
            adapted(arrays, out="broken")
    assert equida.load_run("broken").result is None
    broken = adapted(arrays, out="broken")
    for name, value in load_file(whole.path / "model.safetensors").items():
        assert load_file(broken.path / "model.safetensors")[name].equal(value)


def test_numpy_torch_pandas_and_domains_are_the_same(arrays: dict[str, Any]) -> None:
    pandas = pytest.importorskip("pandas")
    x, y, x_target = (arrays[name] for name in ("x", "y", "x_target"))
    forms: dict[str, Any] = {
        "torch": ((torch.from_numpy(x), torch.from_numpy(y)), torch.from_numpy(x_target)),
        "pandas": ((pandas.DataFrame(x), pandas.Series(y)), pandas.DataFrame(x_target)),
        "domains": (array_domain(x, y, name="one"), array_domain(x_target, name="two")),
    }
    expected = load_file(adapted(arrays).path / "model.safetensors")
    for name, (source, target) in forms.items():
        run = equida.adapt(source, target, recipe_params=SMALL, out=name)
        found = load_file(run.path / "model.safetensors")
        assert all(found[key].equal(value) for key, value in expected.items())


def test_it_does_what_the_command_line_does(arrays: dict[str, Any], tmp_path: Path) -> None:
    names = {"a_x": arrays["x"], "a_y": arrays["y"], "b_x": arrays["x_target"]}
    np.savez(tmp_path / "toy.npz", **names)
    argv = ["-s", "toy.npz:a", "-t", "toy.npz:b", "--method", "cwsm", "--r", "0.25", "--quiet"]
    for name, value in SMALL.items():
        argv += [f"--{name.replace('_', '-')}", str(value)]
    assert main(["adapt", *argv, "--out", "cli"]) == 0
    options: dict[str, Any] = {"method": "cwsm", "method_params": {"r": np.float64(0.25)}}
    options["recipe_params"] = SMALL
    run = equida.adapt("toy.npz:a", tmp_path / "toy.npz:b", out="api", **options)
    same = equida.adapt("toy.npz:a", "toy.npz:b", out="cli", **options)
    assert same.path == Path("cli").absolute()
    files = [load_file(Path(folder) / "model.safetensors") for folder in ("cli", "api")]
    assert all(files[1][name].equal(value) for name, value in files[0].items())
    configs = [json.loads((Path(folder) / "config.json").read_text()) for folder in ("cli", "api")]
    assert configs[0] == configs[1]
    memory = adapted(arrays, method="cwsm", method_params={"r": 0.25})
    found = load_file(memory.path / "model.safetensors")
    assert all(found[name].equal(value) for name, value in files[0].items())
    assert run.metric == "accuracy"


def test_from_a_run_without_source(arrays: dict[str, Any]) -> None:
    first = adapted(arrays)
    target = (arrays["x_target"], arrays["y"])
    more = equida.adapt(None, target, from_run=first, recipe_params={"iterations": 3}, out="more")
    assert more.accuracy is not None
    assert more.picks["oracle"].uses_target_labels
    before, after = (load_file(run.path / "model.safetensors") for run in (first, more))
    assert after["network.classifier.weight"].equal(before["network.classifier.weight"])
    with pytest.raises(InputError, match="a source and a target, or a target and from_run"):
        equida.adapt((arrays["x"], arrays["y"]), target, from_run=first.path)


def test_a_run_to_start_from_that_was_trained_anew(arrays: dict[str, Any]) -> None:
    first = adapted(arrays, out="first")
    options: dict[str, Any] = {"from_run": "first", "recipe_params": {"iterations": 3}}
    equida.adapt(None, arrays["x_target"], out="more", **options)
    shutil.rmtree(first.path)
    adapted(arrays, out="first", seed=1)
    with pytest.raises(InputError, match=r"more holds a run from other weights than .*first has"):
        equida.adapt(None, arrays["x_target"], out="more", **options)


def test_images_of_another_size_than_the_backbone_was_made_for() -> None:
    """One that averages takes them, in training as in prediction; one that does not says so."""
    y = np.arange(24) % 2
    x = np.random.default_rng(0).normal(size=(24, 3, 16, 16)).astype("f4")
    x[:, 0] += y[:, None, None]
    pooled = nn.Sequential(nn.Conv2d(3, 4, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    fixed = nn.Sequential(nn.Flatten(), nn.Linear(3 * 32 * 32, 4))
    for module in (pooled, fixed):
        module.input_size = (3, 32, 32)  # type: ignore[assignment]
    run = equida.adapt((x, y), x, backbone=pooled, recipe_params=TINY, out="run")
    assert len(run.predict(x)) == 24
    with pytest.raises(InputError, match=r"rows have shape \(1, 16, 16\); expected \(3, 32, 32\)"):
        run.predict(x[:, :1])
    with pytest.raises(InputError, match=r"samples are of shape \(3, 16, 16\), and backbone"):
        equida.adapt((x, y), x, backbone=fixed, recipe_params=TINY, out="other")


def test_numbers_are_names_of_classes(arrays: dict[str, Any]) -> None:
    labels = np.array([1, 2, 5, 30])[arrays["y"]]
    run = equida.adapt((arrays["x"], labels), (arrays["x_target"], labels), recipe_params=SMALL)
    assert run.classes == ("1", "2", "5", "30")
    plain = equida.adapt(
        (arrays["x"], arrays["y"]), (arrays["x_target"], arrays["y"]), recipe_params=SMALL
    )
    assert run.accuracy == plain.accuracy
    part = np.flatnonzero(labels < 6)
    target = (arrays["x_target"][part], labels[part])
    few = equida.adapt((arrays["x"], labels), target, recipe_params=SMALL)
    assert few.classes == ("1", "2", "5")
    kept = equida.adapt((arrays["x"], labels), target, recipe_params=SMALL, classes="source")
    assert kept.classes == run.classes


def test_a_benchmark_by_its_name() -> None:
    fields = TINY | {"iterations": 2}
    run = equida.adapt("uci", "mnist", dataset="digits", recipe_params=fields, method="bnm")
    assert (run.task, run.path.parent) == ("U2M", Path("runs").absolute())
    assert re.fullmatch(r"digits-U2M-bnm-\w{8}-seed0", run.path.name)
    assert run.config.recipe_name == "digits"
    with pytest.raises(InputError, match="say which one with -d"):
        equida.adapt("uci", "mnist", data="somewhere")


def test_curves_without_pandas(arrays: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    run = adapted(arrays)
    monkeypatch.setitem(sys.modules, "pandas", None)
    rows = run.curves()
    assert isinstance(rows, list)
    assert [row["step"] for row in rows] == [3, 6]
    assert {"loss_cross_entropy", "loss_nsm", "equity", "source_accuracy"} <= set(rows[0])
    assert rows[-1]["equity"] == run.equity
    with pytest.raises(InputError, match="a DataFrame needs pandas: pip install pandas"):
        run.predict(arrays["x"]).to_frame()


def test_the_random_numbers_of_the_caller_go_on(arrays: dict[str, Any]) -> None:
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    adapted(arrays)
    assert torch.rand(3).equal(expected)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"method": "nms"}, "did you mean 'nsm'"),
        ({"method_params": {"q": 1.0}}, "q"),
        ({"recipe_params": {"speed": 1}}, "recipe has no field 'speed'"),
        ({"recipe_params": {"iteration": 1}}, "'iteration'; did you mean 'iterations'"),
        ({"progress": "no"}, "progress is 'no'; it must be True, False or None"),
        ({"weights": "nowhere.pth"}, "--weights nowhere.pth does not exist"),
        ({"dataset": "office31"}, "leave them out with data in memory"),
        ({"backbone": "resnet50"}, "--backbone has no effect"),
        ({"from_run": "nowhere"}, "nowhere is not a run folder"),
    ],
)
def test_mistakes_are_one_line(change: dict[str, Any], said: str, arrays: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=said) as caught:
        adapted(arrays, **change)
    assert "\n" not in str(caught.value)


def test_mistakes_with_data_are_one_line(arrays: dict[str, Any]) -> None:
    x, y = arrays["x"], arrays["y"]
    with pytest.raises(InputError, match="source is of type ndarray and has no labels"):
        equida.adapt(x, x)
    pair = torch.utils.data.TensorDataset(torch.zeros(3, 2), torch.zeros(3))
    with pytest.raises(InputError, match="source is of type TensorDataset and has no labels"):
        equida.adapt(pair, x)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"expected a pair \(X, y\)"):
        equida.adapt((x, y, y), x)
    with pytest.raises(InputError, match="target is None"):
        equida.adapt((x, y), None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="nowhere"):
        equida.adapt("nowhere", (x, y))
    with pytest.raises(InputError, match="expected one for each of 60 rows"):
        equida.adapt((x, y[:-1]), x)


def test_a_script_prints_nothing(arrays: dict[str, Any], tmp_path: Path) -> None:
    np.savez("toy.npz", a_x=arrays["x"], a_y=arrays["y"], b_x=arrays["x_target"])
    code = "import equida\nequida.adapt('toy.npz:a', 'toy.npz:b', recipe_params={'iterations': 3})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == done.stderr == ""
    done = subprocess.run(
        [sys.executable, "-c", code.replace("})", "}, progress=True, out='b')")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.startswith("step 3 of 3: eq ")


def test_two_processes_share_arrays(arrays: dict[str, Any]) -> None:
    fields = SMALL | {"dropout": 0.0, "bottleneck_norm": False}
    options: dict[str, Any] = {"recipe_params": fields, "accelerator": "cpu"}
    one, two = (adapted(arrays, devices=n, out=f"{n}", **options) for n in (1, 2))
    weights = [load_file(run.path / "model.safetensors") for run in (one, two)]
    for name, value in weights[0].items():
        assert weights[1][name].allclose(value, atol=1e-6)


def test_images_on_features_and_what_a_run_can_do(photos: Path) -> None:
    run = equida.adapt(
        "photos",
        photos / "clipart",
        backbone="front_door_net:net",
        features=True,
        recipe_params=TINY,
        out="run",
    )
    assert run.accuracy is not None
    curves = run.curves()
    steps = [row["step"] for row in curves] if isinstance(curves, list) else list(curves["step"])
    assert steps == [2, 4]
    said = run.predict(photos / "clipart")
    assert [Path(path).name for path in said.paths] == [f"{n}.jpg" for n in (0, 1, 2, 3)] * 2
    right = np.mean(
        [Path(p).parent.name == name for p, name in zip(said.paths, said.labels, strict=True)]
    )
    assert right == pytest.approx(run.accuracy)
    assert said.confidences == pytest.approx(said.probs.max(1))
    assert main(["predict", "run", str(photos / "clipart"), "--out", "cli.csv"]) == 0
    assert said.to_csv("api.csv").read_text() == Path("cli.csv").read_text()
    assert run.export("model", onnx=False) == Path("model")
    again = equida.load_run("run")
    assert (again.accuracy, again.picks) == (run.accuracy, run.picks)
    assert "nsm on photos2clipart, seed 0" in repr(again)
    assert "oracle (uses target labels)" in again._repr_html_()
    (photos / "broken.jpg").write_bytes(b"nothing")
    two = run.predict([photos / "broken.jpg", photos / "clipart" / "mug" / "0.jpg"])
    assert len(two) == 1
    assert two.unreadable[0][0].endswith("broken.jpg")


def test_a_page_of_a_run(arrays: dict[str, Any]) -> None:
    pytest.importorskip("plotly")
    pytest.importorskip("jinja2")
    run = equida.adapt((arrays["x"], arrays["y"]), arrays["x_target"], recipe_params=SMALL)
    assert run.report("page.html") == Path("page.html")
    assert "<html" in Path("page.html").read_text()[:500]


def test_rows_are_predicted_and_others_refused(arrays: dict[str, Any]) -> None:
    run = adapted(arrays)
    said = run.predict(arrays["x_target"], batch_size=7)
    np.testing.assert_allclose(said.probs, run.predictions.probs.numpy(), atol=1e-6)
    assert said.paths[59] == "row 59"
    with pytest.raises(InputError, match=r"rows have shape \(3,\); expected \(8,\)"):
        run.predict(np.zeros((5, 3)))
    Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save("one.jpg")
    with pytest.raises(InputError, match="features of unknown origin, or of several"):
        run.predict("one.jpg")


def test_an_unfinished_run_says_so(arrays: dict[str, Any]) -> None:
    run = adapted(arrays)
    (run.path / "result.json").unlink()
    left = equida.load_run(run.path)
    assert "unfinished" in repr(left)
    with pytest.raises(InputError, match="is unfinished; run it to the end first"):
        _ = left.accuracy
    with pytest.raises(InputError, match="is not a run folder"):
        equida.load_run("nowhere")


def test_features_in_memory_leave_nothing_behind(photos: Path) -> None:
    before = set(photos.rglob("*"))
    features = equida.extract_features("photos", backbone="front_door_net:net", batch_size=3)
    assert {file for file in photos.rglob("*") if "__pycache__" not in str(file)} == before
    assert features.x.shape == (8, 8)
    assert features.classes == ("mug", "pen")
    assert features.labels is not None
    assert [Path(path).parent.name for path in features.paths] == [
        features.classes[label] for label in features.labels
    ]
    assert set(features.domains) == {"photos"}
    stored = equida.extract_features(
        photos / "photos", backbone="front_door_net:net", batch_size=3, out="f.safetensors"
    )
    assert Path("f.safetensors").is_file()
    np.testing.assert_array_equal(stored.x, features.x)
    assert "8 images, 8 features of front_door_net:net" in repr(stored)
    with pytest.raises(InputError, match="no domain 'clipart'; they hold photos"):
        features.domain("clipart")


def test_a_run_on_extracted_features_predicts_images(photos: Path) -> None:
    source, target = (
        equida.extract_features(name, backbone="front_door_net:net") for name in
        ("photos", "clipart")
    )  # fmt: skip
    run = equida.adapt(source.domain(), target.domain(), recipe_params=TINY, out="run")
    files = equida.adapt(
        "photos", "clipart", backbone="front_door_net:net", features=True, recipe_params=TINY,
        out="files",
    )  # fmt: skip
    images, rows = run.predict("clipart"), run.predict(target.domain())
    np.testing.assert_allclose(images.probs, rows.probs, atol=1e-4)
    np.testing.assert_allclose(rows.probs, files.predictions.probs.numpy(), atol=1e-6)


def test_a_run_is_done_again(tmp_path: Path) -> None:
    file = write_blobs(tmp_path / "blobs.npz")
    options: dict[str, Any] = {"recipe_params": SMALL, "progress": False}
    run = equida.adapt(f"{file}:a", f"{file}:b", out="first", **options)
    before = sorted(tmp_path.iterdir())
    torch.manual_seed(1)
    made, drawn = run.repeat(), torch.rand(1)
    assert drawn == torch.rand(1, generator=torch.Generator().manual_seed(1))
    assert made.same
    assert str(made) == f"the same: {made.tensors} weight tensors are equal bit for bit"
    assert sorted(tmp_path.iterdir()) == before
    assert run.repeat(tmp_path / "second").same
    assert equida.load_run("second").result is not None
    with pytest.raises(InputError, match="second holds a run already; choose another folder"):
        run.repeat("second")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "model.safetensors").write_text("mine")
    with pytest.raises(InputError, match=r"mine/model\.safetensors"):
        run.repeat("mine")
    assert (tmp_path / "mine" / "model.safetensors").read_text() == "mine"
    weights = load_file("first/model.safetensors")
    save_file({name: value + 1 for name, value in weights.items()}, "first/model.safetensors")
    made = run.repeat()
    assert not made.same
    assert str(made).startswith("different weights (with the same versions and data); figures")
    assert made.figures["equity"][0] == made.figures["equity"][1]
    assert "  equity: " in str(made)


def test_data_in_memory_cannot_be_used_again(arrays: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="was trained on data in memory"):
        adapted(arrays).repeat()


def test_target_labels_that_are_to_be_ignored_are_not_looked_at() -> None:
    """Before: refused for what is wrong with them."""
    data = blobs()
    odd = np.where(data.labels > 1, -1, data.labels)
    pair: Any = ((data.source, data.labels), (data.target, odd))
    run = equida.adapt(*pair, ignore_target_labels=True, out="run", **CALL)
    assert run.accuracy is None
    equida.tune(*pair, trials=1, jobs=1, out="t", **CALL)
    # Labels that choose samples are looked at.
    pair = ((data.source, data.labels), (data.target, data.labels))
    chosen: Any = {"target_shares": "long-tail:5", "ignore_target_labels": True, **CALL}
    assert equida.adapt(*pair, out="few", **chosen).accuracy is None
    pair = (pair[0], (data.target, odd))
    with pytest.raises(InputError, match="negative, which means unlabelled"):
        equida.adapt(*pair, out="no", **CALL)
