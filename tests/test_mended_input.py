"""Good input that was refused or mixed up, and bad input that was not told."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from tests.small_data import BACKBONE, blobs, write_blobs, write_pictures

import equida
from equida import scorers
from equida.cli import main
from equida.data import ImageDomain, array_domain, feature_domain, load_task, open_domain
from equida.data.discover import find_benchmark
from equida.data.feature_cache.file import Existing
from equida.errors import InputError
from equida.estimator import EquidaClassifier
from equida.evaluation.shares import estimate_shares
from equida.training.aims import aim_lines
from equida.training.config import Aim

SHORT = {"iterations": 4, "evaluate_every": 2, "batch_size": 8}
NETWORK: Any = {"backbone": "tiny_backbone:net", "progress": False}


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny_backbone.py").write_text(BACKBONE)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.parametrize("numbers", [[1, 2, 3, 4], [10, 20, 21, 40]])
def test_numbers_that_are_class_names_in_a_file_of_several_domains(numbers: list[int]) -> None:
    """Before: 1-based labels were refused, as indices that are too large, or taken for others."""
    data, names = blobs(), np.array(numbers)
    fewer = data.labels < 3
    np.savez(
        "rows.npz", a_x=data.source[fewer], a_y=names[data.labels[fewer]], b_x=data.target,
        b_y=names[data.labels], c_x=data.target, c_y=names[data.labels],
    )  # fmt: skip
    options: Any = {"methods": ["source_only"], "seeds": 1, "jobs": 1, "recipe_params": SHORT}
    equida.bench("rows.npz", tasks=["a2b"], out="runs", progress=False, **options)
    (folder,) = Path("runs").glob("*-source_only-*")
    assert equida.load_run(folder).classes == tuple(map(str, numbers[:3]))
    task = load_task(find_benchmark("rows.npz"), "b2c", data_dir="rows.npz")
    assert task.classes == tuple(map(str, numbers))
    assert task.target.labels is not None
    assert task.target.labels.tolist() == data.labels.tolist()


def test_workers_that_began_in_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before: after a change of folder the results lay in the old one, and the table was empty."""
    data = blobs()
    pair = (data.source, data.labels), (data.target, data.labels)
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        table = equida.compare(
            *pair, methods=["source_only", "nsm"], seeds=1, jobs=2, recipe_params=SHORT,
            out="compared", progress=False,
        )  # fmt: skip
        assert len([row for row in table.rows if row.cells[table.columns[0].key].mean]) == 2
        assert len([*Path("compared").glob("*/result.json")]) == 2


@pytest.mark.slow(reason="computes features")
def test_features_are_brought_up_to_date_by_the_same_call() -> None:
    """Before: refused, where a domain had no readable image or only new ones."""
    photos = write_pictures(Path("photos"), ["a", "b"], ["red", "blue"])
    for file in (photos / "b").rglob("*.jpg"):
        file.write_bytes(b"broken")
    call = ["features", "photos", "--out", "f.safetensors", "--backbone", "tiny_backbone:net"]
    for _ in range(2):
        assert main([*call, "--skip-unreadable"]) == 0
        assert len(feature_domain("f.safetensors", domain="a")) == 8
    before = np.asarray(feature_domain("f.safetensors", domain="a").values)
    for file in (photos / "a").rglob("*.jpg"):
        whole = file.read_bytes()
        (photos / "b" / file.relative_to(photos / "a")).write_bytes(whole)
        file.write_bytes(whole + b"\0")  # other bytes, the same picture
    assert main(call) == 0
    after = np.asarray(feature_domain("f.safetensors", domain="a").values)
    np.testing.assert_array_equal(before, after)
    # The name alone is not enough: many folders are called "images".
    write_pictures(Path("other"), ["a"], ["green"])
    (Path("other") / "a" / "green").rename(Path("other") / "a" / "lime")
    with pytest.raises(InputError, match=r"holds features of other images \(a\)"):
        equida.extract_features("other/a", out="f.safetensors", **NETWORK)


@pytest.mark.slow(reason="computes features")
@pytest.mark.parametrize("damage", ["owners", "domains"])
def test_a_damaged_feature_file_is_made_again(damage: str) -> None:
    """Before: IndexError, or TypeError."""
    write_pictures(Path(), ["a"], ["red", "blue"])
    file = Path("f.safetensors")
    equida.extract_features("a", out=file, **NETWORK)
    whole = file.read_bytes()
    if damage == "owners":
        held = Existing(file)
        start = len(held.first) + held._entries["domains"]["data_offsets"][0]
        file.write_bytes(whole[:start] + b"\x07" + whole[start + 1 :])
    else:
        changed = whole.replace(b'\\"domains\\": [\\"a\\"]', b'\\"domains\\": 1234567')
        assert len(changed) == len(whole)
        file.write_bytes(changed)
    equida.extract_features("a", out=file, **NETWORK)
    assert file.read_bytes() == whole


