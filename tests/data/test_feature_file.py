"""Feature files: what is inside, which domain, read a few rows at a time."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from equida.data import FeatureOrigin, feature_domain, feature_domains, feature_origin
from equida.errors import InputError

ROWS = np.arange(12, dtype=np.float16).reshape(6, 2)


def _safetensors(path: Path, *, header_paths: bool = True, **changes: np.ndarray) -> Path:
    names = [f"mug/{number}.jpg" for number in range(6)]
    tensors = {
        "features": ROWS,
        "labels": np.array([0, 1, 0, -1, -1, -1]),
        "domains": np.array([0, 0, 0, 1, 1, 1]),
        **changes,
    }
    header = {"format": 1, "domains": ["amazon", "dslr"], "classes": ["mug", "pen"]}
    if header_paths:
        header["paths"] = names
    else:
        tensors["paths"] = np.frombuffer("\n".join(names).encode(), np.uint8).copy()
    save_file(tensors, path, metadata={"equida": json.dumps(header)})
    return path


@pytest.mark.parametrize("header_paths", [True, False])
def test_a_safetensors_file_of_two_domains(tmp_path: Path, header_paths: bool) -> None:
    file = _safetensors(tmp_path / "f.safetensors", header_paths=header_paths)
    assert feature_domains(file) == ["amazon", "dslr"]
    source = feature_domain(file, domain="Amazon")
    target = feature_domain(file, domain="dslr")
    assert source.labels is not None
    assert (source.name, source.labels.tolist()) == ("amazon", [0, 1, 0])
    assert (target.labels, target.classes) == (None, ("mug", "pen"))
    assert target[0].dtype == torch.float32
    assert target.rows([0, 2]).tolist() == [[6.0, 7.0], [10.0, 11.0]]
    assert target.identity(1) == "mug/4.jpg"


def test_views_are_kept(tmp_path: Path) -> None:
    views = np.arange(36, dtype=np.float32).reshape(6, 3, 2)
    file = _safetensors(tmp_path / "f.safetensors", features=views)
    domain = feature_domain(file, domain="dslr")
    assert domain.views == 3
    assert domain.row(0, 1).tolist() == views[3, 1].tolist()


def test_rows_are_read_from_the_file_and_not_kept(tmp_path: Path) -> None:
    large = np.zeros((4_000, 512), np.float32)
    large[3_999] = 7
    save_file({"features": large}, tmp_path / "f.safetensors")
    np.savez(tmp_path / "f.npz", X=large)
    for name in ("f.safetensors", "f.npz"):
        domain = feature_domain(tmp_path / name)
        assert domain[3_999][0] == 7
        travelling = pickle.dumps(domain)
        assert len(travelling) < 2_000
        assert pickle.loads(travelling)[3_999][511] == 7


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_with_a_prefix_for_each_domain(tmp_path: Path, save: object) -> None:
    file = tmp_path / "f.npz"
    assert callable(save)
    save(
        file, amazon_x=ROWS[:2], amazon_y=np.array([1, 0]), amazon_path=np.array(["p", "q"]),
        webcam_x=np.asfortranarray(ROWS[2:]), webcam_y=np.array([0, 0, 1, 1]),
        classes=np.array(["mug", "pen"]),
    )  # fmt: skip
    assert feature_domains(file) == ["amazon", "webcam"]
    amazon = feature_domain(file, domain="amazon")
    assert (amazon.classes, amazon.identity(1)) == (("mug", "pen"), "q")
    webcam = feature_domain(file, domain="webcam")
    assert webcam.rows(range(4)).tolist() == ROWS[2:].tolist()
    assert webcam.identity(1) == "row 1"
    with pytest.raises(InputError, match="holds the domains amazon, webcam; say which"):
        feature_domain(file)
    with pytest.raises(InputError, match="no domain 'dslr'; it holds amazon, webcam"):
        feature_domain(file, domain="dslr")


@pytest.mark.parametrize(
    ("x", "y"),
    [
        *[("X", "y"), ("X", "Y"), ("X", "labels")],
        *[("features", "labels"), ("features", "y"), ("x", "Y")],
    ],
)
def test_plain_npz(tmp_path: Path, x: str, y: str) -> None:
    """Before: labels under another name than that beside the rows' were not read."""
    file = tmp_path / "shop.npz"
    arrays: dict[str, Any] = {x: ROWS, y: np.array(list("abcabc"))}
    np.savez(file, **arrays)
    domain = feature_domain(file)
    assert (domain.name, domain.classes) == ("shop", ("a", "b", "c"))
    assert domain.labels is not None
    assert domain.labels.tolist() == [0, 1, 2, 0, 1, 2]
    assert domain[5].tolist() == [10.0, 11.0]


