"""`equida adapt` on data that are not as they should be."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file

from equida import load_run
from equida.cli import main

TINY = ["--backbone", "tiny_backbone:net", "--iterations", "4", "--batch-size", "4"]
TINY += ["--evaluate-every", "2", "--workers", "0", "--quiet"]


@pytest.fixture
def photos(pictures: Path, tmp_path: Path) -> Path:
    """A copy to be spoiled."""
    shutil.copytree(pictures / "photos", tmp_path / "photos")
    return tmp_path / "photos"


def said(capsys: pytest.CaptureFixture[str], code: int, *argv: object) -> str:
    """The one line beside the result."""
    capsys.readouterr()
    assert main(["adapt", *map(str, argv), "--quiet"]) == code
    (line,) = capsys.readouterr().err.splitlines()
    return str(line)


def test_folders_that_are_no_classes(
    pictures: Path, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dates = tmp_path / "dates"
    for month, folder in enumerate(sorted((pictures / "drawings").iterdir())):
        shutil.copytree(folder, dates / f"2024-0{month}" / "camera")
        shutil.copy(folder / "0.jpg", dates / f"2024-0{month}")
    pair = ["-s", photos, "-t", dates, *TINY, "-o", tmp_path / "run"]
    assert "or use it unlabelled with --ignore-target-labels" in said(capsys, 2, *pair)
    shutil.copy(dates / "2024-00" / "0.jpg", dates / "loose.jpg")
    assert main(["adapt", *map(str, pair), "--ignore-target-labels"]) == 0
    predictions = load_file(tmp_path / "run" / "predictions.safetensors")
    assert {len(tensor) for tensor in predictions.values()} == {12 + 3 + 1}
    assert "mean_class_accuracy" not in (tmp_path / "run" / "result.json").read_text()
    assert main(["rerun", str(tmp_path / "run"), "--quiet"]) == 0


def test_labels_of_features_can_be_ignored_too(toy: Path, tmp_path: Path) -> None:
    pair = ["-s", f"{toy}:a", "-t", f"{toy}:b", "--iterations", "2", "--quiet"]
    out = tmp_path / "run"
    assert main(["adapt", *pair, "--ignore-target-labels", "--out", str(out)]) == 0
    assert "mean_class_accuracy" not in (out / "result.json").read_text()


def test_one_class_cannot_be_told_apart(
    pictures: Path, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in sorted(photos.iterdir())[1:]:
        shutil.rmtree(folder)
    pair = ["-s", photos, "-t", pictures / "drawings" / "blue", *TINY, "-o", tmp_path / "run"]
    assert "source photos has one class, 'blue'; expected at least two" in said(capsys, 2, *pair)


def test_a_class_without_a_sample_is_said(
    pictures: Path, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (photos / "nothing").mkdir()
    pair = ["-s", photos, "-t", pictures / "drawings", *TINY, "--features", "-o", tmp_path / "run"]
    capsys.readouterr()
    assert main(["adapt", *map(str, pair)]) == 0
    assert "1 of 4 classes without a sample in" in capsys.readouterr().err


def test_labels_with_gaps_are_names(tmp_path: Path) -> None:
    """Before: 3 of 20,001 classes, which was refused, though not in Python."""
    x, y = np.zeros((80, 3), "f4"), np.arange(80) % 3 * 10000
    np.savez(tmp_path / "gaps.npz", X=x, y=y)
    np.savez(tmp_path / "rows.npz", X=x + 1)
    pair = ["-s", tmp_path / "gaps.npz", "-t", tmp_path / "rows.npz", "-o", tmp_path / "run"]
    assert main(["adapt", *map(str, pair), "--quiet", "--iterations", "2"]) == 0
    assert load_run(tmp_path / "run").classes == ("0", "10000", "20000")


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("role", ["a", "b"])
def test_values_that_are_not_finite_are_named(
    role: str, value: float, toy: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arrays = dict(np.load(toy))
    arrays[f"{role}_x"][5, 3] = value
    np.savez(toy, **arrays)
    pair = ["-s", f"{toy}:a", "-t", f"{toy}:b", "-o", tmp_path / "run"]
    assert f"{role}: row 5 has a value in column 3 that is not finite" in said(capsys, 2, *pair)
    if role == "b":
        assert main(["adapt", "-s", f"{toy}:b", *map(str, pair[2:]), "--quiet"]) == 2


def test_a_target_smaller_than_a_batch_is_said(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pair = ["-s", pictures / "photos", "-t", pictures / "drawings", *TINY, "--batch-size", 13]
    assert main(["adapt", *map(str, pair), "-o", str(tmp_path / "run"), "--features"]) == 0
    printed = capsys.readouterr().err
    small = "photos has 12 samples and drawings has 12 samples, fewer than a batch of 13"
    assert f"{small}: their samples are repeated" in printed


@pytest.mark.parametrize(
    "flags", [["--workers", "0"], ["--workers", "2"], ["--devices", "2", "--accelerator", "cpu"]]
)
def test_a_damaged_image_is_one_line_wherever_it_is_read(
    flags: list[str],
    pictures: Path,
    photos: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its header and its end are sound, so that only decoding finds it."""
    broken = photos / "blue" / "1.jpg"
    content = broken.read_bytes()
    middle = len(content) * 2 // 3
    broken.write_bytes(content[:middle] + b"\xff\xc4\xff" * 20 + content[-2:])
    pair = ["-s", photos, "-t", pictures / "drawings", *TINY, *flags]
    capsys.readouterr()
    assert main(["adapt", *map(str, pair), "--batch-size", "12", "-o", str(tmp_path / "run")]) == 2
    *others, line = capsys.readouterr().err.splitlines()
    assert not [other for other in others if "Traceback" in other]
    assert line.startswith(f"equida: {broken}: ")
    assert "replace it, or leave it out with --skip-unreadable (in Python, skip_u" in line
    more = ["--skip-unreadable", "-o", str(tmp_path / "more")]
    assert main(["adapt", *map(str, pair), *more]) == 0
    assert "left out: blue/1.jpg" in capsys.readouterr().err


def test_a_run_on_features_is_done_again_where_it_was_moved_to(
    pictures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, moved = tmp_path / "run", tmp_path / "elsewhere" / "again"
    pair = ["-s", pictures / "photos", "-t", pictures / "drawings", *TINY, "--features"]
    assert main(["adapt", *map(str, pair), "-o", str(out)]) == 0
    moved.parent.mkdir()
    out.rename(moved)
    assert main(["rerun", str(moved), "--quiet"]) == 0
    assert "equal bit for bit" in capsys.readouterr().out
