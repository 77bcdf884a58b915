"""`equida predict`, `export` and `rerun` on finished runs."""

import csv
import io
import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file
from tests.processes import LIMIT
from tests.small_data import CALL, SHORT_FLAGS, blobs, write_blobs

from equida import adapt
from equida.cli import main
from equida.training import predictor

Equida = Callable[..., "subprocess.Popen[str]"]
TINY = ["--backbone", "tiny_backbone:net", "--batch-size", "4", "--workers", "0", "--quiet"]


@pytest.fixture(scope="module")
def _runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {}


@pytest.fixture(params=["images", "ten crops", "features"])
def run(
    request: pytest.FixtureRequest,
    _runs: dict[str, Path],
    pictures: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    """A finished run, on images (by the centre and by ten crops) and on features of images."""
    kind = request.param
    if kind not in _runs:
        out = tmp_path_factory.mktemp(kind) / "run"
        argv = ["adapt", "-s", str(pictures / "photos"), "-t", str(pictures / "drawings"), *TINY]
        argv += ["--iterations", "40", "--learning-rate", "0.02", "--out", str(out)]
        argv += ["--bottleneck", "8"]
        more = {"images": [], "ten crops": ["--ten-crop", "yes"], "features": ["--features"]}
        assert main(argv + more[kind]) == 0
        _runs[kind] = out
    return _runs[kind]


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_labels_confidences_and_the_next_two(
    run: Path, pictures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    drawings = pictures / "drawings"
    assert main(["predict", str(run), str(drawings), "--batch-size", "5"]) == 0
    rows = table(capsys.readouterr().out)
    assert [row["image"] for row in rows] == sorted(map(str, drawings.rglob("*.jpg")))
    names = {"label", "second_label", "third_label"}
    for row in rows:
        assert {row[name] for name in names} == {"red, dark", 'gr"een', "blue"}
        shares = [float(row[f"{rank}confidence"]) for rank in ("", "second_", "third_")]
        assert shares == sorted(shares, reverse=True)
        assert sum(shares) == pytest.approx(1.0, abs=2e-4)
    right = np.mean([Path(row["image"]).parent.name == row["label"] for row in rows])
    recorded = json.loads((run / "result.json").read_text())["last"]["accuracy"]
    assert right == pytest.approx(recorded)
    with safe_open(run / "predictions.safetensors", "pt") as file:
        samples, probs = json.loads(file.metadata()["samples"]), file.get_tensor("probs")
    sure = dict(zip(samples, probs.amax(1).tolist(), strict=True))
    for row in rows:
        expected = sure[Path(row["image"]).relative_to(drawings).as_posix()]
        assert float(row["confidence"]) == pytest.approx(expected, abs=1e-4)


def test_what_cannot_be_read_is_reported_and_skipped(
    run: Path, pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = next((pictures / "photos").rglob("*.jpg"))
    (tmp_path / "cut.jpg").write_bytes(whole.read_bytes()[:300])
    (tmp_path / "text.png").write_text("no image")
    odd = tmp_path / 'a, "b"\nc.jpg'
    odd.write_bytes(whole.read_bytes())
    out = tmp_path / "labels.csv"
    assert main(["predict", str(run), str(tmp_path), str(whole), "--out", str(out)]) == 0
    rows = table(out.read_text())
    assert [row["image"] for row in rows] == [str(odd), str(whole)]
    said = capsys.readouterr().err
    assert "left out" in said
    assert "cut.jpg" in said
    assert "2 images labelled, 2 unreadable" in said
    assert main(["predict", str(run), str(tmp_path / "cut.jpg")]) == 1
    assert main(["predict", str(run), str(whole)]) == 0
    assert "1 image labelled, 0 unreadable" in capsys.readouterr().err


def test_images_of_a_list(
    run: Path, pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before: the list itself was said to be no image, or one with a damaged header."""
    files = sorted((pictures / "drawings").rglob("*.jpg"), reverse=True)[:5]
    gone = files[0].with_name("gone.jpg")
    numbers = {name: number for number, name in enumerate(sorted({f.parent for f in files}))}
    for labelled in (False, True):
        lines = [f"{f} {numbers[f.parent]}" if labelled else f"{f}" for f in [*files, gone]]
        (tmp_path / "some.txt").write_text("\n".join(lines))
        capsys.readouterr()
        assert main(["predict", str(run), str(tmp_path / "some.txt"), str(files[0])]) == 0
        printed = capsys.readouterr()
        assert [row["image"] for row in table(printed.out)] == [*map(str, [*files, files[0]])]
        assert f"left out: {gone}: no such file" in printed.err
        assert "6 images labelled, 1 unreadable" in printed.err
    (tmp_path / "notes.txt").write_text("not a list of images\n")
    assert main(["predict", str(run), str(tmp_path / "notes.txt")]) == 2
    assert "notes.txt:1: read 'not a list of images'; expected the path" in capsys.readouterr().err


def test_rows_appear_before_the_last_image_is_read(
    run: Path, pictures: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Images are asked for batch by batch, and each batch is written before the next."""
    files = sorted((pictures / "drawings").rglob("*.jpg"))
    written: list[int] = []

    def slowly(given: object) -> Iterator[Path]:
        for file in files:
            written.append(capsys.readouterr().out.count("\n"))
            yield file

    monkeypatch.setattr(predictor, "files_to_label", slowly)
    assert main(["predict", str(run), "any", "--batch-size", "4"]) == 0
    assert written == [0, 0, 0, 0, 5, 0, 0, 0, 4, 0, 0, 0], "the head comes with the first rows"


@pytest.mark.parametrize("out", ["/proc/labels.csv", "."])
def test_an_out_that_cannot_be_written(
    run: Path, pictures: Path, out: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", str(run), str(pictures), "--out", out]) == 2
    said = capsys.readouterr().err.splitlines()
    assert said[-1].startswith(f"equida: cannot write {out}: ")


def test_mistakes_are_one_line(
    tmp_path: Path, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for argv, said in (
        ([str(tmp_path), str(tmp_path)], "is not a run folder"),
        ([str(run), "nowhere"], "nowhere does not exist"),
        ([str(run), ".", "--batch-size", "0"], "batch size is 0"),
        ([str(run)], "no images are given"),
        (
            [str(run), ".", "--accelerator", "abacus"],
            "accelerator is 'abacus'; it must be one of auto, cpu",
        ),
    ):
        capsys.readouterr()
        assert main(["predict", *argv]) == 2
        error = capsys.readouterr().err
        assert said in error
        assert error.count("\n") == 1


@pytest.mark.parametrize("run", ["images"], indirect=True)
def test_a_reader_that_goes_away_is_no_error(run: Path, pictures: Path, equida: Equida) -> None:
    argv = ["predict", str(run), *[str(pictures / "photos")] * 30, "--batch-size", "2", "--trust"]
    process = equida(argv, cwd=pictures)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline().startswith("image,label")
    process.stdout.close()
    said = process.stderr.read()
    process.wait(timeout=LIMIT)
    process.stderr.close()
    assert "Traceback" not in said
    assert process.returncode == 141


@pytest.mark.slow(reason="exports networks to ONNX")
def test_export_is_the_same_function(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """From model.json, the weights and ONNX, with nothing of equida but the files."""
    onnxruntime = pytest.importorskip("onnxruntime")
    capsys.readouterr()
    assert main(["export", str(run), "--out", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert said.out.count("\n") == 1
    described = json.loads((tmp_path / "model.json").read_text())
    assert described["classes"] == sorted(["red, dark", 'gr"een', "blue"])
    assert described["input"] == [3, 32, 32]
    assert described["transform"].startswith(("centre-crop", "ten-crop"))
    stored = load_file(tmp_path / "model.safetensors")
    assert any(name.endswith("classifier.weight") for name in stored)

    from equida.training.predictor import restore

    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"))
    for batch in (1, 7):
        x = torch.randn(batch, 3, 32, 32)
        (logits,) = session.run(None, {"input": x.numpy()})
        with torch.inference_mode():
            expected = restore(run).module(x)
        assert torch.from_numpy(logits).allclose(expected, atol=1e-4)
    # With the temperature, also the same confidences.
    scaled = torch.from_numpy(logits) / described["temperature"]
    assert scaled.softmax(1).allclose(restore(run).probs(x), atol=1e-4)


def test_export_of_rows_without_onnx(toy: Path, tmp_path: Path) -> None:
    argv = ["-s", f"{toy}:a", "-t", f"{toy}:b", "--iterations", "2", "--batch-size", "8", "--quiet"]
    assert main(["adapt", *argv, "--out", str(tmp_path / "run")]) == 0
    out = tmp_path / "export"
    assert main(["export", str(tmp_path / "run"), "--out", str(out), "--no-onnx"]) == 0
    assert {file.name for file in out.iterdir()} == {"model.safetensors", "model.json"}
    assert json.loads((out / "model.json").read_text())["input"] == [8]


def test_export_goes_beside_the_run_and_never_over_one(
    toy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By default into a folder of its own, so that the run can be read as before."""
    from equida.runs.read import read_runs
    from equida.training.predictor import restore

    run = tmp_path / "runs" / "one"
    argv = ["-s", f"{toy}:a", "-t", f"{toy}:b", "--iterations", "2", "--batch-size", "8", "--quiet"]
    assert main(["adapt", *argv, "--out", str(run)]) == 0
    before = {file.name: file.read_bytes() for file in run.iterdir()}
    capsys.readouterr()
    assert main(["export", str(run), "--no-onnx", "--out", str(run)]) == 2
    said = capsys.readouterr().err
    assert f"{run} holds a run" in said
    assert said.count("\n") == 1
    assert main(["export", str(run), "--no-onnx"]) == 0
    written = {file.name for file in (run / "export").iterdir()}
    assert written == {"model.safetensors", "model.json"}
    assert {f.name: f.read_bytes() for f in run.iterdir() if f.is_file()} == before
    assert restore(run).classes == ("w", "x", "y", "z")
    assert len(read_runs(tmp_path / "runs")) == 1
    assert main(["export", str(run), "--no-onnx"]) == 0, "an export may be written again"


def test_rerun_says_the_same_and_different(
    toy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    argv = ["-s", f"{toy}:a", "-t", f"{toy}:b", "--iterations", "5", "--batch-size", "8", "--quiet"]
    assert main(["adapt", *argv, "--out", str(out)]) == 0
    assert main(["rerun", str(out), "--quiet"]) == 0
    assert "the same:" in capsys.readouterr().out
    config = json.loads((out / "config.json").read_text())
    config["seed"], config["versions"]["torch"] = 1, "0.1"
    (out / "config.json").write_text(json.dumps(config))
    assert main(["rerun", str(out), "--quiet", "--out", str(tmp_path / "second")]) == 1
    said = capsys.readouterr().out
    assert f"different weights (torch 0.1 became {torch.__version__})" in said
    assert "equity: " in said
    assert main(["rerun", str(out), "--out", str(tmp_path / "second")]) == 2
    assert "holds a run already" in capsys.readouterr().err
    capsys.readouterr()
    config = json.loads((out / "config.json").read_text())
    (out / "config.json").write_text(json.dumps(config | {"processes": {"devices": [2]}}))
    assert main(["rerun", str(out), "--quiet"]) == 2
    assert "processes: devices is a list; expected a whole number" in capsys.readouterr().err
    assert main(["rerun", str(tmp_path)]) == 2


@pytest.mark.usefixtures("own_folder")
def test_a_folder_of_runs_is_no_run(capsys: pytest.CaptureFixture[str]) -> None:
    data = blobs()
    adapt((data.source, data.labels), data.target, out="runs/first", **CALL)
    np.savez("rows.npz", X=data.target)
    assert main(["predict", "runs", "rows.npz"]) == 2
    assert "choose a run in it, such as runs/first" in capsys.readouterr().err


@pytest.mark.usefixtures("own_folder")
def test_rows_of_several_files_keep_their_file(capsys: pytest.CaptureFixture[str]) -> None:
    """Before: two rows were called "row 0"."""
    write_blobs(Path("rows.npz"))
    assert main(["adapt", "-s", "rows.npz:a", "-t", "rows.npz:b", "-o", "run", *SHORT_FLAGS]) == 0
    capsys.readouterr()
    assert main(["predict", "run", "rows.npz:a", "rows.npz:b"]) == 0
    lines = capsys.readouterr().out.splitlines()
    names = [line.partition(",")[0] for line in lines[1:]]
    assert len(set(names)) == len(names) == 120
    assert (names[0], names[60]) == ("rows.npz:a row 0", "rows.npz:b row 0")
