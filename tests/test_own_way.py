"""Data and calls as people have them: views, refits, folders that change, torch in other modes."""

import logging
import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted
from tests.small_data import Blobs, blobs, write_pictures

import equida
from equida.cli import main
from equida.data import array_domain, feature_domain
from equida.errors import InputError
from equida.estimator import EquidaClassifier

SHORT = {"iterations": 4, "evaluate_every": 2, "batch_size": 8}
CALL: Any = {"recipe_params": SHORT, "progress": False}
ONE: Any = {"methods": "nsm", "seeds": 1, "jobs": 1, **CALL}


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def data() -> Blobs:
    return blobs()


def test_compare_and_tune_keep_every_view(data: Blobs) -> None:
    """Before: all but the first were dropped without a word; of digits one row of pixels stayed."""
    views = np.stack([data.source, data.source + 1.0, data.source - 1.0], 1)
    equida.compare((views, data.labels), views + 0.5, out="c", **ONE)
    np.testing.assert_array_equal(feature_domain("c/source.npz").values, views)
    equida.tune((views, data.labels), views + 0.5, trials=1, jobs=1, out="t", **CALL)
    np.testing.assert_array_equal(feature_domain("t/target.npz").values, views + 0.5)


def test_bench_says_what_is_odd_about_its_data(
    data: Blobs, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before: adapt and compare did alone."""
    views = np.stack([data.source, data.source], 1)
    np.savez("views.npz", a_x=views, a_y=data.labels, b_x=views + 1, b_y=data.labels)
    flags = ["--iterations", "4", "--batch-size", "8", "--seeds", "1", "-j", "1", "--quiet"]
    assert main(["bench", "views.npz", "--methods", "nsm", "--out", "b", *flags]) == 0
    assert "a has 2 views of 8 features for each sample" in capsys.readouterr().err


def test_two_comparisons_are_two_folders(data: Blobs) -> None:
    """Before: the second replaced the data and the table of the first."""
    pair = (data.source, data.labels), (data.target, data.labels)
    other = (data.source[:, ::-1].copy(), data.labels), pair[1]
    for source, target in (pair, other):
        equida.compare(source, target, **ONE)
        equida.tune(source, target, trials=1, jobs=1, **CALL)
    assert len([*Path("runs").glob("source2target-compare-*/table.csv")]) == 2
    assert len([*Path("runs").glob("source2target-tune-*/search.json")]) == 2
    equida.compare(*pair, out="c", **ONE)
    before = {file: file.read_bytes() for file in Path("c").rglob("*.*") if file.is_file()}
    for call in (equida.compare, equida.tune):
        with pytest.raises(InputError, match="c holds runs on other data; choose another --out"):
            call(*other, out="c", **(ONE if call is equida.compare else CALL))
    assert before == {file: file.read_bytes() for file in Path("c").rglob("*.*") if file.is_file()}
    equida.compare(*pair, out="c", **ONE)


def test_files_of_one_name_in_two_folders_are_not_mixed(data: Blobs) -> None:
    """Before: their default folder is one, where the second table replaced the first."""
    for number in (1, 2):
        Path(f"d{number}").mkdir()
        np.savez(f"d{number}/src.npz", X=data.source * number, y=data.labels)
        np.savez(f"d{number}/tgt.npz", X=data.target, y=data.labels)
    equida.compare("d1/src.npz", "d1/tgt.npz", **ONE)
    with pytest.raises(InputError, match="src2tgt-compare holds runs on other data"):
        equida.compare("d2/src.npz", "d2/tgt.npz", **ONE)
    Path("d1").rename("moved")
    table = equida.compare("moved/src.npz", "moved/tgt.npz", **ONE)
    assert len([*Path("runs/src2tgt-compare").glob("*/result.json")]) == len(table.rows) == 1


def test_a_fit_that_fails_leaves_no_classifier(
    data: Blobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before: the old network under the new classes, means and scales, which predicted."""
    model = EquidaClassifier(iterations=4, batch_size=8, random_state=0)
    model.fit(data.source, data.labels, X_target=data.target)
    check_is_fitted(model)

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("equida.estimator.train", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.fit(data.source[:, :4], data.labels[::-1], X_target=data.target[:, :4])
    with pytest.raises(NotFittedError):
        model.predict(data.source)
    assert not hasattr(model, "classes_")
    model.fit(data.source, data.labels, X_target=data.target)
    assert model.predict(data.source).shape == (60,)


def test_a_run_stays_the_run_that_it_is(data: Blobs, tmp_path: Path) -> None:
    """Before: after a change of folder it was whatever lay at the same path there, or empty."""
    first = equida.adapt((data.source, data.labels), data.target, out="run", **CALL)
    expected = first.predict(data.target)
    (tmp_path / "other").mkdir()
    os.chdir(tmp_path / "other")
    equida.adapt((data.source, (data.labels + 1) % 4), data.target, out="run", **CALL)
    np.testing.assert_array_equal(first.predict(data.target).probs, expected.probs)
    os.chdir(tmp_path)
    Path("run").rename("moved")
    with pytest.raises(InputError, match="run is gone; load the run from where it is now"):
        first.curves()
    assert equida.load_run("moved").curves() is not None


def test_predictions_draw_nothing_from_the_callers_generator(data: Blobs) -> None:
    """Before: an `adapt` in another thread was another run than its seed says."""
    run = equida.adapt((data.source, data.labels), data.target, out="run", **CALL)
    torch.manual_seed(5)
    state = torch.get_rng_state()
    run.predict(data.target)
    run.export("model", onnx=False)
    assert torch.equal(state, torch.get_rng_state())


def test_predictions_in_a_thread_leave_a_run_as_it_is(data: Blobs) -> None:
    pair = (data.source, data.labels), data.target
    options: Any = {"progress": False, "recipe_params": SHORT | {"iterations": 60}}
    run = equida.adapt(*pair, out="run", **options)
    stop = threading.Event()

    def predict() -> None:
        while not stop.is_set():
            run.predict(data.target, progress=False)

    thread = threading.Thread(target=predict)
    thread.start()
    try:
        again = equida.adapt(*pair, out="again", **options)
    finally:
        stop.set()
        thread.join(60)
    files = [each.path / "model.safetensors" for each in (run, again)]
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize(
    "mode",
    [
        lambda: torch.autocast("cpu", dtype=torch.bfloat16),
        torch.no_grad,
        torch.inference_mode,
        lambda: torch.device("meta"),
    ],
    ids=["autocast", "no_grad", "inference_mode", "meta"],
)
def test_torch_in_another_mode(
    mode: Callable[[], AbstractContextManager[Any]], data: Blobs
) -> None:
    """Before: another result, or a traceback."""
    _compare_inside(mode, data)


def test_torch_with_another_default_type(data: Blobs) -> None:
    """Before: "mat1 and mat2 must have the same dtype"."""
    torch.set_default_dtype(torch.float64)
    try:
        probs, rows = _results(data, "inside")
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    expected = _results(data, "outside")
    np.testing.assert_array_equal(probs, expected[0])
    np.testing.assert_array_equal(rows, expected[1])


def _compare_inside(mode: Callable[[], AbstractContextManager[Any]], data: Blobs) -> None:
    expected = _results(data, "outside")
    with mode():
        found = _results(data, "inside")
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def _results(data: Blobs, out: str) -> tuple[NDArray[Any], NDArray[Any]]:
    run = equida.adapt((data.source, data.labels), data.target, out=out, **CALL)
    model = EquidaClassifier(iterations=4, batch_size=8, random_state=0)
    model.fit(data.source, data.labels, X_target=data.target)
    return run.predict(data.target).probs, model.predict_proba(data.target)


def test_columns_far_from_zero_are_said(data: Blobs, caplog: pytest.LogCaptureFixture) -> None:
    """Before: accuracy at chance without a word, in a script that shows no progress."""
    for out, moved, said in (
        ("near", 0.0, ""),
        ("far", 1e4, "column 3 is 10,000 on average, far from 0"),
    ):
        caplog.clear()
        rows, others = data.source.copy(), data.target.copy()
        rows[:, 3] += moved
        others[:, 3] += moved
        with caplog.at_level(logging.WARNING):
            equida.adapt((rows, data.labels), others, out=out, **CALL)
        assert [line for line in caplog.messages if "column 3" in line] == [
            line for line in caplog.messages if said and line.startswith(said)
        ]
        assert any("column 3" in line for line in caplog.messages) == bool(said)


def test_labels_whose_index_is_shifted(data: Blobs) -> None:
    """Before: they were paired by position, which trains on wrong labels."""
    frame, labels = pd.DataFrame(data.source), pd.Series(data.labels)
    rows, wrong = frame.drop(index=range(5)), labels.drop(index=range(55, 60))
    with pytest.raises(InputError, match="the index of the labels is not that of the values"):
        array_domain(rows, wrong, name="shop")
    right = array_domain(rows, wrong.to_numpy(), name="shop")
    assert right.labels is not None
    assert right.labels.tolist() == wrong.tolist()


@pytest.mark.parametrize("factor", [1e40, -1e40])
def test_the_estimator_refuses_rows_that_it_cannot_compute_with(factor: float, data: Blobs) -> None:
    """Before: the first class for each of them, and probabilities that are not numbers."""
    model = EquidaClassifier(iterations=4, batch_size=8, random_state=0)
    rows, others = data.source.astype(float), data.target.astype(float)
    model.fit(rows, data.labels, X_target=others)
    with pytest.raises(InputError, match=r"row 0 has a value in column 0 .* too large for float32"):
        model.predict(others * factor)
    for wrong in (1e200, 1e-200):
        with pytest.raises(InputError, match="whose squares are no numbers of float64; scale it"):
            model.fit(rows * wrong, data.labels, X_target=others * wrong)


class Animal(str, Enum):  # noqa: UP042  # whose str() is another than its value
    """Names that begin alike, longer than their values."""

    CAT_A = "ab"
    CAT_B = "cd"
    DOG = "ef"
    FOX = "gh"


def test_members_of_an_enum_are_the_text_that_they_are(data: Blobs) -> None:
    """Before: numpy cut their names to the length of the values, which merged classes."""
    labels = [list(Animal)[number] for number in data.labels]
    model = EquidaClassifier(iterations=2, batch_size=8).fit(
        data.source, labels, X_target=data.target
    )
    assert model.classes_.tolist() == ["ab", "cd", "ef", "gh"]
    domain = array_domain(data.source, labels, name="zoo")
    assert domain.classes == ("ab", "cd", "ef", "gh")
    assert domain.labels is not None
    assert domain.labels.tolist() == data.labels.tolist()


@pytest.mark.parametrize("names", [("X", "Y"), ("X", "labels"), ("features", "y"), ("x", "label")])
def test_names_of_the_arrays_of_a_file(names: tuple[str, str], data: Blobs) -> None:
    """Before: labels under another name than that beside the rows' were not read."""
    np.savez("one.npz", **{names[0]: data.source, names[1]: data.labels})  # type: ignore[arg-type]
    domain = feature_domain("one.npz")
    assert domain.labels is not None
    assert domain.labels.tolist() == data.labels.tolist()


def test_files_that_are_no_images_are_not_labelled(data: Blobs) -> None:
    """Before: no predictions, and no error."""
    run = equida.adapt((data.source, data.labels), data.target, out="run", **CALL)
    Path("rows.csv").write_text("1,2\n")
    with pytest.raises(InputError, match=r"rows.csv is not an image; expected images, folders"):
        run.predict("rows.csv")


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
def test_a_column_of_missing_labels_is_unlabelled(missing: Any, data: Blobs) -> None:
    """Before: refused, while -1 in every row was not."""
    labels = pd.Series([missing] * 60, dtype=object)
    assert array_domain(data.target, labels, name="desk").labels is None
    assert array_domain(data.target, [missing] * 60, name="desk").labels is None


def test_target_labels_that_are_to_be_ignored_are_not_looked_at(data: Blobs) -> None:
    """Before: refused for what is wrong with them."""
    odd = np.where(data.labels > 1, -1, data.labels)
    pair: Any = ((data.source, data.labels), (data.target, odd))
    run = equida.adapt(*pair, ignore_target_labels=True, out="run", **CALL)
    assert run.accuracy is None
    equida.tune(*pair, trials=1, jobs=1, out="t", **CALL)
    with pytest.raises(InputError, match="negative, which means unlabelled"):
        equida.adapt(*pair, out="no", **CALL)


@pytest.mark.parametrize("spoil", ["quantized", "meta"])
def test_tensors_without_plain_values(spoil: str, data: Blobs) -> None:
    """Before: torch's own messages."""
    rows = torch.from_numpy(data.target)
    if spoil == "meta":
        rows = rows.to("meta")
    else:
        rows = torch.quantize_per_tensor(rows, 0.1, 0, torch.qint8)
    with pytest.raises(InputError, match=f"values are a {spoil} tensor"):
        array_domain(rows, name="desk")


def test_what_a_source_is_not(data: Blobs) -> None:
    pair = torch.utils.data.TensorDataset(torch.zeros(3, 2), torch.zeros(3))
    with pytest.raises(InputError, match="source is of type TensorDataset and has no labels"):
        equida.adapt(pair, data.target, **CALL)  # type: ignore[arg-type]


def test_the_advice_of_a_run_can_be_followed(
    data: Blobs, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before: the same command with what it advises was refused, in the same default folder."""
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


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["adapt", "--method", "source_only", "--prior", "estimate"],
            "--prior; it is a setting of",
        ),
        (["compare", "a", "b", "--features"], "--features; features of images are computed anyway"),
        (["bench", "digits", "--feature"], "--feature; did you mean --features?"),
        (["adapt", "--validator", "knn"], "--validator; --keep names the validator"),
    ],
)
def test_options_of_other_commands_and_methods(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before: a likeness of letters, or only what else is missing."""
    assert main(words) == 2
    assert f"unrecognized options: {said}" in capsys.readouterr().err


def test_doctor_looks_at_what_domains_are_judged_by(
    data: Blobs, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before: "Usable", and `bench` refused the data."""
    write_pictures(Path("photos"), ["a", "b"], ["red", "blue"])
    names = [f"{kind}/{number}.jpg {label}" for number in range(4)
             for label, kind in enumerate(("red", "blue"))]  # fmt: skip
    for part, lines in (("train", names[:4]), ("test", names[4:])):
        Path(f"photos/b_{part}.txt").write_text("".join(f"b/{line}\n" for line in lines))
    Path("set.toml").write_text(
        'root = "photos"\n[domains.a]\npath = "a"\n'
        '[domains.b]\ntrain = "b_train.txt"\ntest = "b_test.txt"\n'
    )
    assert main(["doctor", "set.toml"]) == 0
    assert "b (test)" in capsys.readouterr().out
    Path("photos/b/blue/3.jpg").unlink()
    assert main(["doctor", "set.toml"]) == 1
    assert "blue/3.jpg" in capsys.readouterr().out


@pytest.mark.parametrize("size", ["5", "-1", "-5GB", "99"])
def test_a_size_of_the_cache_without_a_unit(
    size: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before: 5 bytes, or fewer than none, so that nothing was kept and nothing said."""
    monkeypatch.setenv("EQUIDA_CACHE_SIZE", size)
    assert main(["cache"]) == 2
    assert (
        f"EQUIDA_CACHE_SIZE is '{size}'; expected a size such as 500MB" in capsys.readouterr().err
    )


def test_one_method_is_not_compared_with_others(data: Blobs) -> None:
    """Before: all scores agreed that it is the best."""
    pair = (data.source, data.labels), (data.target, data.labels)
    table = equida.compare(*pair, out="c", **ONE)
    assert not [note for note in table.notes if "pick" in note or "the best" in note]