def test_frames_that_were_put_together_have_no_order_by_their_index() -> None:
    """Before: refused with an advice that gives wrong labels, or ended in pandas' own message."""
    data = blobs()
    one = pd.DataFrame(data.source[:30])
    both, labels = pd.concat([one, one]), pd.Series(data.labels)
    assert len(array_domain(both, labels, name="shop")) == 60
    flags = pd.Series(data.labels[:2], index=[True, False])
    assert len(array_domain(pd.DataFrame(data.source[:2], index=[False, False]), flags, name="s"))
    pairs = pd.MultiIndex.from_product([range(6), range(10)])
    assert len(array_domain(pd.DataFrame(data.source, index=pairs), labels, name="shop")) == 60
    shuffled = labels.sample(frac=1.0, random_state=0)
    with pytest.raises(InputError, match="index of the labels has the rows in another order"):
        array_domain(pd.DataFrame(data.source), shuffled, name="shop")


def test_one_row_of_several_that_have_one_path_is_left_out() -> None:
    """Before: all rows of its path went with it."""
    data = blobs()
    write_blobs(Path("rows.npz"))
    run = equida.adapt("rows.npz:a", "rows.npz:b", recipe_params=SHORT, out="run", progress=False)
    spoiled = data.target.copy()
    spoiled[3] = np.nan
    paths = np.array([f"{row // 2}.jpg" for row in range(60)])
    np.savez("spoiled.npz", b_x=spoiled, b_path=paths)
    found = run.predict("spoiled.npz", skip_unreadable=True)
    assert [name for name, _ in found.unreadable] == ["1.jpg"]
    assert len(found.paths) == 59
    assert found.paths.count("1.jpg") == 1
    trained = equida.adapt(
        "rows.npz:a", "spoiled.npz", recipe_params=SHORT, skip_unreadable=True, out="other",
        progress=False,
    )  # fmt: skip
    assert len(trained.predictions.labels) == 59


def test_rows_are_left_out_for_the_view_that_is_predicted_alone() -> None:
    """Before: a value in another view, which prediction does not read, cost the row."""
    data = blobs()
    views = np.stack([data.source, data.source], 1)
    run = equida.adapt((views, data.labels), views, recipe_params=SHORT, out="run", progress=False)
    views[5, 1, 0] = np.nan
    assert run.predict(views, skip_unreadable=True).labels == run.predict(views).labels
    views[5, 0, 0] = np.nan
    assert len(run.predict(views, skip_unreadable=True).labels) == 59


def test_shares_of_tensors_and_of_truth_values() -> None:
    """Before: TypeError, and a refusal of labels that are 0 and 1."""
    data = blobs()
    labels = data.labels % 2
    expected = estimate_shares(data.source, labels, data.target).shares
    source, known, target = map(torch.from_numpy, (data.source, labels, data.target))
    np.testing.assert_array_equal(estimate_shares(source, known, target).shares, expected)
    found = estimate_shares(data.source, labels == 1, data.target).shares
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(InputError, match="target holds <U1; expected real numbers"):
        estimate_shares(data.source, labels, np.full((3, 8), "a"))


def test_labels_of_an_estimator_in_several_kinds_of_numbers() -> None:
    """Before: "Unknown label type: unknown"."""
    data = blobs()
    rows = np.concatenate([data.source, data.target])
    domain = np.repeat([1, -1], 60)

    def fit(labels: list[Any]) -> EquidaClassifier:
        y = np.array([*labels, *[None] * 60], dtype=object)
        return EquidaClassifier(iterations=2, batch_size=8).fit(rows, y, sample_domain=domain)

    numbers = [float(k) if row % 2 else k for row, k in enumerate(data.labels.tolist())]
    assert fit(numbers).classes_.tolist() == [0, 1, 2, 3]
    for odd in (str, bool):
        mixed = [odd(k) if row % 2 else k for row, k in enumerate(data.labels.tolist())]
        with pytest.raises(InputError, match=r"labels of several kinds \(.*\); expected numbers"):
            fit(mixed)


def test_a_scorer_of_the_fit_needs_an_estimator_that_has_it() -> None:
    """Before: the advice was sample_domain, with which it says the same."""
    data = blobs()
    model = LogisticRegression().fit(data.source, data.labels)
    domain = np.full(60, -1)
    with pytest.raises(InputError, match="LogisticRegression has none; choose another scorer"):
        scorers.cluster_agreement(model, data.target, sample_domain=domain)


