"""Benchmarks in the folders and files that people have."""

from pathlib import Path

import numpy as np
import pytest
from tests.small_data import touch

from equida.data import ImageDomain, benchmark, load_domain, load_task
from equida.errors import InputError


@pytest.mark.parametrize(
    ("name", "domain", "folder"),
    [
        ("office31", "A", "amazon/images"),
        ("office31", "A", "amazon"),
        ("office31", "W", "Webcam"),
        ("office31", "A", "domain_adaptation_images/amazon/images"),
        ("office31", "D", "office31/Original_images/dslr"),
        ("office_home", "Rw", "Real World"),
        ("office_home", "Rw", "Real_World"),
        ("office_home", "Rw", "OfficeHomeDataset_10072016/RealWorld"),
        ("office_home", "Ar", "images/Art"),
        ("visda2017", "Synthetic", "train"),
        ("visda2017", "Real", "visda-2017/validation"),
    ],
)
def test_layouts_found_in_the_wild(tmp_path: Path, name: str, domain: str, folder: str) -> None:
    classes = benchmark(name).classes
    touch(tmp_path, *(f"{folder}/{known}/1.jpg" for known in classes), "image_list/x.txt")
    loaded = load_domain(name, domain, tmp_path)
    assert isinstance(loaded, ImageDomain)
    assert (loaded.name, loaded.classes) == (domain, classes)
    assert loaded.labels is not None
    assert loaded.labels.tolist() == list(range(len(classes)))
    assert loaded.paths[0] == f"{classes[0]}/1.jpg"


def test_the_class_train_of_visda_is_not_its_domain_train(tmp_path: Path) -> None:
    classes = benchmark("visda2017").classes
    touch(tmp_path, *(f"validation/{known}/1.jpg" for known in classes))
    assert len(load_domain("visda2017", "Real", tmp_path)) == 12
    with pytest.raises(InputError, match="no folder for VisDA-2017 Synthetic"):
        load_domain("visda2017", "Synthetic", tmp_path)


def test_the_class_webcam_of_office_home_is_not_a_domain_of_office31(tmp_path: Path) -> None:
    touch(tmp_path, "Art/Webcam/1.jpg", "Art/Mug/1.jpg")
    with pytest.raises(InputError, match="no folder for Office-31 Webcam"):
        load_domain("office31", "W", tmp_path)


def test_a_list_is_used_where_there_are_no_class_folders(tmp_path: Path) -> None:
    touch(tmp_path, "store/amazon_pictures/images/mug/1.jpg")
    lists = tmp_path / "image_list"
    lists.mkdir()
    (lists / "amazon.txt").write_text("store/amazon_pictures/images/mug/1.jpg 17\n")
    loaded = load_domain("office31", "A", tmp_path)
    assert loaded.labels is not None
    assert loaded.labels.tolist() == [17]
    (lists / "amazon.txt").write_text("store/amazon_pictures/images/mug/1.jpg 3\n")
    with pytest.raises(InputError, match=r"amazon\.txt:1: label 3 .* expected 17 for 'mug'"):
        load_domain("office31", "A", tmp_path)


def test_a_task_by_its_name_or_its_domains(tmp_path: Path) -> None:
    touch(tmp_path, "amazon/mug/1.jpg", "amazon/pen/1.jpg", "webcam/pen/1.jpg", "webcam/pen/2.jpg")
    for task in (
        load_task("Office-31", "amazon2webcam", data_dir=tmp_path),
        load_task("office31", "A", "webcam", tmp_path),
    ):
        assert (task.name, len(task.source), len(task.target)) == ("A2W", 2, 2)
        assert task.classes == benchmark("office31").classes


def test_a_feature_file_in_place_of_a_folder(tmp_path: Path) -> None:
    file = tmp_path / "f.npz"
    np.savez(
        file, amazon_x=np.zeros((2, 3)), amazon_y=np.array([0, 1]),
        W_x=np.zeros((1, 3)), W_y=np.array([1]), classes=np.array(["pen", "mug"]),
    )  # fmt: skip
    task = load_task("office31", "A2W", data_dir=file)
    assert task.source.labels is not None
    assert task.source.labels.tolist() == [19, 17]
    assert task.target.labels is not None
    assert task.target.labels.tolist() == [17]
    with pytest.raises(InputError, match=r"no domain D \(DSLR\); it holds amazon, W"):
        load_domain("office31", "D", file)


def test_what_is_needed_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"--data DIR .*equida doctor office31"):
        load_domain("office31", "A")
    with pytest.raises(InputError, match=r"expected DIR/\{amazon,dslr,webcam\}/images"):
        load_domain("office31", "A", tmp_path)
    (tmp_path / "a.zip").touch()
    with pytest.raises(InputError, match="expected a folder or a feature file"):
        load_domain("office31", "A", tmp_path / "a.zip")


def test_office31_as_published(office31: Path) -> None:
    for domain in benchmark("office31").domains:
        loaded = load_domain("office31", domain.key, office31)
        assert loaded.class_counts().tolist() == list(domain.per_class)
