import base64
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from torch import Tensor

from equida.data import load_domain
from equida.data.spec import DataSpec
from equida.report.page.pictures import SIZE, Pictures

DIGITS = DataSpec("M", "U", "digits")


def decoded(uri: str) -> Image.Image:
    head, content = uri.split(",", 1)
    assert head in ("data:image/png;base64", "data:image/webp;base64")
    return Image.open(io.BytesIO(base64.b64decode(content)))


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    for name in ("a.png", "b.png"):
        Image.new("RGB", (200, 100), (200, 30, 30)).save(tmp_path / name)
    return tmp_path


def test_a_digit_is_its_pixels() -> None:
    pictures = Pictures()
    number = pictures.of(DIGITS, "row 17")
    assert number == 0
    values = load_domain("digits", "U")[17]
    assert isinstance(values, Tensor)
    expected = np.rint(values[0].numpy() / values.max().item() * 255)
    assert np.array_equal(np.asarray(decoded(pictures.made[0])), expected)
    assert pictures.of(DIGITS, "row 17") == 0
    assert len(pictures.made) == 1


def test_an_image_file_becomes_small(photos: Path) -> None:
    pictures = Pictures()
    assert pictures.of(DataSpec("s", str(photos)), "b.png") == 0
    assert decoded(pictures.made[0]).size == (SIZE, SIZE // 2)


def test_features_find_their_images_below_the_given_folder_only(photos: Path) -> None:
    where = DataSpec("s", "t.npz")
    assert Pictures().of(where, "a.png") is None
    assert Pictures(photos).of(where, "a.png") == 0
    (photos / "inner").mkdir()
    assert Pictures(photos / "inner").of(where, "../a.png") is None


def test_the_limit_is_kept_and_counted(photos: Path) -> None:
    pictures = Pictures(limit=1)
    where = DataSpec("s", str(photos))
    assert [pictures.of(where, name) for name in ("a.png", "b.png", "a.png")] == [0, None, 0]
    assert pictures.refused == 1


def test_what_cannot_be_read_has_no_picture(photos: Path) -> None:
    (photos / "c.png").write_bytes(b"no image")
    pictures = Pictures()
    assert pictures.of(DataSpec("s", str(photos)), "c.png") is None
    assert pictures.of(DataSpec("s", str(photos / "gone")), "a.png") is None
    assert pictures.of(None, "row 0") is None


def test_features_of_a_benchmark_find_its_images(tmp_path: Path) -> None:
    folder = tmp_path / "webcam" / "images" / "mug"
    folder.mkdir(parents=True)
    Image.new("RGB", (10, 10)).save(folder / "frame_0001.png")
    where = DataSpec("A", "W", "office31", data="features.npz")
    assert Pictures(tmp_path).of(where, "mug/frame_0001.png") == 0
    assert Pictures(tmp_path).of(where, "mug/frame_0002.png") is None


def test_a_large_grey_picture_becomes_small_too(tmp_path: Path) -> None:
    file = tmp_path / "grey.npz"
    np.savez(file, x=np.random.default_rng(0).normal(size=(2, 1, 300, 600)).astype("f4"))
    pictures = Pictures()
    assert pictures.of(DataSpec("s", str(file)), "row 1") == 0
    assert decoded(pictures.made[0]).size == (SIZE, SIZE // 2)
