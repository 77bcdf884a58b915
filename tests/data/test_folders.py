"""Folders as people have them."""

import os
import tracemalloc
import unicodedata
from pathlib import Path

import pytest
from tests.small_data import touch

from equida.data import image_folder
from equida.data.folders import scan_folder
from equida.errors import InputError


def test_class_folders_become_labels_in_sorted_order(tmp_path: Path) -> None:
    domain = image_folder(touch(tmp_path / "desk", "pen/b.jpg", "mug/x y.JPG", "pen/a.png"))
    assert (domain.name, domain.classes) == ("desk", ("mug", "pen"))
    assert list(domain.paths) == ["mug/x y.JPG", "pen/a.png", "pen/b.jpg"]
    assert domain.labels is not None
    assert domain.labels.tolist() == [0, 1, 1]


def test_a_folder_of_images_is_unlabelled(tmp_path: Path) -> None:
    domain = image_folder(touch(tmp_path, "2.jpg", "1.jpg"), classes=["mug"])
    assert domain.labels is None
    assert list(domain.paths) == ["1.jpg", "2.jpg"]
    assert domain.classes == ("mug",)


def test_a_class_list_fixes_the_numbers_and_ignores_case(tmp_path: Path) -> None:
    root = touch(tmp_path, "mug/1.jpg", "Bike/1.jpg")
    domain = image_folder(root, classes=["pen", "bike", "Mug"])
    assert domain.labels is not None
    assert dict(zip(domain.paths, domain.labels.tolist(), strict=True)) == {
        "Bike/1.jpg": 1,
        "mug/1.jpg": 2,
    }


def test_an_unknown_class_folder_is_refused_with_the_likely_one(tmp_path: Path) -> None:
    root = touch(tmp_path, "back_pak/1.jpg", "mug/1.jpg")
    with pytest.raises(InputError, match=r"'back_pak' not among the 2 .*mean 'back_pack'"):
        image_folder(root, classes=["back_pack", "mug"])


def test_litter_is_passed_over_and_other_files_are_counted(tmp_path: Path) -> None:
    root = touch(
        tmp_path, "mug/1.jpg", "mug/.2.jpg", "mug/Thumbs.db", "mug/.DS_Store", "mug/a.txt",
        "mug/b.txt", "mug/README", ".hidden/3.jpg", "__MACOSX/mug/4.jpg", "image_list/mug.txt",
        "desktop.ini", "labels.csv",
    )  # fmt: skip
    scan = scan_folder(root)
    assert list(scan.by_class) == ["mug"]
    assert scan.by_class["mug"] == ["mug/1.jpg"]
    assert scan.ignored == {".txt": 2, "without extension": 1, ".csv": 1}


def test_names_with_spaces_accents_and_newlines(tmp_path: Path) -> None:
    names = ["a b/ü.jpg", "a b/line\nbreak.jpg", "日本/一.jpg"]
    domain = image_folder(touch(tmp_path, *names))
    assert sorted(domain.paths) == sorted(names)
    assert all(domain.path(k).exists() for k in range(3))


def test_a_decomposed_accent_is_the_same_class(tmp_path: Path) -> None:
    root = touch(tmp_path, unicodedata.normalize("NFD", "café") + "/1.jpg")
    domain = image_folder(root, classes=["tea", unicodedata.normalize("NFC", "café")])
    assert domain.labels is not None
    assert domain.labels.tolist() == [1]
    assert domain.path(0).exists()


def test_a_class_without_images_stays_a_class(tmp_path: Path) -> None:
    (tmp_path / "ant").mkdir()
    domain = image_folder(touch(tmp_path, "mug/1.jpg"))
    assert domain.classes == ("ant", "mug")
    assert domain.class_counts().tolist() == [0, 1]


def test_two_classes_that_differ_in_case_are_refused(tmp_path: Path) -> None:
    root = touch(tmp_path, "Mug/1.jpg", "mug/2.jpg", "pen/3.jpg")
    with pytest.raises(InputError, match="'Mug' and 'mug' differ only in case"):
        image_folder(root)
    with pytest.raises(InputError, match="differ only in case"):
        image_folder(root, classes=["mug", "pen"])


