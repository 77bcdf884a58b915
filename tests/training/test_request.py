"""What is said of the data that a run is asked for."""

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.small_data import CALL, SHORT_FLAGS, blobs, write_blobs

import equida
from equida.cli import main

pytestmark = pytest.mark.usefixtures("own_folder")


def test_columns_of_very_different_scale_are_remarked(capsys: pytest.CaptureFixture[str]) -> None:
    """Before: the largest alone was learned from, without a word."""
    data = blobs()
    scale = np.where(np.arange(data.source.shape[1]) == 2, 1e4, 1.0)
    for factor, said in ((scale, True), (1.0, False)):
        np.savez("a.npz", X=data.source * factor, y=data.labels)
        np.savez("b.npz", X=data.target * factor)
        argv = ["adapt", "-s", "a.npz", "-t", "b.npz", "--iterations", "2", "--out", f"run{said}"]
        assert main(argv) == 0
        printed = capsys.readouterr()
        assert ("column 2 varies" in printed.err + printed.out) is said


def test_columns_far_from_zero_are_said(caplog: pytest.LogCaptureFixture) -> None:
    """Before: accuracy at chance without a word, in a script that shows no progress."""
    data = blobs()
    for out, moved, said in (
        ("near", 0.0, ""),
        ("far", 1e4, "column 3 is 10,000 on average, far from 0"),
        ("constant", None, ""),
        ("large", 1e9, "column 3 is 1,000,000,000 on average, far from 0"),
    ):
        caplog.clear()
        rows, others = data.source.copy(), data.target.copy()
        for each in (rows, others):
            each[:, 3] = 500.0 if moved is None else each[:, 3] + moved
        with caplog.at_level(logging.WARNING):
            equida.adapt((rows, data.labels), others, out=out, **CALL)
        assert [line for line in caplog.messages if "column 3" in line] == [
            line for line in caplog.messages if said and line.startswith(said)
        ]
        assert any("column 3" in line for line in caplog.messages) == bool(said)


def test_a_domain_by_its_name_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """Before: a place that exists was named, and nothing was said of -d."""
    assert main(["adapt", "-s", "photo", "-t", "sketch"]) == 2
    said = capsys.readouterr().err
    assert "/photo does not exist; " in said
    assert said.endswith("; a domain of a data set needs the data set, too (-d)\n")


def test_views_of_files_are_not_asked_about(capsys: pytest.CaptureFixture[str]) -> None:
    """Before: every run on views that equida had computed said what an array of them means."""
    data = blobs()
    views = np.stack([data.source, data.source], 1)
    names = np.array([f"{row}.jpg" for row in range(60)])
    known: dict[str, Any] = {"a_path": names, "b_path": names}
    for name, paths in (("plain", {}), ("files", known)):
        np.savez(f"{name}.npz", a_x=views, a_y=data.labels, b_x=views, **paths)
        pair = ["-s", f"{name}.npz:a", "-t", f"{name}.npz:b"]
        assert main(["adapt", *pair, "-o", name, *SHORT_FLAGS]) == 0
        said = "a has 2 views of 8 features for each sample" in capsys.readouterr().err
        assert said == (not paths)


def test_a_target_that_is_the_source_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """Before: accuracies of samples that were trained on looked like any other."""
    write_blobs(Path("rows.npz"))
    assert main(["adapt", "-s", "rows.npz:a", "-t", "rows.npz:a", "-o", "same", *SHORT_FLAGS]) == 0
    assert "source and target are the same 60 samples" in capsys.readouterr().err
