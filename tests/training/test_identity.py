"""When data count as the same."""

from pathlib import Path

from equida.training.config import TaskSource
from equida.training.identity import data_sha256


def test_images_count_and_other_files_do_not(tmp_path: Path) -> None:
    """A folder of runs inside that of the data must not make each call a new run."""
    where = TaskSource("A", "W", "office31", str(tmp_path))
    (tmp_path / "mug").mkdir()
    (tmp_path / "mug" / "1.jpg").write_bytes(b"one")
    before = data_sha256(where)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "result.json").write_text("{}")
    assert data_sha256(where) == before
    (tmp_path / "mug" / "1.jpg").write_bytes(b"other")
    assert data_sha256(where) != before


def test_a_file_counts_by_its_content_wherever_it_is(tmp_path: Path) -> None:
    one, other = tmp_path / "one.npz", tmp_path / "other.npz"
    for file in (one, other):
        file.write_bytes(b"rows")
    pairs = [TaskSource(f"{file}:a", f"{file}:b") for file in (one, other)]
    assert data_sha256(pairs[0]) == data_sha256(pairs[1])
    other.write_bytes(b"more")
    assert data_sha256(pairs[0]) != data_sha256(pairs[1])
