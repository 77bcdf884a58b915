"""Image lists: our own, other people's, and wrong ones."""

import os
from pathlib import Path

import pytest
from tests.small_data import SHORT_FLAGS, write_blobs, write_pictures

from equida.cli import main
from equida.data import ImageDomain, benchmark, image_list, open_domain
from equida.errors import InputError


@pytest.fixture
def images(tmp_path: Path) -> Path:
    """amazon/images/{mug,pen}/{1,2 2}.jpg below a folder."""
    for name in ("mug", "pen"):
        folder = tmp_path / "data" / "amazon" / "images" / name
        folder.mkdir(parents=True)
        (folder / "1.jpg").touch()
        (folder / "2 2.jpg").touch()
    return tmp_path / "data"


def _list(folder: Path, *lines: str) -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / "amazon.txt"
    file.write_text("\n".join(lines) + "\n")
    return file


def test_the_label_is_last_and_paths_may_hold_spaces(images: Path) -> None:
    file = _list(images, "amazon/images/pen/2 2.jpg 1", "", "amazon/images/mug/1.jpg\t0")
    domain = image_list(file)
    assert (domain.name, domain.root, domain.classes) == ("amazon", images, ("mug", "pen"))
    assert list(domain.paths) == ["amazon/images/pen/2 2.jpg", "amazon/images/mug/1.jpg"]
    assert domain.labels is not None
    assert domain.labels.tolist() == [1, 0]
    assert all(domain.path(k).exists() for k in range(2))


def test_a_list_in_a_folder_of_lists_is_relative_to_the_folder_above(images: Path) -> None:
    domain = image_list(_list(images / "image_list", "amazon/images/mug/1.jpg 0"))
    assert domain.path(0).exists()


@pytest.mark.parametrize("below", ["", "amazon", "amazon/images"])
def test_absolute_paths_of_another_machine_are_re_rooted(
    images: Path, tmp_path: Path, below: str
) -> None:
    file = _list(
        tmp_path / "lists",
        "/DATA/disk1/dataset/office/amazon/images/mug/1.jpg 0",
        "/DATA/disk1/dataset/office/amazon/images/pen/2 2.jpg 1",
    )
    domain = image_list(file, root=images / below)
    assert all(domain.path(k).exists() for k in range(2))
    assert domain.identity(0) == "amazon/images/mug/1.jpg"[len(below) + 1 if below else 0 :]


def test_an_absolute_path_that_exists_is_used_as_it_is(images: Path, tmp_path: Path) -> None:
    here = images / "amazon" / "images" / "mug" / "1.jpg"
    domain = image_list(_list(tmp_path / "lists", f"{here} 0"), root=tmp_path / "lists")
    assert domain.path(0) == here


@pytest.mark.parametrize("below", [".hidden/mug", "../beside/mug", "mug/../mug"])
def test_absolute_paths_with_dots_exist(below: str, tmp_path: Path) -> None:
    """Before: the dot of a hidden folder was cut off, and that of the folder above."""
    folder = tmp_path / "data"
    (folder / "mug").mkdir(parents=True)
    (folder / below).mkdir(parents=True, exist_ok=True)
    (folder / below / "1.jpg").touch()
    domain = image_list(_list(folder, f"{folder}/{below}/1.jpg 0"))
    assert domain.path(0).samefile(folder / below / "1.jpg")


def test_windows_separators(images: Path) -> None:
    assert image_list(_list(images, r"amazon\images\mug\1.jpg 0")).path(0).exists()


def test_files_in_the_root_itself(tmp_path: Path) -> None:
    (tmp_path / "1.jpg").touch()
    (tmp_path / "2.jpg").touch()
    domain = image_list(_list(tmp_path, "/elsewhere/all/1.jpg 3", "/elsewhere/all/2.jpg 0"))
    assert list(domain.paths) == ["1.jpg", "2.jpg"]
    assert domain.classes == ("0", "1", "2", "3")


def test_a_list_without_labels_is_unlabelled(images: Path) -> None:
    domain = image_list(_list(images, "amazon/images/mug/1.jpg", "amazon/images/pen/2 2.jpg"))
    assert domain.labels is None
    assert len(domain) == 2


def test_a_missing_file_is_kept_to_be_named_with_the_others(images: Path) -> None:
    file = _list(images, "amazon/images/mug/1.jpg 0", "amazon/images/gone/1.jpg 1")
    domain = image_list(file)
    assert list(domain.paths) == ["amazon/images/mug/1.jpg", "amazon/images/gone/1.jpg"]