def test_links_that_lead_back_are_not_followed(tmp_path: Path) -> None:
    root = touch(tmp_path / "root", "mug/1.jpg", "mug/more/2.jpg")
    (root / "mug" / "more" / "loop").symlink_to(root / "mug")
    (root / "again").symlink_to(root)
    (root / "above").symlink_to(tmp_path)
    (root / "mug" / "self").symlink_to(root / "mug" / "self")
    scan = scan_folder(root)
    assert scan.by_class == {"mug": ["mug/1.jpg", "mug/more/2.jpg"]}
    assert sorted(scan.loops) == ["above", "again", "mug/more/loop"]


def test_a_link_to_a_folder_elsewhere_is_followed(tmp_path: Path) -> None:
    touch(tmp_path, "store/1.jpg", "root/pen/1.jpg")
    (tmp_path / "root" / "mug").symlink_to(tmp_path / "store")
    assert list(image_folder(tmp_path / "root").paths) == ["mug/1.jpg", "pen/1.jpg"]


def test_a_dead_link_to_an_image_is_kept_to_be_named_later(tmp_path: Path) -> None:
    touch(tmp_path, "mug/1.jpg")
    (tmp_path / "mug" / "2.jpg").symlink_to(tmp_path / "gone.jpg")
    assert list(image_folder(tmp_path).paths) == ["mug/1.jpg", "mug/2.jpg"]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ([], "holds no images; expected class folders"),
        (["a.txt", "mug/b.csv"], "holds no images; it holds other files (1 .csv, 1 .txt)"),
        (["x.jpg", "mug/1.jpg"], "beside 1 folder;"),
    ],
)
def test_folders_that_cannot_be_a_domain(tmp_path: Path, files: list[str], said: str) -> None:
    with pytest.raises(InputError) as error:
        image_folder(touch(tmp_path, *files))
    assert said in str(error.value)


def test_only_empty_class_folders(tmp_path: Path) -> None:
    (tmp_path / "mug").mkdir()
    with pytest.raises(InputError, match="holds no images; 1 empty folder;"):
        image_folder(tmp_path)


def test_one_level_too_deep_says_which_folder_to_give(tmp_path: Path) -> None:
    root = touch(tmp_path, "images/mug/1.jpg", "images/pen/1.jpg")
    with pytest.raises(InputError, match="folders of folders") as error:
        image_folder(root)
    assert str(error.value).endswith(f"such as {root / 'images'}")
    assert len(image_folder(root / "images")) == 2


def test_a_path_that_does_not_exist_names_the_likely_one(tmp_path: Path) -> None:
    touch(tmp_path, "webcam/images/mug/1.jpg")
    with pytest.raises(InputError) as error:
        image_folder(tmp_path / "webcan" / "images")
    assert f"did you mean {tmp_path / 'webcam'}?" in str(error.value)
    with pytest.raises(InputError, match="is a file; expected a folder"):
        image_folder(tmp_path / "webcam" / "images" / "mug" / "1.jpg")


def test_a_forbidden_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scan = os.scandir

    def guarded(path: str | Path) -> object:
        if str(path).endswith("secret"):
            raise PermissionError(13, "Permission denied")
        return scan(path)

    touch(tmp_path, "mug/1.jpg", "secret/1.jpg")
    monkeypatch.setattr(os, "scandir", guarded)
    with pytest.raises(InputError, match="secret: no permission"):
        image_folder(tmp_path)


@pytest.mark.slow(reason="many paths")
def test_memory_per_path_stays_small(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / str(number)).mkdir()
        for image in range(1_000):
            (tmp_path / str(number) / f"image_{image:08d}.jpg").touch()
    tracemalloc.start()
    domain = image_folder(tmp_path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(domain) == 4_000
    # 200 MB for 152,397 paths are 1,376 bytes each; half of that leaves room for longer names.
    assert peak / len(domain) < 688
