"""What a finished run says of new rows and files: which it leaves out, and how they are named."""

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from tests.small_data import CALL, SHORT, blobs, write_blobs, write_pictures

import equida
from equida.cli import main
from equida.errors import InputError

pytestmark = pytest.mark.usefixtures("own_folder")


def test_rows_that_are_not_finite_can_be_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    """Before: a run trained with --skip-unreadable could not label its own target."""
    data = blobs()
    spoiled = data.target.copy()
    spoiled[3, 2] = np.nan
    run = equida.adapt((data.source, data.labels), spoiled, skip_unreadable=True, out="run", **CALL)
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


def test_one_row_of_several_that_have_one_path_is_left_out() -> None:
    """Before: all rows of its path went with it."""
    data = blobs()
    write_blobs(Path("rows.npz"))
    run = equida.adapt("rows.npz:a", "rows.npz:b", out="run", **CALL)
    spoiled = data.target.copy()
    spoiled[3] = np.nan
    paths = np.array([f"{row // 2}.jpg" for row in range(60)])
    np.savez("spoiled.npz", b_x=spoiled, b_path=paths)
    found = run.predict("spoiled.npz", skip_unreadable=True)
    assert [name for name, _ in found.unreadable] == ["1.jpg"]
    assert len(found.paths) == 59
    assert found.paths.count("1.jpg") == 1
    trained = equida.adapt("rows.npz:a", "spoiled.npz", skip_unreadable=True, out="other", **CALL)
    assert len(trained.predictions.labels) == 59


def test_rows_are_left_out_for_the_view_that_is_predicted_alone() -> None:
    """Before: a value in another view, which prediction does not read, cost the row."""
    data = blobs()
    views = np.stack([data.source, data.source], 1)
    run = equida.adapt((views, data.labels), views, out="run", **CALL)
    views[5, 1, 0] = np.nan
    assert run.predict(views, skip_unreadable=True).labels == run.predict(views).labels
    views[5, 0, 0] = np.nan
    assert len(run.predict(views, skip_unreadable=True).labels) == 59


def test_predictions_for_a_data_frame_have_its_index() -> None:
    """Before: 0, 1, 2, ..., so that joining them to the frame mixed its rows up."""
    data = blobs()
    columns = [f"c{number}" for number in range(8)]
    source = pd.DataFrame(data.source, columns=columns)
    target = pd.DataFrame(data.target, columns=columns, index=[f"part {k}" for k in range(60)])
    run = equida.adapt((source, data.labels), target, out="run", **CALL)
    plain = run.predict(target.to_numpy()).to_frame()
    assert plain.index.tolist() == list(range(60))
    chosen = target.iloc[[7, 3, 40]].copy()
    chosen.iloc[1, 0] = np.nan
    found = run.predict(chosen, skip_unreadable=True, batch_size=1).to_frame()
    assert found.index.tolist() == ["part 7", "part 40"]
    assert found["label"].tolist() == plain["label"].iloc[[7, 40]].tolist()


def test_files_that_are_no_images_are_not_labelled() -> None:
    """Before: no predictions, and no error."""
    data = blobs()
    run = equida.adapt((data.source, data.labels), data.target, out="run", **CALL)
    Path("rows.csv").write_text("1,2\n")
    with pytest.raises(InputError, match=r"rows.csv is not an image; expected images, folders"):
        run.predict("rows.csv")


@pytest.mark.usefixtures("own_folder")
@pytest.mark.slow(reason="computes features")
def test_a_file_among_images_that_is_none_is_left_out() -> None:
    write_pictures(Path(), ["a", "b"], ["red", "blue"])
    run = equida.adapt("a", "b", features=True, backbone="tiny_backbone:net", out="run", **CALL)
    Path("b/meta.json").write_text("{}")
    found = run.predict([*sorted(Path("b").glob("red/*.jpg")), Path("b/meta.json")])
    assert len(found) == 4
    assert [Path(path).name for path, _ in found.unreadable] == ["meta.json"]


def test_predictions_draw_nothing_from_the_callers_generator() -> None:
    """Before: an `adapt` in another thread was another run than its seed says."""
    data = blobs()
    run = equida.adapt((data.source, data.labels), data.target, out="run", **CALL)
    torch.manual_seed(5)
    state = torch.get_rng_state()
    run.predict(data.target)
    run.export("model", onnx=False)
    assert torch.equal(state, torch.get_rng_state())


def test_predictions_in_a_thread_leave_a_run_as_it_is() -> None:
    data = blobs()
    pair = (data.source, data.labels), data.target
    options: Any = {"progress": False, "recipe_params": SHORT | {"iterations": 60}}
    run = equida.adapt(*pair, out="run", **options)
    stop, predicted = threading.Event(), []

    def predict() -> None:
        while not stop.is_set():
            run.predict(data.target, progress=False)
            predicted.append(stop.is_set())

    thread = threading.Thread(target=predict)
    thread.start()
    try:
        again = equida.adapt(*pair, out="again", **options)
    finally:
        stop.set()
        thread.join(60)
    assert predicted.count(False) > 1, "predictions wait for the training to end"
    files = [each.path / "model.safetensors" for each in (run, again)]
    assert files[0].read_bytes() == files[1].read_bytes()
