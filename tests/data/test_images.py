"""Every kind of image file that people have, sound or not."""

import io
import os
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from equida.data import ImageDomain, UnreadableImage, read_image
from equida.data.checks import find_unreadable, without_unreadable
from equida.data.images import check_image, is_image_name
from equida.data.spec import DataSpec, data_sha256
from equida.data.transforms import feature_transform
from equida.errors import InputError


def _noise(size: int = 64) -> Image.Image:
    pixels = np.random.default_rng(0).integers(0, 256, (size, size, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


def test_an_ordinary_image_is_what_pil_gives(tmp_path: Path) -> None:
    _noise().save(tmp_path / "a.jpg")
    expected = Image.open(tmp_path / "a.jpg").convert("RGB")
    assert read_image(tmp_path / "a.jpg").tobytes() == expected.tobytes()


def test_cmyk_becomes_rgb(tmp_path: Path) -> None:
    Image.new("CMYK", (8, 8), (0, 255, 255, 0)).save(tmp_path / "a.jpg", quality=100)
    image = read_image(tmp_path / "a.jpg")
    red, green, blue = np.asarray(image).reshape(-1, 3).mean(0)
    assert image.mode == "RGB"
    assert red > 240
    assert max(green, blue) < 15


def test_a_palette_with_transparency_shows_its_colours_without_a_warning(tmp_path: Path) -> None:
    image = Image.new("P", (2, 1))
    image.putpalette([10, 20, 30, 200, 100, 50])
    image.putdata([0, 1])
    image.save(tmp_path / "a.png", transparency=bytes([0, 255]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = read_image(tmp_path / "a.png")
    assert [read.getpixel((x, 0)) for x in (0, 1)] == [(10, 20, 30), (200, 100, 50)]


def test_alpha_is_dropped_and_not_blended(tmp_path: Path) -> None:
    Image.new("RGBA", (1, 1), (200, 100, 50, 0)).save(tmp_path / "a.png")
    assert read_image(tmp_path / "a.png").getpixel((0, 0)) == (200, 100, 50)


@pytest.mark.parametrize("suffix", [".png", ".tif"])
def test_sixteen_bit_greyscale_is_scaled_and_not_cut_off(tmp_path: Path, suffix: str) -> None:
    levels = np.array([[0, 257 * 100, 257 * 200, 65535]], np.uint16)
    Image.fromarray(levels).save(tmp_path / f"a{suffix}")
    assert np.asarray(read_image(tmp_path / f"a{suffix}"))[0, :, 1].tolist() == [0, 100, 200, 255]


def test_float_greyscale_must_say_its_range(tmp_path: Path) -> None:
    Image.fromarray(np.array([[0.0, 0.4, 1.0]], np.float32)).save(tmp_path / "unit.tif")
    assert np.asarray(read_image(tmp_path / "unit.tif"))[0, :, 0].tolist() == [0, 102, 255]
    Image.fromarray(np.array([[0.0, 900.0]], np.float32)).save(tmp_path / "wild.tif")
    with pytest.raises(UnreadableImage, match="expected 0 to 1"):
        read_image(tmp_path / "wild.tif")


def test_an_animation_is_its_first_frame(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("red", "blue")]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    assert Image.open(tmp_path / "a.gif").n_frames == 2  # type: ignore[attr-defined]
    assert read_image(tmp_path / "a.gif").getpixel((0, 0)) == (255, 0, 0)


def test_exif_orientation_is_not_applied(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (8, 4)).save(tmp_path / "a.jpg", exif=exif)
    assert read_image(tmp_path / "a.jpg").size == (8, 4)


@pytest.mark.parametrize("order", ["big", "little"])
@pytest.mark.parametrize(("value", "expected"), [(1, False), (2, True), (6, True), (8, True)])
def test_the_quick_check_sees_an_exif_orientation(
    order: str, value: int, expected: bool, tmp_path: Path
) -> None:
    file = tmp_path / "a.jpg"
    exif = Image.Exif()
    exif.endian = {"big": ">", "little": "<"}[order]
    exif[0x010F], exif[0x0112] = "a maker", value
    Image.new("RGB", (8, 4)).save(file, exif=exif)
    assert (Image.open(file).getexif()[0x0112], (b"II*" in file.read_bytes())) == (
        value, order == "little",
    )  # fmt: skip
    for deep in (False, True):
        turned: list[str] = []
        assert check_image(file, deep=deep, turned=turned) is None
        assert turned == [str(file)] * expected


def test_exif_that_is_cut_short_or_elsewhere_is_no_orientation(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.new("RGB", (8, 4)).save(tmp_path / "whole.jpg", exif=exif)
    Image.new("RGB", (8, 4)).save(tmp_path / "a.png", exif=exif)
    whole = (tmp_path / "whole.jpg").read_bytes()
    start = whole.index(b"Exif") + 6

    def is_turned(content: bytes) -> bool:
        (tmp_path / "b.jpg").write_bytes(content)
        turned: list[str] = []
        check_image(tmp_path / "b.jpg", turned=turned)
        return bool(turned)

    # A header of 8 bytes, how many entries there are (2), and of the first its tag (2), type (2),
    # length (4) and value (2).
    for length in range(len(whole)):
        cut = whole[:length] + b"\xff\xd9" + bytes(6)
        assert is_turned(cut) == (length >= start + 20), length
    for spoiled in (b"XX*\0", b"MM\0*\xff\xff\xff\xff"):
        assert not is_turned(whole[:start] + spoiled + whole[start + len(spoiled) :])
    # More entries than there are: the first one counts all the same.
    many = b"MM\0*\0\0\0\x08\xff\xff"
    assert is_turned(whole[:start] + many + whole[start + len(many) :])
    turned: list[str] = []
    check_image(tmp_path / "a.png", turned=turned)
    assert not turned


def _truncated(suffix: str) -> bytes:
    buffer = io.BytesIO()
    _noise().save(buffer, {".jpg": "JPEG", ".png": "PNG"}[suffix])
    return buffer.getvalue()[:-400]


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("empty.jpg", b"", "empty file"),
        ("page.jpg", b"<html>404 Not Found</html>", "not an image"),
        ("cut.jpg", _truncated(".jpg"), "cut short"),
        ("cut.png", _truncated(".png"), "cut short"),
        ("tiny.gif", b"GIF8", "not an image"),
        ("bomb.ppm", b"P6 100000 100000 255\n", "decompression bomb"),
    ],
    ids=["empty", "page", "cut-jpeg", "cut-png", "tiny", "bomb"],
)
def test_damage_is_named_by_the_quick_check_too(
    tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UnreadableImage) as error:
        read_image(path)
    assert reason in error.value.reason
    assert error.value.path == str(path)
    assert check_image(path) == check_image(path, deep=True) == error.value.reason


def test_damage_in_the_middle_is_found_by_decoding(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    _noise().save(buffer, "PNG")
    content = bytearray(buffer.getvalue())
    content[len(content) // 2] ^= 0xFF
    (tmp_path / "a.png").write_bytes(content)
    assert check_image(tmp_path / "a.png") is None
    assert check_image(tmp_path / "a.png", deep=True) is not None


def test_bytes_after_the_end_do_no_harm(tmp_path: Path) -> None:
    _noise().save(tmp_path / "a.jpg")
    with (tmp_path / "a.jpg").open("ab") as file:
        file.write(b"appended by a camera")
    assert check_image(tmp_path / "a.jpg") is None


@pytest.mark.parametrize("suffix", [".jpg", ".png", ".gif", ".bmp", ".webp", ".tif", ".ppm"])
def test_sound_files_of_every_format_pass(tmp_path: Path, suffix: str) -> None:
    _noise(8).save(tmp_path / f"a{suffix}")
    assert check_image(tmp_path / f"a{suffix}") is None
    assert check_image(tmp_path / f"a{suffix}", deep=True) is None


def test_missing_files_and_dead_links(tmp_path: Path) -> None:
    (tmp_path / "link.jpg").symlink_to(tmp_path / "gone.jpg")
    (tmp_path / "self.jpg").symlink_to(tmp_path / "self.jpg")
    assert check_image(tmp_path / "gone.jpg") == "no such file"
    assert check_image(tmp_path / "link.jpg") == "a link to a file that does not exist"
    assert "symbolic links" in (check_image(tmp_path / "self.jpg") or "")


def test_a_forbidden_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    _noise(8).save(tmp_path / "a.jpg")
    monkeypatch.setattr("builtins.open", forbidden)
    assert check_image(tmp_path / "a.jpg") == "no permission to read it"


def test_the_error_survives_the_way_out_of_a_loading_process() -> None:
    error = pickle.loads(pickle.dumps(UnreadableImage("a.jpg", "cut short")))
    assert (error.path, error.reason, str(error)) == ("a.jpg", "cut short", "a.jpg: cut short")


def test_names_of_images() -> None:
    assert all(map(is_image_name, ("a.JPG", "b.jpeg", "ä b\n.webp", ".x.png")))
    assert not any(map(is_image_name, ("a.txt", "jpg", "a.jpg.part", ".jpg")))


def test_what_is_not_a_file_is_not_waited_for(tmp_path: Path) -> None:
    """A pipe that is called x.jpg has no end."""
    os.mkfifo(tmp_path / "pipe.jpg")
    (tmp_path / "device.jpg").symlink_to("/dev/zero")
    for name, said in (("pipe.jpg", "a named pipe"), ("device.jpg", "a device")):
        for deep in (False, True):
            assert check_image(tmp_path / name, deep=deep) == f"{said}, not a file"
        with pytest.raises(UnreadableImage, match=said):
            read_image(tmp_path / name)
    domain = ImageDomain(tmp_path, ["pipe.jpg", "device.jpg"], name="photos")
    with pytest.raises(InputError, match="a named pipe, not a file"):
        without_unreadable(domain, find_unreadable(domain), skip=False)
    assert feature_transform(reduced=True).open_reduced(tmp_path / "pipe.jpg") is None
    assert len(data_sha256(DataSpec(str(tmp_path), str(tmp_path)))) == 64
