"""`equida adapt` as a user meets it."""

import dataclasses
import errno
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.small_data import CALL, blobs, write_pictures

from equida import adapt, load_run
from equida.cli import main
from equida.cli._flags import overrides
from equida.cli._parse import parse
from equida.cli.adapt import arguments_for, request_of
from equida.data import BENCHMARKS
from equida.fields import FieldSpec, specs
from equida.files import locked
from equida.methods import METHODS, configure
from equida.training import folder as folders
from equida.training.config import RunConfig
from equida.training.plan import make_plan
from equida.training.recipe import Recipe

Equida = Callable[..., "subprocess.Popen[str]"]
SMALL = ["--iterations", "6", "--batch-size", "8", "--bottleneck", "6", "--evaluate-every", "3"]
TINY = ["--backbone", "tiny_backbone:net", "--iterations", "4", "--batch-size", "4"]
TINY += ["--evaluate-every", "2", "--workers", "0", "--quiet"]


def error_of(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    """The complaint, after checking that it is one line and that the exit code is 2."""
    capsys.readouterr()
    assert main(["adapt", *argv]) == 2
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("equida: ")]
    assert len(said) == 1
    return said[0]


def on(toy: Path) -> list[str]:
    return ["-s", f"{toy}:a", "-t", f"{toy}:b", "--quiet"]


