"""The rows that `python -m benchmarks shares` and `clusters` look at."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.rows import load_rows
from equida.data import benchmark


@pytest.fixture
def file(tmp_path: Path) -> str:
    """Features of Office-31 whose first column is the class: 2 rows of each in A, 6 in W."""
    classes = benchmark("office31").classes
    assert classes is not None
    arrays: dict[str, np.ndarray] = {"classes": np.array(classes)}
    for domain, size in (("amazon", 2), ("dslr", 2), ("webcam", 6)):
        labels = np.repeat(np.arange(31), size)
        rows = np.random.default_rng(0).normal(size=(len(labels), 3)).astype(np.float32)
        rows[:, 0] = labels
        arrays |= {f"{domain}_x": rows, f"{domain}_y": labels}
    np.savez(tmp_path / "office31.npz", **arrays)  # type: ignore[arg-type]
    return str(tmp_path / "office31.npz")


def test_all_classes_by_a_protocol(file: str) -> None:
    rows = load_rows("office31", file, "A2W", "classes:4")
    assert (len(rows.source), len(rows.target), rows.classes) == (62, 24, 31)
    np.testing.assert_array_equal(rows.target[:, 0], rows.truth)
    assert sorted(rows.true_shares)[-5:] == [0.0] + [0.25] * 4


@pytest.mark.parametrize("protocol", ["natural", "classes:3", "long-tail:6"])
def test_draws_of_classes_have_the_same_names_in_both_domains(file: str, protocol: str) -> None:
    first, second = (load_rows("office31", file, "A2W", protocol, 5, draw) for draw in (0, 1))
    for rows in (first, second):
        assert rows.classes == 5
        names = [set(rows.source[rows.labels == label, 0]) for label in range(5)]
        assert all(len(name) == 1 for name in names), "a class of the draw is one of the file"
        assert len(set.union(*names)) == 5
        for label in np.unique(rows.truth):
            assert set(rows.target[rows.truth == label, 0]) == names[label]
    assert set(first.source[:, 0]) != set(second.source[:, 0])
    sizes = np.bincount(first.truth, minlength=5)
    expected = {"natural": [6] * 5, "classes:3": [0, 0, 6, 6, 6], "long-tail:6": [1, 2, 2, 4, 6]}
    assert sorted(sizes) == expected[protocol]
