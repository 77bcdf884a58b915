"""Features of several backbones side by side."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from equida.cli import main
from equida.data import feature_domain, join_features
from equida.errors import InputError

RANDOM = np.random.default_rng(0)
NAMES = np.array(["a/1.jpg", "a/2.jpg", "b/1.jpg"])


def save(path: Path, width: int, scale: float = 1.0, **changes: Any) -> Path:
    arrays = {
        "classes": np.array(["a", "b"]),
        "shop_x": scale * RANDOM.normal(size=(3, width)).astype("f4"),
        "shop_y": np.array([0, 0, 1]),
        "shop_path": NAMES,
        "desk_x": scale * RANDOM.normal(size=(2, width)).astype("f4"),
    } | changes
    np.savez(path, **{name: value for name, value in arrays.items() if value is not None})
    return path


def test_rows_stand_side_by_side_in_the_units_of_the_first(tmp_path: Path) -> None:
    first, second = save(tmp_path / "1.npz", 4), save(tmp_path / "2.npz", 6, scale=50.0)
    out = tmp_path / "both.npz"
    assert join_features([first, second], out) == {"shop": (3, 10), "desk": (2, 10)}
    left, right = np.load(first), np.load(second)

    def size(file: Any) -> float:
        rows = np.concatenate([file["shop_x"], file["desk_x"]]).astype("f8")
        return float(np.sqrt((rows**2).sum(1).mean()))

    for name in ("shop", "desk"):
        domain = feature_domain(out, domain=name)
        rows = np.asarray(domain.values)
        np.testing.assert_array_equal(rows[:, :4], left[f"{name}_x"])
        expected = right[f"{name}_x"] * size(left) / size(right)
        np.testing.assert_allclose(rows[:, 4:], expected, rtol=1e-5)
    shop = feature_domain(out, domain="shop")
    assert shop.labels is not None
    assert shop.paths is not None
    assert (shop.classes, shop.labels.tolist()) == (("a", "b"), [0, 0, 1])
    assert list(shop.paths) == NAMES.tolist()
    assert join_features([second, first], out)  # its own file is written again


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"desk_x": None}, "2.npz holds the domains shop, and .*1.npz holds shop, desk"),
        ({"desk_x": np.ones((3, 5))}, "2.npz has 3 rows of desk, and .*1.npz has 2"),
        ({"shop_path": NAMES[::-1]}, "row 0 of shop is a/1.jpg in .*1.npz and b/1.jpg in .*2.npz"),
        ({"shop_y": np.array([0, 1, 1])}, "the labels of shop are not the same in"),
        ({"classes": np.array(["a", "c"])}, "the labels of shop are not the same in"),
        ({"desk_x": np.ones((2, 3, 5))}, "desk has values of shape .*without --views"),
        (
            {"desk_x": np.array([[1.0, 2.0], [np.nan, 1.0]])},
            "2.npz: desk: row 1 has a value in column 0 that is not finite; compute it again, or"
            " remove it$",
        ),
        ({"shop_x": np.zeros((3, 5)), "desk_x": np.zeros((2, 5))}, "2.npz: all features are 0"),
    ],
)
def test_files_of_other_images_are_refused(
    changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    first, second = save(tmp_path / "1.npz", 4), save(tmp_path / "2.npz", 5, **changes)
    with pytest.raises(InputError, match=message):
        join_features([first, second], tmp_path / "both.npz")
    assert not (tmp_path / "both.npz").exists()


def test_one_file_twice_is_refused(tmp_path: Path) -> None:
    """Before: its features stood beside themselves, without a word."""
    first = save(tmp_path / "1.npz", 4)
    (tmp_path / "link.npz").symlink_to(first)
    for second in (first, tmp_path / "link.npz"):
        with pytest.raises(InputError, match=f"{second} is given twice; expected the features of"):
            join_features([first, save(tmp_path / "2.npz", 5), second], tmp_path / "both.npz")


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (1, 2, 0)])
def test_labels_and_paths_of_some_files_are_enough(order: tuple[int, ...], tmp_path: Path) -> None:
    """Before: "the labels of shop are not the same"."""
    bare: dict[str, Any] = {"classes": None, "shop_y": None, "shop_path": None}
    files = [save(tmp_path / "0.npz", 4), *(save(tmp_path / f"{k}.npz", 4, **bare) for k in (1, 2))]
    join_features([files[k] for k in order], tmp_path / "all.npz")
    shop = feature_domain(tmp_path / "all.npz", domain="shop")
    assert shop.labels is not None
    assert shop.paths is not None
    assert (shop.classes, shop.labels.tolist()) == (("a", "b"), [0, 0, 1])
    assert list(shop.paths) == NAMES.tolist()
    other = save(tmp_path / "3.npz", 4, shop_y=np.array([1, 0, 1]))
    with pytest.raises(InputError, match=r"labels of shop are not the same in .*0.npz and .*3"):
        join_features([files[1], files[0], other], tmp_path / "all.npz")


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = save(tmp_path / "1.npz", 4), save(tmp_path / "2.npz", 5)
    assert main(["join", str(first), str(second), "--out", str(tmp_path / "both.npz")]) == 0
    assert "both.npz: shop 3 x 9, desk 2 x 9" in capsys.readouterr().out
    before, other = second.read_bytes(), save(tmp_path / "3.npz", 5)
    assert main(["join", str(first), str(other), "--out", str(second)]) == 2
    assert "is not a file that this command may replace" in capsys.readouterr().err
    assert second.read_bytes() == before
    assert main(["join", str(first), "--out", str(tmp_path / "one.npz")]) == 2
    assert "1 feature file is given; expected two or more" in capsys.readouterr().err
    assert main(["join", str(first), str(second), "--out", str(tmp_path / "a.safetensors")]) == 2
    assert "ends in .npz" in capsys.readouterr().err


def test_domains_with_classes_of_their_own_keep_them(tmp_path: Path) -> None:
    """Before: the names of the last domain were given to all."""
    changes: dict[str, Any] = {
        "classes": None,
        "shop_y": np.array(["mug", "pen", "mug"]),
        "desk_y": np.array(["cat", "pen"]),
    }
    files = [save(tmp_path / f"{k}.npz", 4, **changes) for k in range(2)]
    join_features(files, tmp_path / "both.npz")
    for name in ("shop", "desk"):
        domain = feature_domain(tmp_path / "both.npz", domain=name)
        assert domain.labels is not None
        assert [domain.classes[k] for k in domain.labels] == changes[f"{name}_y"].tolist()
