"""Tables of the user's own, as they come out of pandas, at the front door."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from tests.small_data import BACKBONE, blobs, write_pictures

import equida
from equida.cli import main
from equida.data import array_domain, make_task
from equida.errors import InputError
from equida.runs.read import Run
from equida.training.request import data_remarks

SMALL: dict[str, Any] = {"iterations": 4, "batch_size": 8, "bottleneck": 6, "evaluate_every": 2}
NAMES = list("abcdefgh")


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder of its own, as runs are written below the current one."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def frames() -> tuple[pd.DataFrame, Any, pd.DataFrame]:
    made = blobs()
    source, target = (pd.DataFrame(x, columns=NAMES) for x in (made.source, made.target))
    return source, made.labels, target


def adapted(source: Any, labels: Any, target: Any, **others: Any) -> Run:
    return equida.adapt((source, labels), target, recipe_params=SMALL, progress=False, **others)


def test_columns_in_another_order_are_refused(frames: tuple[Any, Any, Any]) -> None:
    """Before: they were taken in the order given, and every label was wrong."""
    source, labels, target = frames
    turned = target[NAMES[::-1]]
    said = r"target has the columns 'h', 'g', .*; expected the same in the order 'a', 'b',"
    with pytest.raises(InputError, match=said):
        adapted(source, labels, turned)
    with pytest.raises(InputError, match=said):
        equida.compare((source, labels), turned, methods=["nsm"], out="compared", progress=False)
    with pytest.raises(InputError, match=said):
        equida.tune((source, labels), turned, trials=1, out="search", progress=False)
    assert not Path("compared").exists()
    assert not Path("search").exists()
    with pytest.raises(InputError, match="it lacks 'a'; it has besides 'z'"):
        adapted(source, labels, target.rename(columns={"a": "z"}))


def test_a_run_knows_the_columns_that_it_was_trained_on(frames: tuple[Any, Any, Any]) -> None:
    source, labels, target = frames
    run = adapted(source, labels, target)
    again = equida.load_run(run.path)
    expected = run.predict(target).labels
    assert again.predict(target.to_numpy()).labels == expected, "an array has no names"
    with pytest.raises(InputError, match="rows has the columns 'h'"):
        again.predict(target[NAMES[::-1]])
    for number, (mine, theirs) in enumerate(
        [(source, target.to_numpy()), (source.to_numpy(), target)]
    ):  # before: those of a source alone were forgotten
        one_side = adapted(mine, labels, theirs, out=f"one_side{number}")
        with pytest.raises(InputError, match="rows has the columns 'h'"):
            one_side.predict(target[NAMES[::-1]])
    unnamed = adapted(source.to_numpy(), labels, target.to_numpy(), out="unnamed")
    assert unnamed.predict(target[NAMES[::-1]]).labels, "nothing is known to compare with"


def test_a_run_without_source_data_compares_columns_too(frames: tuple[Any, Any, Any]) -> None:
    """Before: there was no source to compare them with, and none were compared."""
    source, labels, target = frames
    run = adapted(source, labels, target)
    for other, said in (
        (target[NAMES[::-1]], "target has the columns 'h'"),
        (target.rename(columns={"a": "z"}), "it lacks 'a'; it has besides 'z'"),
    ):
        with pytest.raises(InputError, match=said):
            equida.adapt(None, other, from_run=run, out="next", progress=False)


def test_runs_of_a_comparison_know_their_columns(frames: tuple[Any, Any, Any]) -> None:
    """Before: compare and tune wrote the rows into files without the names."""
    source, labels, target = frames
    for _ in range(2):  # its own files may be written again
        equida.compare(
            (source, labels), target, methods=["nsm"], recipe_params=SMALL, jobs=1, seeds=1,
            out="compared", progress=False,
        )  # fmt: skip
    (run,) = [equida.load_run(found.parent) for found in Path("compared").rglob("result.json")]
    with pytest.raises(InputError, match="rows has the columns 'h'"):
        run.predict(target[NAMES[::-1]])


def test_a_feature_file_may_name_its_columns(frames: tuple[Any, Any, Any]) -> None:
    source, labels, target = frames
    np.savez("a.npz", X=source, y=labels, columns=NAMES)
    np.savez("b.npz", X=target, columns=NAMES[::-1])
    with pytest.raises(InputError, match="b has the columns 'h', 'g'"):
        equida.adapt("a.npz", "b.npz", recipe_params=SMALL, progress=False)
    np.savez("b.npz", X=target, columns=NAMES[1:])
    with pytest.raises(InputError, match=r"b\.npz: 7 columns for rows of shape \(8,\)"):
        equida.adapt("a.npz", "b.npz", recipe_params=SMALL, progress=False)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e39])
def test_rows_that_are_not_finite_are_not_labelled(
    value: float, frames: tuple[Any, Any, Any]
) -> None:
    """Before: they were given the first class, with a confidence that is not a number."""
    source, labels, target = frames
    run = adapted(source, labels, target)
    rows = np.array(target, np.float64)
    rows[3, 2] = value
    with pytest.raises(InputError, match="row 3 has a value in column 2 that is "):
        run.predict(rows)


def test_columns_of_several_kinds_of_numbers(frames: tuple[Any, Any, Any]) -> None:
    source, labels, target = frames
    own = source.convert_dtypes()
    own["a"] = (source["a"] > 0).astype("boolean")
    own["b"] = source["b"] > 0
    plain = source.assign(a=source["a"] > 0, b=source["b"] > 0).astype(float)
    first, second = (
        adapted(x, labels, target, out=out).predict(target).probs
        for x, out in ((own, "own"), (plain, "plain"))
    )
    np.testing.assert_array_equal(first, second)
    with pytest.raises(InputError, match=r"source: column 'c' holds (object|str)"):
        adapted(source.assign(c="red"), labels, target)


def test_sparse_matrices_are_refused_by_name(frames: tuple[Any, Any, Any]) -> None:
    source, labels, target = frames
    with pytest.raises(InputError, match=r"sparse matrix; make them dense with \.toarray\(\)"):
        adapted(sparse.csr_matrix(source), labels, target)


def test_truth_values_and_whole_numbers_have_one_name_each(frames: tuple[Any, Any, Any]) -> None:
    """Before: truth values were "0" and "1" in an array of their own, else "False" and "True"."""
    source, labels, target = frames
    numbers = np.asarray(labels)
    for number, (mine, theirs) in enumerate(
        [
            (numbers > 0, pd.Series(numbers > 0, dtype=object)),
            (pd.Series(numbers > 0, dtype="boolean"), np.where(numbers > 0, "True", "False")),
        ]
    ):
        run = equida.adapt(
            (source, mine), (source, theirs), recipe_params=SMALL, out=f"run{number}"
        )
        assert run.classes == ("False", "True")
    run = adapted(source, pd.Series(numbers + 8, dtype=object), target, out="numbers")
    assert run.classes == ("8", "9", "10", "11"), "in the order of numbers, not of letters"


def test_paths_may_stand_in_a_table_or_an_array_or_come_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_pictures(tmp_path, ("photos", "clipart"), ("mug", "pen"))
    (tmp_path / "table_net.py").write_text(BACKBONE)
    monkeypatch.syspath_prepend(str(tmp_path))
    photos, clipart = (
        equida.extract_features(name, backbone="table_net:net", progress=False)
        for name in ("photos", "clipart")
    )
    run = equida.adapt(photos, clipart, recipe_params=SMALL, progress=False)
    assert run.classes == ("mug", "pen"), "features carry their labels"
    files = sorted(Path("clipart").rglob("*.*"))
    texts = list(map(str, files))
    expected = run.predict(files).labels
    for given in (pd.Series(texts), np.array(texts), iter(files), dict.fromkeys(texts).keys()):
        assert run.predict(given).labels == expected
    assert run.predict(clipart).labels


def test_the_command_labels_feature_files(
    capsys: pytest.CaptureFixture[str], frames: tuple[Any, Any, Any]
) -> None:
    """Before: it took them for images that cannot be read, or said that FILE:DOMAIN is no file."""
    source, labels, target = frames
    np.savez("both.npz", shop_x=source, shop_y=labels, desk_x=target)
    argv = ["adapt", "-s", "both.npz:shop", "-t", "both.npz:desk", "--out", "run", "--quiet"]
    assert main([*argv, "--iterations", "4"]) == 0
    capsys.readouterr()
    assert main(["predict", "run", "both.npz:desk"]) == 0
    printed = capsys.readouterr()
    assert f"{len(target)} samples labelled, 0 unreadable" in printed.err
    lines = printed.out.splitlines()
    assert lines[0].startswith("image,label,confidence")
    found = [line.split(",")[1] for line in lines[1:]]
    assert found == equida.load_run("run").predict(target.to_numpy()).labels
    assert main(["predict", "run", "both.npz"]) == 2
    assert "holds the domains shop, desk" in capsys.readouterr().err


def test_a_command_that_fails_leaves_no_table(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, frames: tuple[Any, Any, Any]
) -> None:
    """Before: a line with the names of the columns, which looked like a table without rows."""
    source, labels, target = frames
    adapted(source, labels, target, out="run")
    write_pictures(tmp_path, ("photos",), ("mug",))
    capsys.readouterr()
    assert main(["predict", "run", "photos"]) == 2
    printed = capsys.readouterr()
    assert not printed.out
    assert "trained on features of unknown origin" in printed.err
    assert main(["predict", "run", "photos", "--out", "labels.csv"]) == 2
    assert not Path("labels.csv").exists()


@pytest.mark.parametrize(
    "wrong", ["narrow.npz", "infinite.npz", "empty.npz", "both.npz:desk --batch-size 0", "photos"]
)
def test_a_table_that_is_there_outlives_a_command_that_fails(
    wrong: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, frames: tuple[Any, Any, Any]
) -> None:
    """Before: rows were looked at once the table was open, after those of the files before."""
    source, labels, target = (np.asarray(each) for each in frames)
    adapted(source, labels, target, out="run")
    np.savez("both.npz", shop_x=source, shop_y=labels, desk_x=target)
    np.savez("narrow.npz", X=target[:, 1:])
    np.savez("infinite.npz", X=np.where(np.arange(8) == 2, np.inf, target))
    np.savez("empty.npz", X=target[:0])
    write_pictures(tmp_path, ("photos",), ("mug",))
    assert main(["predict", "run", "both.npz:desk", "--out", "labels.csv"]) == 0
    before = Path("labels.csv").read_bytes()
    assert before
    capsys.readouterr()
    assert main(["predict", "run", "both.npz:desk", *wrong.split(), "--out", "labels.csv"]) == 2
    assert Path("labels.csv").read_bytes() == before
    assert main(["predict", "run", "both.npz:desk", *wrong.split()]) == 2
    printed = capsys.readouterr()
    assert not printed.out
    assert "Traceback" not in printed.err


def test_whole_floats_are_labels(frames: tuple[Any, Any, Any]) -> None:
    """Before: refused, though pandas makes floats of integers wherever one was missing once."""
    source, labels, target = frames
    labels = np.asarray(labels)
    numbered = np.array([1, 2, 5, 6])[labels]  # numbers that are missing are no classes
    objects = numbered.astype(object)
    objects[0] = np.int64(objects[0])
    objects[1] = float(objects[1])
    for number, given in enumerate((numbered, numbered.astype(float), objects)):
        assert adapted(source, given, target, out=f"run{number}").classes == ("1", "2", "5", "6")
    for wrong, said in (
        (np.nan, "row 3 has label nan; .* rows without a label left out"),
        (0.5, "row 3 has label 0.5; expected class names or integers$"),
    ):
        damaged = labels.astype(float)
        damaged[3] = wrong
        with pytest.raises(InputError, match=said):
            adapted(source, damaged, target)


def test_arrays_of_three_axes_are_said_to_be_views(tmp_path: Path) -> None:
    """Before, all but the first view was thrown away in prediction without a word."""
    rows, labels = np.random.default_rng(0).normal(size=(40, 4, 3)), np.arange(40) % 2
    source = array_domain(rows, labels, name="old")
    (line,) = data_remarks(make_task(source, array_domain(rows + 0.1, name="new")), 36)
    assert line.startswith("old has 4 views of 3 features for each sample")
    assert "give 12 columns" in line