def test_a_log_file_shows_progress(
    toy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = [*on(toy)[:-1], *SMALL, "--iterations", "9"]
    assert main(["adapt", *argv, "--out", str(tmp_path / "run")]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in lines] == [f"step {step} of 9" for step in (3, 6, 9)]
    assert all(" acc " in line and " ce " in line for line in lines)
    assert [line.endswith(" left") for line in lines] == [True, True, False]


def test_folders_of_one_name_are_told_apart_by_their_parents(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("photos", "drawings"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "images").symlink_to(pictures / name, target_is_directory=True)
    pair = ["-s", str(tmp_path / "photos/images"), "-t", str(tmp_path / "drawings/images")]
    assert main(["adapt", *pair, *TINY, "--out", str(tmp_path / "run")]) == 0
    assert "nsm on photos2drawings, seed 0" in capsys.readouterr().out


@pytest.mark.parametrize(("flags", "expected"), [([], 1), (["--threads", "3"], 3)])
def test_features_take_one_thread_unless_told(
    flags: list[str],
    expected: int,
    toy: Path,
    tmp_path: Path,
    restored_threads: None,
) -> None:
    torch.set_num_threads(2)
    assert main(["adapt", *on(toy), *SMALL, *flags, "--out", str(tmp_path / "run")]) == 0
    assert used_threads(tmp_path / "run") == expected
    assert torch.get_num_threads() == 2


def test_images_take_the_threads_of_torch(
    pictures: Path, tmp_path: Path, restored_threads: None
) -> None:
    torch.set_num_threads(2)
    pair = ["-s", str(pictures / "photos"), "-t", str(pictures / "drawings")]
    assert main(["adapt", *pair, *TINY, "--out", str(tmp_path / "run")]) == 0
    assert used_threads(tmp_path / "run") == 2


def test_threads_below_zero(toy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = error_of(capsys, *on(toy), "--threads", "-2", "--out", str(tmp_path / "run"))
    assert "--threads is -2; it must be 0" in said


def used_threads(run: Path) -> int:
    threads: int = json.loads((run / "config.json").read_text())["processes"]["threads"]
    return threads


@pytest.fixture
def restored_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_features_of_two_domains(
    toy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert main(["adapt", *on(toy), *SMALL, "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert "oracle (uses target labels)" in shown
    assert f"run: {out}   labels for new rows: equida predict {out} FILE\n" in shown
    assert main(["predict", str(out), f"{toy}:b", "--out", str(tmp_path / "labels.csv")]) == 0
    result = json.loads((out / "result.json").read_text())
    assert result["classes"] == ["w", "x", "y", "z"]
    assert result["last"]["step"] == 6
    assert set(result["picks"]) >= {"source_accuracy", "entropy", "snd", "bnm", "oracle"}
    assert np.sum(result["confusion"]) == 60
    config = json.loads((out / "config.json").read_text())
    assert config["task"]["source"] == f"{toy}:a"
    assert set(config["versions"]) == {"equida", "python", "torch", "machine"}
    stored = load_file(out / "predictions.safetensors")
    assert stored["probs"].sum(1).allclose(torch.ones(60))
    said = stored["probs"].argmax(1)
    right = float((said == stored["labels"]).double().mean())
    assert right == pytest.approx(result["last"]["accuracy"])


def test_class_shares_stand_below_the_table(
    toy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a narrow terminal, too."""
    for width in ("80", "40"):
        monkeypatch.setenv("COLUMNS", width)
        assert main(["adapt", *on(toy), *SMALL, "--out", str(tmp_path / width)]) == 0
        lines = capsys.readouterr().out.splitlines()
        start = next(n for n, line in enumerate(lines) if line.startswith("class"))
        assert lines[start].split()[-4:] == ["predicted", "estimated", "aimed", "at"]
        rows = [line.replace(" %", "").split() for line in lines[start + 1 : start + 5]]
        assert sorted(row[0] for row in rows) == ["w", "x", "y", "z"]
        assert [row[3] for row in rows] == ["25.0"] * 4
        predicted = load_run(tmp_path / width).class_shares["predicted"] or []
        assert [float(row[1]) for row in sorted(rows)] == pytest.approx(
            [100 * share for share in predicted], abs=0.06
        )


def test_a_finished_run_is_not_repeated(
    toy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = [*on(toy), *SMALL, "--out", str(tmp_path / "run")]
    assert main(["adapt", *argv]) == 0
    written = (tmp_path / "run" / "result.json").stat().st_mtime_ns
    assert main(["adapt", *argv]) == 0
    assert "is finished already" in capsys.readouterr().err
    assert (tmp_path / "run" / "result.json").stat().st_mtime_ns == written
    assert "finished run of another configuration" in error_of(capsys, *argv, "--seed", "1")


def test_the_default_folder_says_what_the_run_is(
    toy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = ["--recipe", "paper", "--cwsm-r", "0.25"]
    plain = ["--iterations", "2", "--batch-size", "8"]
    for words in (settings, plain, plain):
        asked = ["--method", "safn+cwsm", "--seed", "3", *words]
        assert main(["adapt", *on(toy), *asked, *plain]) == 0
    found = sorted(file.parent.name for file in (tmp_path / "runs").glob("*/result.json"))
    assert found[0] == "a2b-safn+cwsm-batch_size_8-iterations_2-seed3"
    assert len(found) == 2
    assert found[1].endswith("-seed3")


def test_a_safetensors_file_and_a_target_without_labels(
    toy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from safetensors.numpy import save_file

    with np.load(toy) as arrays:
        save_file({"features": arrays["b_x"]}, tmp_path / "b.safetensors")
    out = tmp_path / "run"
    target = str(tmp_path / "b.safetensors")
    argv = ["-s", f"{toy}:a", "-t", target, *SMALL, "--quiet", "--out", str(out)]
    assert main(["adapt", *argv]) == 0
    shown = capsys.readouterr().out
    assert "accuracy" not in shown.replace("source accuracy", "")
    assert "oracle" not in shown


def value_for(spec: FieldSpec) -> tuple[list[str], Any]:
    """Something to type for the flag of a field, and what it must become."""
    if spec.choices:
        return [spec.choices[-1]], spec.choices[-1]
    if spec.name == "prior":
        return ["estimate"], "estimate"
    kinds: dict[type, tuple[list[str], Any]] = {
        bool: (["no"], False),
        int: (["7"], 7),
        str: (["snd"], "snd"),
    }
    number = 0.25 if spec.bounds.allow(0.25) else spec.bounds.minimum
    return kinds.get(spec.kind, ([str(number)], number))


def filled(*argv: str) -> Any:
    return parse(arguments_for(argv), "adapt", argv)


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(Recipe)])
def test_every_field_of_a_recipe_is_a_flag(field: str) -> None:
    typed, value = value_for(specs(Recipe)[field])
    flag = "--" + field.replace("_", "-")
    assert overrides(filled(flag, *typed).training) == {field: value}


def test_without_flags_the_recipe_stays_as_it_is() -> None:
    assert overrides(filled().training) == {}


@pytest.mark.parametrize("method", METHODS)
def test_every_hyper_parameter_is_a_flag_alone_and_in_a_composition(method: str) -> None:
    both = f"{method}+{'nsm' if method != 'nsm' else 'bnm'}"
    prefix = f"{method.replace('_', '-')}-"
    alone, composed, values = [], [], {}
    for field in specs(METHODS[method].config).values():
        typed, values[field.name] = value_for(field)
        flag = field.name.replace("_", "-")
        alone += [f"--{prefix if hasattr(Recipe, field.name) else ''}{flag}", *typed]
        composed += [f"--{prefix}{flag}", *typed]
    assert overrides(filled("--method", method, *alone).hyper, method) == values
    found = overrides(filled("--method", both, *composed).hyper, both)
    assert found == {f"{method}.{name}": value for name, value in values.items()}


def test_none_overrides_a_preset() -> None:
    """On Office-Home the preset of eps is 1e-6; "none" is a value and not "unset"."""
    home = ["-d", "office_home"]
    assert overrides(filled(*home, "--eps", "none").hyper, "nsm") == {"eps": None}
    assert configure("nsm", {"eps": None}, "office_home")["nsm"].eps is None
    assert overrides(filled(*home).hyper, "nsm") == {}


@pytest.mark.parametrize("verb", ["adapt", "bench", "doctor"])
def test_help_lists_what_is_registered(
    verb: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit):
        main([verb, "--help"])
    shown = capsys.readouterr().out
    assert all(name in shown for name in BENCHMARKS)
    if verb in ("adapt", "bench"):
        assert "features, large_batches, paper or digits; " in shown


def test_help_shows_the_defaults_that_hold(capsys: pytest.CaptureFixture[str]) -> None:
    argv = ["adapt", "--method", "nsm", "-d", "office_home", "--recipe", "paper", "--help"]
    with pytest.raises(SystemExit):
        main(argv)
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "None" not in shown.replace("None is 1e-6", "")
    assert "--iterations INT Steps of the optimiser. (default: 6004)" in shown
    assert "(the paper's lambda). (default: 1)" in shown
    assert "method nsm options" in shown
    assert "training options" in shown


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "say what to adapt from and to"),
        (["--method", "nms"], "did you mean 'nsm'?"),
        (["--steps", "60"], "did you mean --iterations?"),
        (["--lr=0.1"], "did you mean --learning-rate?"),
        (
            ["--learning-rate", "fast"],
            "--learning-rate is 'fast'; it must be a finite number",
        ),
        (["--seed", "one"], "--seed is 'one'; it must be a whole number;"),
        (["--eps", "none"], "say what to adapt from and to"),
        (["--channels-last", "maybe"], "--channels-last is 'maybe'; it must be true or false;"),
        (["--dataset", "office32", "-s", "A", "-t", "W"], "office31"),
        (["--from", "nowhere", "-t", "x"], "nowhere is not a run folder"),
        (["-s", "nowhere", "-t", "nowhere"], "nowhere"),
    ],
)
def test_mistakes_are_one_line(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in error_of(capsys, *argv)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--keep", "accuracy"], "keep is 'accuracy'"),
        (["--r", "7"], "--r is 7; it must be a number from 0 to 1;"),
        (["--devices", "0"], "--devices is 0; it must be a whole number from 1"),
        (["--devices", "5"], "cannot share batches of 36 equally"),
        (["--devices", "2", "--batch-size", "2"], "each of 2 processes would have one sample"),
        (["--seed", "99999999999999999999"], "it must be from 0 to 2^63 - 1"),
        (["--bottleneck", "100000000000000"], "it must be a whole number from 0 to 1e+06"),
        (["--holdout", "0.99"], "holdout is 0.99, which leaves nothing of a"),
        (["--freeze", "layer1"], "--freeze has no effect"),
        (["--weights", "nowhere.pth"], "--weights nowhere.pth does not exist"),
        (["--data", "nowhere"], "say which one with -d"),
        (["--precision", "16"], "16-mixed, 64-true"),
        (["--accelerator", "abacus"], "accelerator is 'abacus'; it must be one of auto, cpu"),
        (["--accelerator", "gpu"], "gpu with precision 32-true here"),
        (["--precision", "16-mixed", "--accelerator", "cpu"], "is 'bf16-mixed' on this cpu"),
        (["--backbone", "resnet50"], "--backbone has no effect"),
        (["--recipe", "papper"], "did you mean 'paper'?"),
    ],
)
def test_mistakes_with_good_data_are_one_line(
    argv: list[str], said: str, toy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if argv[1] == "gpu" and torch.cuda.is_available():
        pytest.skip("needs a machine without GPU")
    assert said in error_of(capsys, *on(toy), "--out", str(tmp_path / "run"), *argv)


def test_classes_that_the_source_lacks_are_named(
    toy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.npz"
    np.savez(other, X=np.zeros((40, 8), "f4"), y=np.array(["w", "q"] * 20))
    said = error_of(capsys, "-s", f"{toy}:a", "-t", str(other), "-o", str(tmp_path / "run"))
    assert "'q'" in said


def test_an_out_that_is_a_file_or_cannot_be_made(
    toy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    for out in (file, file / "below", Path("/proc/nothing")):
        said = error_of(capsys, *on(toy), *SMALL, "--out", str(out))
        assert f"cannot write into {out}" in said
        assert "choose another folder" in said
    assert file.read_text() == "mine"


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fourth file that is written, a second checkpoint, does not fit; later ones do."""
    plain, calls = os.fsync, []

    def fsync(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == 4:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        plain(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)


@pytest.mark.usefixtures("full_disk")
def test_a_full_disk_loses_nothing(
    toy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second checkpoint does not fit; the first stays, and the run goes on later."""
    argv = [*on(toy), *SMALL, "--log-every", "1"]
    full, whole = tmp_path / "full", tmp_path / "whole"
    said = error_of(capsys, *argv, "--out", str(full))
    assert f"cannot write into {full}: No space left on device; free some space" in said
    state = folders.RunFolder(full).load_checkpoint()
    assert state is not None
    assert state["step"] == 3
    assert main(["adapt", *argv, "--out", str(full)]) == 0
    assert main(["adapt", *argv, "--out", str(whole)]) == 0
    first, second = (out / "model.safetensors" for out in (full, whole))
    assert first.read_bytes() == second.read_bytes()


def test_two_folders_of_images(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    argv = ["-s", str(pictures / "photos"), "-t", str(pictures / "drawings"), *TINY]
    assert main(["adapt", *argv, "--out", str(out)]) == 0
    said = capsys.readouterr()
    assert f"equida predict {out} IMAGES" in said.out
    if not torch.cuda.is_available():
        assert "no GPU: training tiny_backbone:net takes about 1 s" in said.err
    config = json.loads((out / "config.json").read_text())
    assert len(config["weights_sha256"]) == 64
    assert config["recipe"]["iterations"] == 4
    assert main(["adapt", *argv, "--out", str(out)]) == 0
    assert "is finished already" in capsys.readouterr().err
    again = ["adapt", "--from", str(out), "-t", str(pictures / "drawings"), *TINY[2:]]
    assert main([*again, "--out", str(tmp_path / "further")]) == 0
    before, after = (load_file(f / "model.safetensors") for f in (out, tmp_path / "further"))
    assert after["network.classifier.weight"].equal(before["network.classifier.weight"])
    assert not after["network.backbone.0.weight"].equal(before["network.backbone.0.weight"])


@pytest.mark.parametrize("way", [[], ["--features"]])
def test_a_folder_with_a_run_on_other_data_is_left_alone(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], way: list[str]
) -> None:
    pair = [tmp_path / name for name in ("photos", "drawings")]
    for folder in pair:
        shutil.copytree(pictures / folder.name, folder)
    out = tmp_path / "run"
    argv = [*TINY, *way, "--out", str(out)]
    assert main(["adapt", "-s", str(pair[0]), "-t", str(pair[1]), *argv]) == 0
    before = {file: file.read_bytes() for file in out.iterdir()}
    refused = f"{out} holds a run on other data; choose another --out"
    assert refused in error_of(capsys, "-s", str(pair[1]), "-t", str(pair[0]), *argv)
    next(pair[1].glob("*/0.jpg")).unlink()
    assert refused in error_of(capsys, "-s", str(pair[0]), "-t", str(pair[1]), *argv)
    said = error_of(capsys, "--from", str(out), "-t", str(pair[1]), "--out", str(out), "--quiet")
    assert "is the run to start from" in said
    assert {file: file.read_bytes() for file in out.iterdir()} == before


def test_one_process_at_a_time(
    toy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with locked(tmp_path / "run"):
        said = error_of(capsys, *on(toy), *SMALL, "--out", str(tmp_path / "run"))
    assert "another process is at work in" in said


def test_several_machines_must_know_of_each_other(
    toy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("MASTER_ADDR", "SLURM_NTASKS"):
        monkeypatch.delenv(name, raising=False)
    argv = [*on(toy), *SMALL, "--num-nodes", "2", "--out", str(tmp_path / "run")]
    assert "set MASTER_ADDR, MASTER_PORT and NODE_RANK" in error_of(capsys, *argv)


@pytest.mark.usefixtures("full_disk")
def test_a_run_goes_on_with_as_many_processes(
    toy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = [*on(toy), *SMALL, "--out", str(tmp_path / "run")]
    error_of(capsys, *argv)
    said = error_of(capsys, *argv, "--devices", "2", "--accelerator", "cpu")
    assert "was started on 1 process, not on 2; continue with --devices 1" in said


def test_ten_crops_are_averaged(pictures: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    argv = ["-s", str(pictures / "photos"), "-t", str(pictures / "drawings"), *TINY]
    assert main(["adapt", *argv, "--ten-crop", "--out", str(out)]) == 0
    probs = load_file(out / "predictions.safetensors")["probs"]
    assert probs.shape == (12, 3)
    assert probs.sum(1).allclose(torch.ones(12))


def test_features_of_two_folders(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Extraction, training, prediction of images, and on from there without the source."""
    out, more = tmp_path / "run", tmp_path / "more"
    argv = ["-s", str(pictures / "photos"), "-t", str(pictures / "drawings"), *TINY, "--features"]
    assert main(["adapt", *argv, "--out", str(out)]) == 0
    assert len(load_file(out / "features-1.safetensors")["features"]) == 12
    assert json.loads((out / "config.json").read_text())["backbone"] == "none"
    capsys.readouterr()
    assert main(["predict", str(out), str(pictures / "drawings")]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 13
    further = ["--from", str(out), "-t", str(pictures / "drawings"), "--quiet"]
    assert main(["adapt", *further, "--iterations", "3", "--out", str(more)]) == 0
    before, after = (load_file(f / "model.safetensors") for f in (out, more))
    assert after["network.classifier.weight"].equal(before["network.classifier.weight"])
    key = "network.bottleneck.0.weight"
    assert not after[key].equal(before[key])
    # The same from the target's features instead of its images.
    rows = ["--from", str(out), "-t", str(out / "features-1.safetensors"), "--quiet"]
    same = tmp_path / "same"
    assert main(["adapt", *rows, "--iterations", "3", "--out", str(same)]) == 0
    assert load_file(same / "model.safetensors")[key].equal(after[key])
    log = [json.loads(line) for line in (more / "log.jsonl").read_text().splitlines()]
    assert set(log[0]["terms"]) == {"nsm"}
    assert "source_accuracy" not in log[-1]["evaluation"]


def test_source_free_mistakes(
    toy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    assert main(["adapt", *on(toy), *SMALL, "--out", str(out)]) == 0
    base = ["--from", str(out), "-t", f"{toy}:b", "--quiet", "-o", str(tmp_path / "more")]
    assert "'cdan' needs source data" in error_of(capsys, *base, "--method", "cdan")
    assert "no source data" in error_of(capsys, *base, "--keep", "source_accuracy")
    assert "bottleneck is 9, but 6 in" in error_of(capsys, *base, "--bottleneck", "9")
    assert "leave it out with --from" in error_of(capsys, *base, "--backbone", "resnet18")
    narrow = tmp_path / "narrow.npz"
    np.savez(narrow, X=np.zeros((40, 3), "f4"))
    said = error_of(capsys, *base, "-t", str(narrow))
    assert "(bottleneck.0.weight: (6, 8) there, (6, 3) here); give it features of" in said
    assert "and no --source" in error_of(capsys, *base, "-s", "x")
    assert main(["adapt", *base]) == 0


def test_a_benchmark_keeps_its_name_and_presets_with_features(
    tmp_path: Path, pictures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Office-31 in miniature: three classes are enough where counts are not checked."""
    from PIL import Image

    from equida.data.benchmarks import BENCHMARKS

    classes = BENCHMARKS["office31"].classes
    random = np.random.default_rng(0)
    for domain in ("amazon", "webcam", "dslr"):
        for name in classes:
            folder = tmp_path / "office" / domain / "images" / name
            folder.mkdir(parents=True)
            pixels = random.integers(0, 255, (36, 36, 3), np.uint8)
            Image.fromarray(pixels).save(folder / "frame_0001.jpg")
    argv = ["-d", "office31", "-s", "A", "-t", "W", "--data", str(tmp_path / "office"), *TINY]
    out = tmp_path / "run"
    assert main(["adapt", *argv, "--features", "--out", str(out)]) == 0
    config = RunConfig.from_json(json.loads((out / "config.json").read_text()))
    assert config.task is not None
    assert (config.benchmark, config.task.source, config.task.target) == ("office31", "A", "W")
    result = json.loads((out / "result.json").read_text())
    assert (result["task"], result["benchmark"]) == ("A2W", "office31")
    arguments = filled(*argv, "--features", "--out", str(out))
    assert make_plan(request_of(arguments)).existing_result() == result
    # On from there without the source, to another domain of the benchmark.
    further = ["--from", str(out), "-d", "office31", "-t", "D", "--data", str(tmp_path / "office")]
    more = tmp_path / "more"
    assert main(["adapt", *further, "--iterations", "3", "--quiet", "--out", str(more)]) == 0
    result = json.loads((more / "result.json").read_text())
    assert (result["task"], result["benchmark"]) == ("D", "office31")
    assert sum(map(sum, result["confusion"])) == len(classes)


def test_two_processes_do_what_one_does(toy: Path, tmp_path: Path, equida: Equida) -> None:
    """Real gloo processes, and not a line that the user did not ask for."""
    flags = [*on(toy), *SMALL, "--accelerator", "cpu", "--dropout", "0", "--bottleneck-norm", "no"]
    process = equida(["adapt", *flags, "--devices", "2", "--out", str(tmp_path / "two")])
    assert main(["adapt", *flags, "--out", str(tmp_path / "one")]) == 0
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    assert err == ""
    assert "last step" in out
    one, two = (load_file(tmp_path / name / "model.safetensors") for name in ("one", "two"))
    assert max(float((one[k] - two[k]).abs().max()) for k in one) < 1e-6


def test_two_processes_that_diverge_name_the_batch_of_both(
    toy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # So large that the weights overflow in the first step, however sums are rounded.
    flags = [*on(toy), *SMALL, "--accelerator", "cpu", "--learning-rate", "1e38"]
    said = error_of(capsys, *flags, "--devices", "2", "--out", str(tmp_path / "two"))
    assert "on 16 samples such as source " in said
    error_of(capsys, *flags, "--out", str(tmp_path / "one"))
    one, two = (json.loads((tmp_path / n / "diverged.json").read_text()) for n in ("one", "two"))
    assert two["samples"] == one["samples"]


def test_tensorboard_writes_curves(toy: Path, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    out = tmp_path / "run"
    assert main(["adapt", *on(toy), *SMALL, "--tensorboard", "--out", str(out)]) == 0
    (events,) = (out / "tensorboard").iterdir()
    content = events.read_bytes()
    assert b"loss/nsm" in content
    assert b"evaluation/equity" in content


@pytest.mark.usefixtures("own_folder")
@pytest.mark.slow(reason="computes features")
def test_folders_of_one_name_are_told_apart() -> None:
    """Before: "features-0.safetensors2features-1.safetensors"."""
    for number in (1, 2):
        write_pictures(Path(f"cam{number}"), ["images"], ["red", "blue"])
    network: Any = {"features": True, "backbone": "tiny_backbone:net"}
    run = adapt("cam1/images", "cam2/images", out="run", **network, **CALL)
    assert run.result is not None
    assert run.result["task"] == "cam12cam2"


@pytest.mark.usefixtures("own_folder")
def test_the_advice_of_a_run_can_be_followed(capsys: pytest.CaptureFixture[str]) -> None:
    """Before: the same command with what it advises was refused, in the same default folder."""
    data = blobs()
    few = data.labels < 2
    np.savez(
        "rows.npz", a_x=data.source, a_y=data.labels, b_x=data.target[few], b_y=data.labels[few]
    )
    call = ["adapt", "-s", "rows.npz:a", "-t", "rows.npz:b", "--classes", "source", "--quiet"]
    for more in ([], ["--prior", "estimate"], ["--prior", "estimate"]):
        assert main([*call, *more]) == 0
    assert sorted(path.name for path in Path("runs").iterdir()) == [
        "a2b-nsm-prior_estimate-seed0", "a2b-nsm-seed0",
    ]  # fmt: skip
    assert "try --prior estimate" in capsys.readouterr().out
    tune = ["tune", "rows.npz:a", "rows.npz:b", "--trials", "1", "-j", "1", "--quiet", "--out", "t"]
    assert main(tune) == 0
    assert "or the line below with --prior estimate" in capsys.readouterr().err
    assert main([*tune, "--prior", "estimate"]) == 2
    assert "--prior; a search aims at equal class sizes; adapt with" in capsys.readouterr().err
