"""Opening data: domains, tasks, and when data count as the same."""

import dataclasses
import hashlib
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.small_data import SHORT, blobs

import equida
from equida.cli import main
from equida.data import (
    BENCHMARKS,
    ArrayDomain,
    ImageDomain,
    images,
    load_domain,
    load_task,
    open_domain,
)
from equida.data.discover import find_benchmark
from equida.data.spec import DataSpec, data_sha256, open_task
from equida.errors import InputError


def test_each_kind_of_path(tmp_path: Path) -> None:
    (tmp_path / "photos" / "mug").mkdir(parents=True)
    (tmp_path / "photos" / "mug" / "1.jpg").touch()
    (tmp_path / "list.txt").write_text("/gone/mug/1.jpg 0\n")
    np.savez(tmp_path / "f.npz", a_x=np.zeros((2, 3)), b_x=np.ones((1, 3)))
    assert isinstance(open_domain(tmp_path / "photos"), ImageDomain)
    assert open_domain(tmp_path, domain="photos").name == "photos"
    listed = open_domain(tmp_path / "list.txt", root=tmp_path / "photos")
    assert listed.identity(0) == "mug/1.jpg"
    rows = open_domain(tmp_path / "f.npz", domain="b", classes=["mug"])
    assert isinstance(rows, ArrayDomain)
    assert (len(rows), rows.classes) == (1, ("mug",))


def test_what_cannot_be_opened(tmp_path: Path) -> None:
    for name, said in (("a.jpg", "one image; give its folder"), ("a.zip", "not known")):
        (tmp_path / name).touch()
        with pytest.raises(InputError, match=said):
            open_domain(tmp_path / name)


CLASSES = ("ant", "bee", "cow")


def rows(folder: Path, classes: tuple[str, ...], labels: list[int]) -> DataSpec:
    """A feature file with one labelled domain, as the target of source-free adaptation."""
    file = folder / "target.npz"
    values = np.arange(3.0 * len(labels), dtype="f4").reshape(-1, 3)
    np.savez(file, b_x=values, b_y=np.array(labels), classes=np.array(classes))
    return DataSpec("", f"{file}:b")


@pytest.mark.parametrize(
    ("classes", "labels", "expected"),
    [
        (("bee", "cow"), [0, 1, 1, 0], [1, 2, 2, 1]),
        (("cow", "bee", "ant"), [0, 1, 2, 2], [2, 1, 0, 0]),
        (("COW", "bee"), [0, 0, 1, 1], [2, 2, 1, 1]),
        (("ant", "bee", "cow", "unused"), [0, 1, 2, 2], [0, 1, 2, 2]),
    ],
)
def test_source_free_labels_are_found_by_class_name(
    classes: tuple[str, ...], labels: list[int], expected: list[int], tmp_path: Path
) -> None:
    task = open_task(rows(tmp_path, classes, labels), CLASSES).task
    assert task.classes == task.target.classes == CLASSES
    assert task.target.labels is not None
    assert task.target.labels.tolist() == expected


def test_a_class_that_the_finished_run_does_not_know(tmp_path: Path) -> None:
    spec = rows(tmp_path, ("bee", "dog"), [0, 1])
    task = open_task(spec, CLASSES).task
    assert task.target.labels is not None
    assert [task.classes[label] for label in task.target.labels] == ["bee"]
    assert "1 of 2 samples of target b, those of 'dog'" in task.left_out


def test_an_unlabelled_target_takes_the_runs_classes(tmp_path: Path) -> None:
    file = tmp_path / "target.npz"
    np.savez(file, b_x=np.zeros((4, 3), "f4"))
    task = open_task(DataSpec("", f"{file}:b"), CLASSES).task
    assert task.target.labels is None
    assert task.classes == task.target.classes == CLASSES