@pytest.mark.parametrize(
    ("name", "values"),
    [("targets", np.linspace(0, 1, 6)), ("Y", np.eye(6)), ("labels", np.linspace(0, 1, 6))],
)
def test_figures_beside_rows_are_no_labels(tmp_path: Path, name: str, values: Any) -> None:
    arrays: dict[str, Any] = {"X": ROWS, name: values}
    np.savez(tmp_path / "f.npz", **arrays)
    assert feature_domain(tmp_path / "f.npz").labels is None


def test_pickled_objects_are_never_loaded(tmp_path: Path) -> None:
    np.savez(tmp_path / "f.npz", X=ROWS, y=np.array([{}, 1, 2, 3, 4, 5], dtype=object))
    with pytest.raises(InputError, match="never pickled objects"):
        feature_domain(tmp_path / "f.npz")
    np.savez(tmp_path / "g.npz", X=np.array([[{}]], dtype=object))
    with pytest.raises(InputError, match="X holds object; only arrays of numbers and text"):
        feature_domain(tmp_path / "g.npz")


def test_files_that_are_not_what_they_seem(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", weights=ROWS)
    save_file({"weights": ROWS}, tmp_path / "other.safetensors")
    (tmp_path / "cut.npz").write_bytes((tmp_path / "other.npz").read_bytes()[:50])
    whole = _safetensors(tmp_path / "whole.safetensors").read_bytes()
    (tmp_path / "cut.safetensors").write_bytes(whole[:-10])
    (tmp_path / "empty.npz").touch()
    (tmp_path / "f.csv").touch()
    _safetensors(tmp_path / "few.safetensors", labels=np.array([0, 1]))
    np.savez(tmp_path / "flat.npz", X=np.zeros(3))
    for name, said in {
        "other.npz": "holds weights; expected '<domain>_x'",
        "other.safetensors": "holds weights; expected a tensor 'features'",
        "cut.npz": "cannot be read",
        "cut.safetensors": "is damaged",
        "empty.npz": "cannot be read",
        "f.csv": "expected a feature file",
        "few.safetensors": "2 labels for 6 rows",
        "flat.npz": "shape (3,)",
        "gone.npz": "does not exist",
    }.items():
        with pytest.raises(InputError) as error:
            feature_domain(tmp_path / name, domain="amazon" if name[:3] == "few" else None)
        assert said in str(error.value), name


def test_the_network_that_made_the_features(tmp_path: Path) -> None:
    known = {"backbone": "toy", "weights_sha256": "abc", "transform": "centre-crop resize=256"}
    file = tmp_path / "f.safetensors"
    save_file({"features": ROWS}, file, metadata={"equida": json.dumps({**known, "views": 0})})
    assert feature_origin(file) == FeatureOrigin("toy", "abc", "centre-crop resize=256")
    del known["transform"]
    save_file({"features": ROWS}, file, metadata={"equida": json.dumps(known)})
    assert feature_origin(file) is None
    save_file({"features": ROWS}, file)
    assert feature_origin(file) is None
    np.savez(tmp_path / "f.npz", X=ROWS)
    assert feature_origin(tmp_path / "f.npz") is None
    assert feature_origin(tmp_path / "gone.safetensors") is None
    file.write_bytes(b"not a feature file")
    with pytest.raises(InputError, match="is damaged"):
        feature_origin(file)


def test_shared_features_of_office31(office31: Path) -> None:
    file = office31.parent / "office31_inceptionv3.npz"
    if not file.is_file():
        pytest.skip(f"needs the Inception-v3 features in {file}")
    domain = feature_domain(file, domain="dslr")
    with np.load(file) as archive:
        expected = archive["dslr_x"][[0, 497]].astype(np.float32)
    assert np.array_equal(domain.rows([0, 497]).numpy(), expected)
    assert domain.identity(0) == "dslr/images/back_pack/frame_0001.jpg"