@pytest.mark.parametrize(
    ("missing", "named"),
    [(1, "m0"), (3, "m0, m1 and m2"), (4, "m0, m1, m2 and m3"), (5, "m0, m1, m2 and 2 others")],
)
def test_classes_that_given_shares_leave_out(missing: int, named: str) -> None:
    """Before: "and 1 others"."""
    absent = [f"m{number}" for number in range(missing)]
    aim = Aim('{"mug": 0.5, "pen": 0.5}', 1.0, [], [0.5, 0.5, *[0.0] * missing], False)
    (line,) = aim_lines({"nsm": aim}, ["mug", "pen", *absent])
    assert f"(which has none for {named}): mug 50.0 %" in line


def test_views_of_files_are_not_asked_about(capsys: pytest.CaptureFixture[str]) -> None:
    """Before: every run on views that equida had computed said what an array of them means."""
    data = blobs()
    views = np.stack([data.source, data.source], 1)
    names = np.array([f"{row}.jpg" for row in range(60)])
    known: dict[str, Any] = {"a_path": names, "b_path": names}
    for name, paths in (("plain", {}), ("files", known)):
        np.savez(f"{name}.npz", a_x=views, a_y=data.labels, b_x=views, **paths)
        call = ["adapt", "-s", f"{name}.npz:a", "-t", f"{name}.npz:b", "-o", name, "--quiet"]
        assert main([*call, "--iterations", "4", "--batch-size", "8"]) == 0
        said = "a has 2 views of 8 features for each sample" in capsys.readouterr().err
        assert said == (not paths)


def test_a_list_whose_images_are_not_found(capsys: pytest.CaptureFixture[str]) -> None:
    """Before: "under . or .", and an advice that the command line cannot follow."""
    write_blobs(Path("rows.npz"))
    run = ["adapt", "-s", "rows.npz:a", "-t", "rows.npz:b", "-o", "run", "--quiet"]
    assert main([*run, "--iterations", "4", "--batch-size", "8"]) == 0
    Path("new.txt").write_text("gone/1.jpg\n")
    capsys.readouterr()
    assert main(["predict", "run", "new.txt"]) == 2
    said = capsys.readouterr().err
    assert "under . or ..; move the list into the folder that holds the images" in said


def test_a_bare_name_of_a_list_beside_its_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before: the folder above was looked into only for a list with a folder in its name."""
    write_pictures(Path(), ["a"], ["red", "blue"])
    Path("lists").mkdir()
    lines = [f"a/red/{number}.jpg 0\na/blue/{number}.jpg 1\n" for number in range(4)]
    Path("lists/all.txt").write_text("".join(lines))
    monkeypatch.chdir("lists")
    domain = open_domain("all.txt")
    assert isinstance(domain, ImageDomain)
    assert os.path.samefile(domain.path(0), "../a/red/0.jpg")


def test_predictions_for_a_data_frame_have_its_index() -> None:
    """Before: 0, 1, 2, ..., so that joining them to the frame mixed its rows up."""
    data = blobs()
    columns = [f"c{number}" for number in range(8)]
    source = pd.DataFrame(data.source, columns=columns)
    target = pd.DataFrame(data.target, columns=columns, index=[f"part {k}" for k in range(60)])
    run = equida.adapt(
        (source, data.labels), target, recipe_params=SHORT, out="run", progress=False
    )
    plain = run.predict(target.to_numpy()).to_frame()
    assert plain.index.tolist() == list(range(60))
    chosen = target.iloc[[7, 3, 40]].copy()
    chosen.iloc[1, 0] = np.nan
    found = run.predict(chosen, skip_unreadable=True, batch_size=1).to_frame()
    assert found.index.tolist() == ["part 7", "part 40"]
    assert found["label"].tolist() == plain["label"].iloc[[7, 40]].tolist()


@pytest.mark.slow(reason="computes features")
def test_features_that_the_store_cannot_keep(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Before: they were computed anew by every command, and nobody knew why."""
    write_pictures(Path(), ["a", "b"], ["red", "blue"])
    Path("a_file").touch()
    monkeypatch.setenv("EQUIDA_CACHE", "a_file")
    equida.adapt(
        "a",
        "b",
        features=True,
        backbone="tf_efficientnet_lite0",
        recipe_params=SHORT,
        out="run",
        progress=False,
    )
    said = "features are not kept for other commands (Not a directory: a_file"
    assert [line for line in caplog.messages if line.startswith(said)]


def test_folders_in_class_folders_are_not_taken_for_domains(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Before: "Usable", and a command that refuses them."""
    write_pictures(Path("photos"), ["mug", "pen"], ["all"])
    assert main(["doctor", "photos"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "photos: every sample is of one class, and training needs at least two" in said
    assert "Run it" not in said