def test_images_count_and_other_files_do_not(tmp_path: Path) -> None:
    """A folder of runs inside that of the data must not make each call a new run."""
    spec = DataSpec("A", "W", "office31", str(tmp_path))
    (tmp_path / "mug").mkdir()
    (tmp_path / "mug" / "1.jpg").write_bytes(b"one")
    before = data_sha256(spec)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "result.json").write_text("{}")
    assert data_sha256(spec) == before
    (tmp_path / "mug" / "1.jpg").write_bytes(b"other")
    assert data_sha256(spec) != before


def test_a_file_counts_by_its_content_wherever_it_is(tmp_path: Path) -> None:
    one, other = tmp_path / "one.npz", tmp_path / "other.npz"
    for file in (one, other):
        file.write_bytes(b"rows")
    pairs = [DataSpec(f"{file}:a", f"{file}:b") for file in (one, other)]
    assert data_sha256(pairs[0]) == data_sha256(pairs[1])
    other.write_bytes(b"more")
    assert data_sha256(pairs[0]) != data_sha256(pairs[1])


def _photos(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 4), (len(name), 0, 0)).save(root / name)
    return root


def _pair(folder: Path) -> DataSpec:
    """Two folders of two classes, one of them with an image deeper down."""
    source = _photos(folder / "s", "mug/1.png", "mug/old/2.png", "pen/1.png")
    target = _photos(folder / "t", "Mug/1.png", "pen/b c.png", "pen/ä.png")
    return DataSpec(str(source), str(target))


def _office(folder: Path) -> DataSpec:
    classes = BENCHMARKS["office31"].classes
    for domain in ("amazon/images", "dslr", "webcam"):
        _photos(folder / "office" / domain, *(f"{name}/1.png" for name in classes))
    return DataSpec("A", "W", "office31", str(folder / "office"))


def _digest_by_the_book(*folders: str) -> str:
    """The digest as it was first defined: name and size of each image, walked from the top."""
    parts = []
    for root in folders:
        lines = []
        for folder, inner, names in os.walk(root):
            inner.sort()
            for name in sorted(names):
                path = Path(folder, name)
                lines.append(f"{path.relative_to(root).as_posix()}\0{path.stat().st_size}\n")
        parts.append(hashlib.sha256("".join(lines).encode()).hexdigest())
    return hashlib.sha256("".join(parts).encode()).hexdigest()


def test_digests_are_those_that_earlier_runs_recorded(tmp_path: Path) -> None:
    spec = _pair(tmp_path)
    expected = _digest_by_the_book(spec.source, spec.target)
    assert open_task(spec).digest == data_sha256(spec) == expected
    office = _office(tmp_path)
    assert open_task(office).digest == _digest_by_the_book(str(office.data))
    assert open_task(DataSpec("U", "M", "digits")).digest == ""
    np.savez(tmp_path / "f.npz", a_x=np.eye(2), a_y=np.arange(2), b_x=np.eye(2))
    content = hashlib.sha256((tmp_path / "f.npz").read_bytes()).hexdigest()
    rows = DataSpec(f"{tmp_path / 'f.npz'}:a", f"{tmp_path / 'f.npz'}:b")
    assert open_task(rows).digest == hashlib.sha256((content * 2).encode()).hexdigest()


