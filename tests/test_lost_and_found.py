"""What a new user lost without a word, or could not find again."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.small_data import BACKBONE, blobs, write_blobs, write_pictures

import equida
from equida.class_shares import shares_text
from equida.cli import main
from equida.data import feature_domain
from equida.errors import InputError
from equida.runs.target import share_remarks
from equida.training.aims import aim_lines
from equida.training.config import Aim

SHORT = {"iterations": 4, "evaluate_every": 2, "batch_size": 8}
QUICK = ["--quiet", "--iterations", "4", "--batch-size", "8", "--evaluate-every", "4"]


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny_backbone.py").write_text(BACKBONE)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.slow(reason="computes features")
def test_features_of_other_images_are_not_written_over() -> None:
    """Before: `features --out FILE` with another folder or domain left the new one's alone."""
    write_pictures(Path(), ["a", "b"], ["red", "blue"])
    network: Any = {"backbone": "tiny_backbone:net", "out": "f.safetensors", "progress": False}
    kept = equida.extract_features("a", **network)
    with pytest.raises(InputError, match=r"holds features of other images \(a\), which would be"):
        equida.extract_features("b", **network)
    assert len(feature_domain("f.safetensors")) == len(kept.x)
    Path("a").rename("renamed")
    (Path("renamed") / "red").rename(Path("renamed") / "crimson")
    assert equida.extract_features("renamed", **network).classes == ("blue", "crimson")


def test_sizes_that_a_method_has_made_equal_do_not_hide_a_skewed_target() -> None:
    """Before: nothing was said of a target of one class, which NSM had spread over all."""
    shares = {"predicted": [0.25] * 4, "aim": [0.25] * 4, "agreement": 0.0, "imbalance": 0.0}
    harm = {name: {"equity": equity} for name, equity in (("source_only", -0.5), ("adapted", 1.0))}
    (line,) = share_remarks({"shares": shares, "harm": harm})
    assert line.startswith("cannot tell whether the target is imbalanced")
    assert not share_remarks({"shares": shares, "harm": harm | {"source_only": {"equity": 0.9}}})


def test_what_is_mixed_into_given_shares_and_what_they_leave_out_is_said() -> None:
    """Before: 0.5 became 0.417, and a class that a file did not name had no share, silently."""
    classes = ["mug", "pen", "cup"]
    given = Aim(shares_text({"mug": 0.5, "pen": 0.5}, "prior"), 0.5, [], [0.4, 0.4, 0.2], False)
    (line,) = aim_lines({"nsm": given}, classes)
    assert "by the list that was given (which has none for cup), mixed with equal ones by" in line
    assert "prior_strength 0.5 (1 takes them as they are): mug 40.0 % to cup 20.0 %" in line
    full = Aim(shares_text([0.5, 0.3, 0.2], "prior"), 1.0, [], [0.5, 0.3, 0.2], False)
    (line,) = aim_lines({"nsm": full}, classes)
    assert "by the list that was given: mug 50.0 %" in line


def test_rows_of_several_files_keep_their_file(capsys: pytest.CaptureFixture[str]) -> None:
    """Before: two rows were called "row 0"."""
    write_blobs(Path("rows.npz"))
    assert main(["adapt", "-s", "rows.npz:a", "-t", "rows.npz:b", "-o", "run", *QUICK]) == 0
    capsys.readouterr()
    assert main(["predict", "run", "rows.npz:a", "rows.npz:b"]) == 0
    lines = capsys.readouterr().out.splitlines()
    names = [line.partition(",")[0] for line in lines[1:]]
    assert len(set(names)) == len(names) == 120
    assert (names[0], names[60]) == ("rows.npz:a row 0", "rows.npz:b row 0")


def test_rows_that_are_not_finite_can_be_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    """Before: a run trained with --skip-unreadable could not label its own target."""
    data = blobs()
    spoiled = data.target.copy()
    spoiled[3, 2] = np.nan
    run = equida.adapt(
        (data.source, data.labels), spoiled, recipe_params=SHORT, skip_unreadable=True,
        out="run", progress=False,
    )  # fmt: skip
    with pytest.raises(InputError, match="row 3 has a value in column 2 that is not finite"):
        run.predict(spoiled)
    found = run.predict(spoiled, skip_unreadable=True)
    assert [name for name, _ in found.unreadable] == ["row 3"]
    whole = run.predict(data.target)
    assert found.labels == whole.labels[:3] + whole.labels[4:]
    np.savez("spoiled.npz", X=spoiled)
    capsys.readouterr()
    assert main(["predict", "run", "spoiled.npz", "--skip-unreadable"]) == 0
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 60
    assert "left out: row 3: holds values that are not finite" in said.err
    assert "59 samples labelled, 1 unreadable" in said.err


def test_labels_with_the_index_in_another_order() -> None:
    """Before: they were taken by position, which trains on wrong labels."""
    data = blobs()
    rows = pd.DataFrame(data.source).sample(frac=1.0, random_state=0)
    labels = pd.Series(data.labels)
    options: Any = {"recipe_params": SHORT, "progress": False, "out": "run"}
    with pytest.raises(InputError, match="index of the labels has the rows in another order"):
        equida.adapt((rows, labels), data.target, **options)
    equida.adapt((rows, labels.loc[rows.index]), data.target, **options)
    equida.adapt((rows, labels.loc[rows.index].to_numpy()), data.target, **options)


def test_a_target_that_is_the_source_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """Before: accuracies of samples that were trained on looked like any other."""
    write_blobs(Path("rows.npz"))
    assert main(["adapt", "-s", "rows.npz:a", "-t", "rows.npz:a", "-o", "same", *QUICK]) == 0
    assert "source and target are the same 60 samples" in capsys.readouterr().err


@pytest.mark.slow(reason="computes features")
def test_folders_of_one_name_are_told_apart() -> None:
    """Before: "features-0.safetensors2features-1.safetensors"."""
    for number in (1, 2):
        write_pictures(Path(f"cam{number}"), ["images"], ["red", "blue"])
    run = equida.adapt(
        "cam1/images", "cam2/images", features=True, backbone="tiny_backbone:net",
        recipe_params=SHORT, out="run", progress=False,
    )  # fmt: skip
    assert run.result is not None
    assert run.result["task"] == "cam12cam2"
