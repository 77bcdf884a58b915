"""Domains cut down to a long tail, to some classes, and to given shares."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from tests.small_data import write_blobs

import equida
from equida.cli import main
from equida.data import ArrayDomain, array_domain
from equida.data.shares import checked_shares, recorded_shares, subsampled
from equida.data.spec import DataSpec, open_task
from equida.errors import InputError

FLAG = "--target-shares"
SMALL = ["--iterations", "4", "--batch-size", "8", "--evaluate-every", "4"]


def domain(counts: list[int], name: str = "W") -> ArrayDomain:
    labels = np.repeat(np.arange(len(counts)), counts)
    np.random.default_rng(3).shuffle(labels)
    classes = [f"class{number}" for number in range(len(counts))]
    return array_domain(np.zeros((len(labels), 2)), labels, classes=classes, name=name)


def test_a_long_tail_falls_geometrically_from_the_median_and_no_class_is_empty() -> None:
    tail = subsampled(domain([100] * 5), "long-tail:16", "target")
    assert sorted(tail.class_counts().tolist(), reverse=True) == [100, 50, 25, 12, 6]
    assert sorted(subsampled(domain([3] * 5), "long-tail:81", "target").class_counts()) == [
        1, 1, 1, 1, 3
    ]  # fmt: skip
    cut = subsampled(domain([2, 90, 100, 110, 0]), "long-tail:10", "target").class_counts()
    assert cut[4] == 0
    assert 1 <= cut[0] <= 2
    assert cut.max() <= 95


def test_classes_keep_all_their_samples_and_others_none() -> None:
    cut = subsampled(domain([4, 5, 6, 7]), "classes:2", "target").class_counts()
    kept = np.flatnonzero(cut)
    assert len(kept) == 2
    assert cut[kept].tolist() == [[4, 5, 6, 7][k] for k in kept]


def test_given_shares_take_as_many_samples_as_there_are() -> None:
    shares = json.dumps({"class0": 0.5, "Class2": 0.25, "class1": 0.25})
    cut = subsampled(domain([40, 30, 10, 9]), shares, "target")
    assert cut.class_counts().tolist() == [20, 10, 10, 0]
    ordered = subsampled(domain([40, 30, 10, 9]), "[0.5, 0.25, 0.25, 0.0]", "target")
    assert ordered.class_counts().tolist() == [20, 10, 10, 0]


def test_the_choice_is_the_same_each_time_and_another_for_seed_role_and_domain() -> None:
    whole = domain([20] * 12)
    texts = [("long-tail:8", "target"), ("long-tail:8:1", "target"), ("long-tail:8", "source")]
    chosen = [
        [cut.identity(i) for i in range(len(cut))]
        for text, role in [*texts, texts[0]]
        for cut in [subsampled(whole, text, role)]  # type: ignore[arg-type]
    ]
    assert chosen[0] == chosen[3]
    assert len({tuple(names) for names in chosen}) == 3
    other = subsampled(domain([20] * 12, "D"), "long-tail:8", "target")
    assert other.class_counts().tolist() != (
        subsampled(whole, "long-tail:8", "target").class_counts().tolist()
    )


def test_one_spelling_of_a_protocol_and_shares_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "shares.txt"
    file.write_text("# counts\nring binder 3\n\nmug 1\n")
    stored = checked_shares(str(file), FLAG)
    assert json.loads(stored) == {"ring binder": 0.75, "mug": 0.25}
    assert checked_shares(stored, FLAG) == stored
    assert checked_shares("classes:15:0", FLAG) == "classes:15"
    assert checked_shares("long-tail:30:2", FLAG) == "long-tail:30:2"
    assert checked_shares("", FLAG) == ""


@pytest.mark.parametrize(
    "text",
    ["tail:30", "long-tail", "long-tail:0.5", "long-tail:nan", "classes:1.5", "classes:0",
     "classes:inf", "classes:3:-1", "long-tail:30:x", "{", '{"mug": -1}', '{"mug": 0}'],
)  # fmt: skip
def test_a_protocol_that_there_is_not(text: str) -> None:
    with pytest.raises(InputError, match="--target-shares"):
        checked_shares(text, FLAG)


def test_shares_that_the_domain_cannot_have() -> None:
    with pytest.raises(InputError, match="has samples of 2 classes; 3 of them"):
        subsampled(domain([4, 5, 0]), "classes:3", "target")
    many = checked_shares("classes:1000000", FLAG)
    with pytest.raises(InputError, match="has samples of 2 classes; 1000000 of them"):
        subsampled(domain([4, 5, 0]), many, "target")
    with pytest.raises(InputError, match=r"no sample of 'class2', whose share is to be 0\.5"):
        subsampled(domain([4, 5, 0]), '{"class0": 0.5, "class2": 0.5}', "target")
    with pytest.raises(InputError, match="has 3 classes; the number of given shares is 2"):
        subsampled(domain([4, 5, 0]), "[0.5, 0.5]", "target")
    with pytest.raises(InputError, match="did you mean 'class0'"):
        subsampled(domain([4, 5, 0]), '{"clas0": 1.0}', "target")
    unlabelled = array_domain(np.zeros((3, 2)), name="W")
    with pytest.raises(InputError, match=r"needs labels .* target W has none"):
        subsampled(unlabelled, "classes:3", "target")


@pytest.mark.slow(reason="several runs")
def test_a_protocol_is_a_table_of_its_own(
    toy_office: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["bench", "office31", "--data", str(toy_office), "--methods", "nsm", "--tasks", "A2W"]
    words += ["--seeds", "1", "--jobs", "1", "--out", str(tmp_path), "--quiet", *SMALL]
    assert main([*words, "--target-shares", "classes:15"]) == 0
    assert main(words) == 0
    out = capsys.readouterr().out
    cut, whole = out.split("Accuracy (%) on Office-31")[1:]
    assert cut.startswith(", target classes:15, heads")
    assert "Mean class accuracy" in cut
    assert "paper, diff." not in cut
    assert "Mean class accuracy" not in whole
    assert "paper, diff." in whole
    runs = sorted(tmp_path.glob("*/config.json"))
    assert len(runs) == 2
    confusion = {
        run.parent.name.count("classes_15"): json.loads((run.parent / "result.json").read_text())[
            "confusion"
        ]
        for run in runs
    }
    assert sum(sum(row) > 0 for row in confusion[1]) == 15
    assert sum(sum(row) > 0 for row in confusion[0]) == 31
    page = tmp_path / "page.html"
    assert main(["report", str(tmp_path), "--out", str(page)]) == 0
    assert "Office-31, target classes:15" in page.read_text()


@pytest.mark.slow(reason="several runs")
def test_a_run_with_a_protocol_is_done_again_from_its_record(
    toy_office: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "shares.txt"
    file.write_text("mug 3\npen 1\nbike 2\n")
    small = {"iterations": 4, "batch_size": 6, "evaluate_every": 4}
    pair = (f"{toy_office}:amazon", f"{toy_office}:webcam")
    run = equida.adapt(
        *pair, target_shares=file, source_shares="long-tail:2", recipe_params=small, progress=False
    )
    assert len(run.predictions.samples) == 8
    assert "shares" in run.path.name
    file.write_text("mug 1\n")
    assert main(["rerun", str(run.path), "--out", str(tmp_path / "again"), "--quiet"]) == 0
    again = equida.load_run(tmp_path / "again")
    assert again.predictions.samples == run.predictions.samples
    other = equida.adapt(*pair, recipe_params=small, progress=False)
    assert other.path != run.path


def test_data_in_memory_are_cut_down_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    labels = np.repeat(np.arange(4), 20)
    x = np.random.default_rng(0).normal(size=(80, 5)).astype("f4") + 3 * np.eye(4, 5)[labels]
    small = {"iterations": 4, "batch_size": 6, "evaluate_every": 4}
    run = equida.adapt(
        (x, labels), (x, labels), target_shares="long-tail:8", recipe_params=small, progress=False
    )
    counts = np.bincount(run.predictions.labels.numpy())
    assert sorted(counts.tolist(), reverse=True) == [20, 10, 5, 2]


@pytest.mark.parametrize("protocol", ["classes:2", "long-tail:16"])
def test_other_samples_of_a_domain_are_cut_down_likewise(protocol: str) -> None:
    target, test = domain([40] * 5), domain([20, 20, 0, 20, 20], "W (test)")
    cut = subsampled(target, protocol, "target").class_counts()
    other = subsampled(test, protocol, "target", like=target).class_counts()
    there = [0, 1, 3, 4]
    np.testing.assert_array_equal(np.argsort(other[there]), np.argsort(cut[there]))
    assert not other[cut == 0].any()
    assert other[2] == 0


def test_a_name_that_is_not_text_can_be_cut_down() -> None:
    odd = domain([4, 4, 4])
    odd.name = os.fsdecode(b"sk\xe4tch")
    assert (subsampled(odd, "classes:2", "target").class_counts() > 0).sum() == 2


def test_a_source_of_few_classes_is_one_of_those(tmp_path: Path) -> None:
    rows, names = np.zeros((12, 3)), np.array([f"c{k}" for k in range(6)])
    np.savez(tmp_path / "a.npz", x=rows, y=np.arange(12) % 6, classes=names)
    np.savez(tmp_path / "b.npz", x=rows, y=np.arange(12) % 6, classes=names)
    spec = DataSpec(str(tmp_path / "a.npz"), str(tmp_path / "b.npz"), source_shares="classes:2")
    task = open_task(spec).task
    assert len(task.classes) == 2
    assert len(task.source) == len(task.target) == 4


WRONG = ["x", "long-tail:abc", "long-tail:", "classes:1.5", "{", "{}", '{"a": "x"}', "0.5,0.5"]


@pytest.mark.parametrize("text", WRONG)
@pytest.mark.parametrize("role", ["source", "target"])
def test_wrong_shares_in_a_record_are_one_line(text: str, role: str) -> None:
    stored = {"source": "a.npz", "target": "b.npz", f"{role}_shares": text}
    with pytest.raises(InputError, match=f"^config.json: task.{role}_shares ") as error:
        DataSpec.from_json(stored, "config.json: task")
    assert "\n" not in str(error.value)


def test_a_record_holds_shares_and_no_file_of_them(tmp_path: Path) -> None:
    (tmp_path / "shares.txt").write_text("mug 0.7\npen 0.3\n")
    held = checked_shares(str(tmp_path / "shares.txt"), FLAG)
    for text in ("", "long-tail:30:7", "classes:1e+06", held):
        assert recorded_shares(text, "target_shares") == text
    with pytest.raises(InputError, match="it must be long-tail:30"):
        recorded_shares(str(tmp_path / "shares.txt"), "target_shares")


def test_a_run_with_wrong_shares_is_left_out_of_a_report_and_others_are_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    toy = write_blobs(tmp_path / "toy.npz")
    for name in ("good", "bad"):
        out = str(tmp_path / "runs" / name)
        assert main(["adapt", "-s", f"{toy}:a", "-t", f"{toy}:b", *SMALL, "-o", out]) == 0
    file = tmp_path / "runs" / "bad" / "config.json"
    stored = json.loads(file.read_text())
    stored["task"]["target_shares"] = "x"
    file.write_text(json.dumps(stored))
    capsys.readouterr()
    page = tmp_path / "page.html"
    assert main(["report", str(tmp_path / "runs"), "--out", str(page), "--maps", "0"]) == 0
    assert "1 finished run" in capsys.readouterr().out
    assert page.exists()