@pytest.mark.parametrize("make", [_pair, _office])
def test_each_folder_is_listed_once_and_each_image_opened_once(
    make: Callable[[Path], DataSpec], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = make(tmp_path)
    root = Path(spec.data) if spec.data else tmp_path
    folders = {str(path) for path in root.rglob("*") if path.is_dir()}
    folders |= {str(root)} if spec.data else set()
    listed: Counter[str] = Counter()
    opened: Counter[str] = Counter()
    plain = os.scandir

    def scandir(path: Any = ".") -> Any:
        listed[os.path.realpath(path)] += 1
        return plain(path)

    def reader(path: Any, *arguments: Any, **options: Any) -> Any:
        opened[str(path)] += 1
        return open(path, *arguments, **options)

    monkeypatch.setattr(os, "scandir", scandir)
    monkeypatch.setattr(images, "open", reader, raising=False)
    found = open_task(spec)
    task = found.task
    assert len(found.digest) == 64
    assert listed == dict.fromkeys(folders, 1)
    assert set(opened.values()) == {1}
    assert len(opened) == len(task.source) + len(task.target)


def test_hidden_images_do_not_make_other_data(tmp_path: Path) -> None:
    spec = _pair(tmp_path)
    before = data_sha256(spec)
    _photos(tmp_path / "s", ".thumbnails/1.png", "mug/.2.png")
    _photos(tmp_path / "t", "pen/.cache/1.png")
    assert data_sha256(spec) == before
    assert open_task(spec).digest == before


def test_links_that_lead_back_do_not_change_the_digest(tmp_path: Path) -> None:
    """Sixteen links to the folder above: followed to any depth, they would never end."""
    spec = _pair(tmp_path)
    before = data_sha256(spec)
    for number in range(16):
        (tmp_path / "s" / "mug" / f"up{number}").symlink_to(tmp_path / "s")
    assert data_sha256(spec) == before


def test_the_crop_of_a_domain_comes_from_the_benchmark_not_from_its_name(tmp_path: Path) -> None:
    spec = _office(tmp_path)
    crops = [load_domain("office31", key, spec.data).train_crop for key in "ADW"]
    assert crops == ["random-crop", "random-resized-crop", "random-resized-crop"]
    task = open_task(spec).task
    assert (task.source.train_crop, task.target.train_crop) == (crops[0], crops[2])
    assert task.target.select([1, 0]).train_crop == "random-resized-crop"
    for name in ("webcam", "dslr", "w", "d"):
        mine = open_domain(_photos(tmp_path / name, "mug/1.png", "pen/1.png"))
        assert (mine.name, mine.train_crop) == (name, "random-crop")


def test_labels_of_the_target_are_ignored_on_request(tmp_path: Path) -> None:
    spec = _pair(tmp_path)
    _photos(tmp_path / "t", "holiday/1.png")
    assert "'holiday'" in open_task(spec).task.left_out
    opened = open_task(dataclasses.replace(spec, ignore_target_labels=True))
    assert opened.task.target.labels is None
    assert len(opened.task.target) == 4


def test_unreadable_images_are_named_or_left_out(tmp_path: Path) -> None:
    spec = _pair(tmp_path)
    (tmp_path / "s" / "mug" / "1.png").write_bytes(b"")
    with pytest.raises(InputError, match=r"(?s)1 of 3 files .*mug/1\.png: empty file"):
        open_task(spec)
    opened = open_task(dataclasses.replace(spec, skip_unreadable=True))
    assert opened.left_out == [("mug/1.png", "empty file (0 bytes)")]
    assert len(opened.task.source) == 2


def test_rows_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "f.npz", a_x=np.eye(2), a_y=np.arange(2), b_x=np.array([[0, np.nan]]))
    spec = DataSpec(f"{tmp_path / 'f.npz'}:a", f"{tmp_path / 'f.npz'}:b")
    with pytest.raises(InputError, match="b: row 0 has a value in column 1 that is not finite"):
        open_task(spec)


def test_a_source_with_few_of_its_classes_is_refused(tmp_path: Path) -> None:
    names = np.array(["ant", "bee", "cow"])
    np.savez(tmp_path / "f.npz", a_x=np.eye(2), a_y=np.array([1, 1]), b_x=np.eye(2), classes=names)
    spec = DataSpec(f"{tmp_path / 'f.npz'}:a", f"{tmp_path / 'f.npz'}:b")
    with pytest.raises(InputError, match="source a has samples of 1 of its 3 classes"):
        open_task(spec)


@pytest.mark.usefixtures("own_folder")
def test_a_table_of_another_kind_is_not_taken_for_images(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Before: "does not say which network computed its features"."""
    np.savez("b.npz", X=blobs().target)
    Path("a.csv").write_text("1,2,3\n")
    assert main(["adapt", "-s", "a.csv", "-t", "b.npz"]) == 2
    assert "expected a folder, an image list (.txt) or a feature file" in capsys.readouterr().err


@pytest.mark.usefixtures("own_folder")
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