@pytest.mark.parametrize(
    ("lines", "classes", "said"),
    [
        (["amazon/images/mug/1.jpg 0", "amazon/images/pen/1.jpg 0"], None,
         ":2: label 0 of 'amazon/images/pen/1.jpg'; expected a number other than that of 'mug'"),
        (["amazon/images/mug/1.jpg 0", "amazon/images/pen/1.jpg 1", "amazon/images/mug/2 2.jpg 2"],
         None, ":3: label 2 of 'amazon/images/mug/2 2.jpg'; expected 0 for 'mug'"),
        (["amazon/images/pen/1.jpg 1", "amazon/images/mug/1.jpg 7"], ["mug", "pen"],
         ":2: label 7 of 'amazon/images/mug/1.jpg'; expected 0 for 'mug'"),
        (["amazon/images/mug/1.jpg 0", "amazon/images/pen/1.jpg 1"], ["mug", "bike"],
         ":2: folder 'pen' is not one of the 2 classes"),
        (["amazon/images/mug/1.jpg 5"], ["cat", "dog"], ":1: label 5 of"),
        (["amazon/images/mug/1.jpg,0"], None, ":1: read 'amazon/images/mug/1.jpg,0'; expected"),
        (["amazon/images/mug/1.jpg 0 1 0"], None, "expected the path of an image and, where it is"),
        (["amazon/images/mug/1.jpg -1"], None, "the number of its class, from 0"),
        (["amazon/images/mug/1.jpg --1"], None, "the number of its class, from 0"),
        ([f"amazon/images/mug/1.jpg {'1' * 5000}"], None, "111...111"),
        ([f"amazon/images/mug/1.jpg {10**19}"], None, "the number of its class, from 0"),
        (["amazon/images/mug/1.jpg 0", "amazon/images/mug/2 2.jpg"], None, ":2: "),
        (["amazon/images/mug/1.jpg", "amazon/images/mug/1.jpg 0"], None, "is labelled, unlike"),
        (["/nowhere/at/all/1.jpg 0"], None, "move the list into the folder that holds the images"),
        ([""], None, "is empty"),
        (["amazon/images/mug/1.jpg 99999999999"], None, "counted from 0"),
    ],
)  # fmt: skip
def test_a_wrong_list_is_refused_with_its_first_wrong_line(
    images: Path, lines: list[str], classes: list[str] | None, said: str
) -> None:
    file = _list(images, *lines)
    with pytest.raises(InputError) as error:
        image_list(file, classes=classes)
    assert said in str(error.value)
    assert str(file) in str(error.value)
    assert "\n" not in str(error.value)


def test_published_lists_of_office31_agree_with_the_class_list(office31: Path) -> None:
    lists = office31.parent / "lists" / "bnm-office"
    if not lists.is_dir():
        pytest.skip(f"needs the published lists in {lists}")
    chosen = benchmark("office31")
    for domain in chosen.domains:
        file = lists / f"{domain.folder}_list.txt"
        listed = image_list(file, root=office31, classes=chosen.classes)
        assert listed.class_counts().tolist() == list(domain.per_class)
        assert all(listed.path(k).is_file() for k in range(0, len(listed), 50))


def test_an_alphabetical_list_of_office_home_is_refused(tmp_path: Path) -> None:
    (tmp_path / "Art" / "Alarm_Clock").mkdir(parents=True)
    file = _list(tmp_path, "Art/Alarm_Clock/00001.jpg 0")
    with pytest.raises(InputError, match=r":1: label 0 .*expected 33 for 'Alarm_Clock'"):
        image_list(file, classes=benchmark("office_home").classes)


def test_an_absolute_path_that_exists_is_not_looked_for_elsewhere(tmp_path: Path) -> None:
    """Before: its ending below the list's own folder came first."""
    for domain in ("photo", "sketch"):
        (tmp_path / domain / "mug").mkdir(parents=True)
        (tmp_path / domain / "mug" / "1.jpg").touch()
    photo = tmp_path / "photo" / "mug" / "1.jpg"
    assert image_list(_list(tmp_path / "sketch", f"{photo} 0")).path(0).samefile(photo)


def test_one_missing_file_of_a_flat_list_is_named_when_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "b.jpg").touch()
    listed = image_list(_list(tmp_path, "a.jpg 0", "b.jpg 1"))
    assert [listed.path(k).exists() for k in range(2)] == [False, True]


@pytest.mark.usefixtures("own_folder")
def test_a_list_whose_images_are_not_found(capsys: pytest.CaptureFixture[str]) -> None:
    """Before: "under . or .", and an advice that the command line cannot follow."""
    write_blobs(Path("rows.npz"))
    pair = ["-s", "rows.npz:a", "-t", "rows.npz:b"]
    assert main(["adapt", *pair, "-o", "run", *SHORT_FLAGS]) == 0
    Path("new.txt").write_text("gone/1.jpg\n")
    capsys.readouterr()
    assert main(["predict", "run", "new.txt"]) == 2
    said = capsys.readouterr().err
    assert "under . or ..; move the list into the folder that holds the images" in said


@pytest.mark.usefixtures("own_folder")
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
