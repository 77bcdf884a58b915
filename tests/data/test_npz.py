"""Arrays in an .npz file are what their headers say, or they are refused."""

import io
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from equida.data import feature_domain
from equida.errors import InputError

ROWS = np.arange(40, dtype="f4").reshape(10, 4)


def _npy(array: np.ndarray, version: tuple[int, int] = (1, 0)) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, version)
    return stream.getvalue()


def _zip(file: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return file


def _with_header(shape: str, dtype: str = "<f4") -> bytes:
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text.encode()


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (_npy(ROWS)[:-16], r"a_x has 272 bytes, but its header says float32 of shape \(10, 4\)"),
        (_npy(ROWS) + b"more", r"a_x has 292 bytes, but .* 288 bytes"),
        (_with_header("(20, 4)") + ROWS.tobytes(), r"of shape \(20, 4\), 448 bytes"),
        (_with_header("(10, 4)", "<f8") + ROWS.tobytes(), "float64 of shape"),
        (_with_header("(-10, -4)") + ROWS.tobytes(), "shape"),
        (_with_header(f"({10**40}, 4)") + ROWS.tobytes(), "shape"),
        (_with_header("(2, 4, 5, 1, 1)") + ROWS.tobytes(), "expected .rows, features."),
        (_with_header("('a', 4)") + ROWS.tobytes(), "cannot be read as .npz"),
        (_with_header("(10, 4), [" * 50) + ROWS.tobytes(), "cannot be read as .npz"),
        (_with_header("(10, 4)", "|O") + ROWS.tobytes(), "never pickled objects"),
        (_with_header("(10, 4)", "|V4") + ROWS.tobytes(), "expected real numbers"),
        (b"\x93NUMPY\x07\x00" + _npy(ROWS)[8:], r"version \(7, 0\)"),
        (b"", "cannot be read as .npz"),
    ],
)
def test_a_member_that_is_not_what_its_header_says(
    tmp_path: Path, content: bytes, said: str, compression: int
) -> None:
    """The array behind it must not lend it the bytes that it lacks."""
    file = _zip(tmp_path / "f.npz", {"a_x": content, "b_x": _npy(ROWS)}, compression)
    with pytest.raises(InputError, match=said) as error:
        feature_domain(file, domain="a")
    assert "\n" not in str(error.value)


def test_labels_are_as_long_as_their_header_says(tmp_path: Path) -> None:
    members = {"X": _npy(ROWS), "y": _with_header(f"({10**9},)", "<i8") + b"\0" * 80}
    with pytest.raises(InputError, match=r"y has .* bytes, but its header says int64"):
        feature_domain(_zip(tmp_path / "f.npz", members))


def test_members_that_overlap_are_refused(tmp_path: Path) -> None:
    """The entry of b in the directory is moved onto that of a, and both claim the same bytes."""
    file = _zip(tmp_path / "f.npz", {"a_x": _npy(ROWS), "a_y": _npy(np.zeros(10, "i8"))})
    content = bytearray(file.read_bytes())
    second = content.rindex(b"PK\x01\x02")
    content[second + 42 : second + 46] = struct.pack("<I", 0)
    content[second + 46 : second + 53] = b"a_x.npy"
    file.write_bytes(bytes(content))
    with pytest.raises(InputError, match=r"two arrays called 'a_x.npy'|overlaps other data"):
        feature_domain(file)
    many = _npy(np.zeros((5000, 4), "f4"))
    lengthened = bytearray(_zip(file, {"a_x": many, "b_x": many}).read_bytes())
    first = lengthened.index(b"PK\x01\x02")
    # One row more: the directory, the local header and the array agree on the length.
    size = struct.pack("<II", len(many) + 16, len(many) + 16)
    lengthened[first + 20 : first + 28] = size
    lengthened[18:26] = size
    lengthened[:] = lengthened.replace(b"(5000, 4)", b"(5001, 4)", 1)
    file.write_bytes(bytes(lengthened))
    with pytest.raises(InputError, match="a_x overlaps other data"):
        feature_domain(file, domain="a")


def test_a_compressed_array_cannot_be_larger_than_compression_allows(tmp_path: Path) -> None:
    """Four gigabytes are not allocated for an array of a few kilobytes."""
    header = _with_header("(25000000, 40)")
    file = _zip(tmp_path / "f.npz", {"X": header + b"\0" * 40_000}, zipfile.ZIP_DEFLATED)
    content = bytearray(file.read_bytes())
    claimed = struct.pack("<I", len(header) + 4_000_000_000)
    for place in (22, content.index(b"PK\x01\x02") + 24):
        content[place : place + 4] = claimed
    file.write_bytes(bytes(content))
    with pytest.raises(InputError, match="X cannot have 4000000128 bytes in the"):
        feature_domain(file)


def test_a_damaged_compressed_array_is_found_when_it_is_read(tmp_path: Path) -> None:
    file = _zip(tmp_path / "f.npz", {"X": _npy(ROWS)}, zipfile.ZIP_DEFLATED)
    content = bytearray(file.read_bytes())
    middle = 30 + 5 + 60
    content[middle] ^= 0xFF
    file.write_bytes(bytes(content))
    with pytest.raises(InputError, match="cannot be read as"):
        np.asarray(feature_domain(file).values)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("dtype", [">f4", ">f8", ">i2", "f2", "u2", "u8", "i1", "?", "g"])
def test_numbers_of_every_kind_and_byte_order(
    tmp_path: Path, dtype: str, version: tuple[int, int]
) -> None:
    values = np.array([[0, 1, 1], [1, 0, 0]], dtype)
    rows = feature_domain(_zip(tmp_path / "f.npz", {"X": _npy(values, version)}))
    assert rows.rows([1, 0]).tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]]


def test_classes_and_paths_are_texts(tmp_path: Path) -> None:
    for key, values, said in (
        ("classes", np.array("mug"), "classes is <U3 of shape ()"),
        ("classes", np.zeros((2, 2), "U1"), "classes is <U1 of shape (2, 2)"),
        ("classes", np.array([0.5, 1.5]), "classes is float64"),
        ("paths", np.array([b"a", b"b"]), "paths is |S1"),
    ):
        arrays = {"X": ROWS, "y": np.zeros(10, int), key: values}
        np.savez(tmp_path / "f.npz", **arrays)  # type: ignore[arg-type]
        with pytest.raises(InputError) as error:
            feature_domain(tmp_path / "f.npz")
        assert said in str(error.value)


def test_other_files_that_are_called_npz(tmp_path: Path) -> None:
    (tmp_path / "f.npz").write_bytes(_npy(ROWS))
    with pytest.raises(InputError, match="not a zip file"):
        feature_domain(tmp_path / "f.npz")
    (tmp_path / "g.npz").mkdir()
    with pytest.raises(InputError, match="a folder, not a file"):
        feature_domain(tmp_path / "g.npz")
