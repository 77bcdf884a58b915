"""Folders are searched in one way, and listed once."""

import contextlib
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tests.small_data import touch

from equida.cli import main
from equida.data import image_folder
from equida.data.folders import unlabelled_folder
from equida.data.spec import DataSpec, data_sha256
from equida.data.walk import FolderTree, find_images, folder_tree
from equida.errors import InputError
from equida.models.extractor import image_domains
from equida.runs.read import read_runs


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each folder is listed."""
    counts: Counter[str] = Counter()
    plain = os.scandir

    def scandir(path: Any = ".") -> Any:
        counts[os.path.realpath(path)] += 1
        return plain(path)

    monkeypatch.setattr(os, "scandir", scandir)
    return counts


def _images(tree: FolderTree) -> list[str]:
    return [f"{prefix}{name}" for prefix, folder in tree.walk() for name in folder.images]


def test_images_come_in_order_before_the_folders_beside_them(tmp_path: Path) -> None:
    root = touch(tmp_path, "b/2.jpg", "b/10.jpg", "b/a/1.JPG", "a/1.png", "z.jpg", "notes.txt")
    assert _images(FolderTree(root)) == ["z.jpg", "a/1.png", "b/10.jpg", "b/2.jpg", "b/a/1.JPG"]
    assert FolderTree(root).others == ["notes.txt"]


def test_hidden_names_and_litter_are_passed_over(tmp_path: Path) -> None:
    root = touch(
        tmp_path, "mug/1.jpg", "mug/.2.jpg", ".thumbnails/3.jpg", "__MACOSX/4.jpg", "Thumbs.db",
        "image_list/mug.txt",
    )  # fmt: skip
    tree = FolderTree(root)
    assert _images(tree) == ["mug/1.jpg"]
    assert tree.others == []
    lists = tree.inner("image_list")
    assert lists is not None
    assert lists.others == ["mug.txt"]


def test_each_folder_is_listed_when_it_is_first_looked_into_and_once(
    tmp_path: Path, listed: Counter[str]
) -> None:
    root = touch(tmp_path, "mug/deep/1.jpg", "pen/2.jpg")
    tree = FolderTree(root)
    assert not listed
    assert list(tree.folders) == ["mug", "pen"]
    assert listed == {str(root): 1}
    for _ in range(3):
        assert len(_images(tree)) == 2
    assert listed == {str(root / name): 1 for name in ("", "mug", "mug/deep", "pen")}


def test_links_back_end_the_walk(tmp_path: Path, listed: Counter[str]) -> None:
    """Twelve links to the folder above: followed, they would be 12^40 folders."""
    root = touch(tmp_path / "root", "mug/1.jpg")
    for number in range(12):
        (root / "mug" / f"up{number:02d}").symlink_to(root)
    tree = FolderTree(root)
    assert _images(tree) == ["mug/1.jpg"]
    assert tree.folders["mug"].loops == [f"up{number:02d}" for number in range(12)]
    assert listed == {str(root): 1, str(root / "mug"): 1}


def test_a_forbidden_folder_is_an_error_or_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = os.scandir

    def guarded(path: Any) -> Any:
        if str(path).endswith("secret"):
            raise PermissionError(13, "Permission denied")
        return plain(path)

    touch(tmp_path, "mug/1.jpg", "secret/2.jpg")
    monkeypatch.setattr(os, "scandir", guarded)
    with pytest.raises(InputError, match="secret: no permission to list this folder"):
        _images(FolderTree(tmp_path))
    walked = FolderTree(tmp_path).walk(skip_forbidden=True)
    assert [prefix for prefix, _ in walked] == ["", "mug/"]


def test_a_file_or_nothing_is_no_tree(tmp_path: Path) -> None:
    touch(tmp_path, "a.jpg")
    with pytest.raises(InputError, match="is a file; expected a folder"):
        folder_tree(tmp_path / "a.jpg")
    with pytest.raises(InputError, match="does not exist"):
        folder_tree(tmp_path / "gone")
    tree = FolderTree(tmp_path)
    assert folder_tree(tree) is tree


def test_images_of_files_and_folders(tmp_path: Path) -> None:
    root = touch(tmp_path, "b/2.jpg", "b/a/1.jpg", "b/.thumbnails/1.jpg", "b/notes.txt", "odd.dat")
    (root / "b" / "up").symlink_to(root)
    found = find_images([root / "odd.dat", root / "b"])
    assert list(found) == [root / "odd.dat", root / "b" / "2.jpg", root / "b" / "a" / "1.jpg"]


def _image(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 8)).save(folder / "1.png")


USES: dict[str, Callable[[Path], object]] = {
    "digest": lambda root: data_sha256(DataSpec(str(root), "")),
    "adapt": lambda root: image_folder(root),
    "unlabelled": lambda root: unlabelled_folder(root),
    "predict": lambda root: list(find_images([root])),
    "features": lambda root: image_domains(str(root)),
    "doctor": lambda root: main(["doctor", "--data", str(root)]),
    "runs": lambda root: read_runs(root),
}


@pytest.mark.parametrize("use", USES)
def test_links_back_are_not_walked_through(tmp_path: Path, listed: Counter[str], use: str) -> None:
    """Two links to the top in each of eight folders: every path of them would be 2 to the 8."""
    folder = tmp_path / "data" / "mug"
    _image(tmp_path / "data" / "pen")
    for depth in range(8):
        _image(folder)
        for name in ("one", "two"):
            (folder / name).symlink_to(tmp_path / "data")
        folder = folder / f"deep{depth}"
    with contextlib.suppress(InputError):
        USES[use](tmp_path / "data")
    assert listed.total() <= 4 * 10


@pytest.mark.parametrize("use", USES)
def test_folders_that_link_to_each_other(tmp_path: Path, listed: Counter[str], use: str) -> None:
    """Seven of them can be walked through in 13,699 orders."""
    names = [f"class{number}" for number in range(7)]
    for name in names:
        _image(tmp_path / "data" / name)
        for other in names:
            if other != name:
                (tmp_path / "data" / name / f"to_{other}").symlink_to(tmp_path / "data" / other)
    with contextlib.suppress(InputError):
        USES[use](tmp_path / "data")
    assert listed.total() <= 2 * (1 + 7 * (1 + 6 * (1 + 5 * (1 + 4))))


def test_links_to_class_folders_are_followed(tmp_path: Path) -> None:
    """A domain that is a link, whose classes are links, whose parts are links."""
    _image(tmp_path / "store" / "part")
    _image(tmp_path / "store" / "pen")
    (tmp_path / "pool").mkdir()
    (tmp_path / "pool" / "mug").mkdir()
    (tmp_path / "pool" / "mug" / "part").symlink_to(tmp_path / "store" / "part")
    (tmp_path / "domain").mkdir()
    (tmp_path / "domain" / "mug").symlink_to(tmp_path / "pool" / "mug")
    (tmp_path / "domain" / "pen").symlink_to(tmp_path / "store" / "pen")
    (tmp_path / "data").symlink_to(tmp_path / "domain")
    assert list(image_folder(tmp_path / "data").paths) == ["mug/part/1.png", "pen/1.png"]
