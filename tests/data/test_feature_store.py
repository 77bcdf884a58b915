"""The features that commands share: by network, preprocessing and image content."""

import errno
import multiprocessing
import os
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest
from PIL import Image
from tests.meters import Silent
from tests.small_data import SHORT, write_pictures
from torch import Tensor

import equida
from equida.cli import main
from equida.data.domain import ImageDomain
from equida.data.feature_cache import (
    Extraction,
    ExtractionOptions,
    FeatureSettings,
    FeatureStore,
    write_features,
)
from equida.data.transforms import feature_transform
from equida.errors import InputError

MEAN = (0.5, 0.5, 0.5)
SETTINGS = FeatureSettings("tiny", "a" * 64, 3, str(feature_transform(MEAN, MEAN, 8)))


class Network:
    """The mean of each channel; counts the images that it has seen."""

    def __init__(self) -> None:
        self.batches = 0

    def __call__(self, images: Tensor) -> Tensor:
        self.batches += 1
        return images.mean((2, 3))


def photos(root: Path, count: int, first: int = 0) -> ImageDomain:
    root.mkdir(parents=True)
    for number in range(first, first + count):
        Image.new("RGB", (9, 9), (10 * number, number, 255 - number)).save(root / f"{number}.png")
    names = sorted(path.name for path in root.iterdir())
    return ImageDomain(root, names, name=root.name)


def extracted(
    file: Path,
    domain: ImageDomain,
    store: FeatureStore | None,
    settings: FeatureSettings = SETTINGS,
) -> tuple[Extraction, Network]:
    network = Network()
    options = ExtractionOptions(batch_size=4, workers=1)
    done = write_features(file, [domain], settings, options, network, Silent(), store=store)
    return done, network


def test_the_same_images_are_computed_once_wherever_they_are(tmp_path: Path) -> None:
    store = FeatureStore(tmp_path / "store")
    first, network = extracted(tmp_path / "a.safetensors", photos(tmp_path / "a", 6), store)
    assert (first.computed, first.stored, network.batches) == (6, 0, 2)
    copied = photos(tmp_path / "b", 9)
    second, network = extracted(tmp_path / "b.safetensors", copied, store)
    assert (second.computed, second.stored, network.batches) == (3, 6, 1)
    alone, _ = extracted(tmp_path / "c.safetensors", copied, None)
    assert alone.computed == 9
    assert (tmp_path / "b.safetensors").read_bytes() == (tmp_path / "c.safetensors").read_bytes()


@pytest.mark.parametrize(
    "change", [{"weights_sha256": "b" * 64}, {"backbone": "other"}, {"dtype": "float16"}]
)
def test_other_networks_have_other_features(tmp_path: Path, change: dict[str, str]) -> None:
    store, domain = FeatureStore(tmp_path / "store"), photos(tmp_path / "a", 3)
    extracted(tmp_path / "a.safetensors", domain, store)
    other = FeatureSettings(**{**SETTINGS.__dict__, **change})
    done, _ = extracted(tmp_path / "b.safetensors", domain, store, other)
    assert done.stored == 0


def test_code_that_may_change_is_not_trusted_to_be_the_same(tmp_path: Path) -> None:
    store, domain = FeatureStore(tmp_path / "store"), photos(tmp_path / "a", 3)
    code = FeatureSettings(**{**SETTINGS.__dict__, "backbone": "module:net"})
    for name in "ab":
        done, _ = extracted(tmp_path / f"{name}.safetensors", domain, store, code)
        assert (done.computed, done.stored) == (3, 0)
    assert store.size() == (0, 0)


def test_the_least_recently_used_goes_first(tmp_path: Path) -> None:
    row = 32 + 3 * 4
    store = FeatureStore(tmp_path / "store", limit=8 * row)
    domains = [photos(tmp_path / name, 4, first) for name, first in (("a", 0), ("b", 4), ("c", 8))]
    for age, domain in zip((300, 200), domains[:2], strict=True):
        extracted(tmp_path / f"{domain.name}.safetensors", domain, store)
        for file in (tmp_path / "store").glob("*/*.rows"):
            os.utime(file, (1e9 - age, 1e9 - age))
    assert store.size() == (8 * row, 2)
    again, _ = extracted(tmp_path / "a2.safetensors", domains[0], store)  # used now: b is oldest
    assert again.stored == 4
    extracted(tmp_path / "c.safetensors", domains[2], store)
    assert store.size() == (8 * row, 2)
    found = [extracted(tmp_path / f"{d.name}3.safetensors", d, store)[0].stored for d in domains]
    assert found[:2] == [4, 0]
    assert store.clear() > 0
    assert store.size() == (0, 0)


def test_a_damaged_or_unwritable_store_does_no_harm(tmp_path: Path) -> None:
    store, domain = FeatureStore(tmp_path / "store"), photos(tmp_path / "a", 3)
    extracted(tmp_path / "a.safetensors", domain, store)
    (file,) = (tmp_path / "store").glob("*/*.rows")
    file.write_bytes(file.read_bytes()[:-1])
    done, _ = extracted(tmp_path / "b.safetensors", domain, store)
    assert (done.computed, done.stored) == (3, 0)
    (tmp_path / "blocked").write_text("a file, not a folder")
    done, _ = extracted(tmp_path / "c.safetensors", domain, FeatureStore(tmp_path / "blocked"))
    assert done.computed == 3


def test_what_cannot_be_removed_is_an_error_that_names_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before: "0.0 MB removed", and the exit code of success."""
    monkeypatch.setenv("EQUIDA_CACHE", str(tmp_path))
    store = FeatureStore.default()
    extracted(tmp_path / "a.safetensors", photos(tmp_path / "a", 3), store)
    extracted(tmp_path / "b.safetensors", photos(tmp_path / "b", 3, 3), store)
    assert ": 0.0 MB in 2 files, of" in store.summary()

    def forbidden(path: Path) -> NoReturn:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    for attribute, seen in (
        ("unlink", "2 files could not be"),
        ("iterdir", "some files could not be"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(Path, attribute, forbidden)
            assert main(["cache", "--clear"]) == 2
        said = capsys.readouterr()
        assert said.err.startswith(f"equida: {store.folder}: {seen} removed (Permission denied: ")
        assert (said.out, said.err.count("\n")) == ("", 1)
    assert store.size()[1] == 2
    assert main(["cache", "--clear"]) == 0


def _fill(folder: str, number: int) -> None:
    store = FeatureStore(Path(folder))
    contents = [bytes([number, k]) + bytes(30) for k in range(50)]
    for _ in range(5):
        store.put(SETTINGS, 4, contents, np.full((50, 3), number, np.float32))


def test_two_processes_at_once(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=_fill, args=(str(tmp_path), n)) for n in (1, 2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(120)
        assert worker.exitcode == 0
    wanted = [bytes([number, 7]) + bytes(30) for number in (1, 2)]
    found = FeatureStore(tmp_path).get(SETTINGS, 4, wanted)
    assert [found[each].tolist() for each in wanted] == [[1.0] * 3, [2.0] * 3]


def test_its_place_and_size_can_be_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("EQUIDA_CACHE", str(tmp_path))
    monkeypatch.setenv("EQUIDA_CACHE_SIZE", "1.5 GB")
    assert FeatureStore.default() == FeatureStore(tmp_path / "features", 1_500_000_000)
    monkeypatch.setenv("EQUIDA_CACHE_SIZE", "large")
    with pytest.raises(InputError, match="EQUIDA_CACHE_SIZE is 'large'; expected a size"):
        FeatureStore.default()
    monkeypatch.delenv("EQUIDA_CACHE_SIZE")
    monkeypatch.delenv("EQUIDA_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setattr("sys.platform", "linux")
    assert FeatureStore.default().folder == tmp_path / "xdg" / "equida" / "features"


@pytest.mark.usefixtures("own_folder")
@pytest.mark.slow(reason="computes features")
def test_features_that_the_store_cannot_keep(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Before: they were computed anew by every command, and nobody knew why."""
    write_pictures(Path(), ["a", "b"], ["red", "blue"])
    Path("a_file").touch()
    monkeypatch.setenv("EQUIDA_CACHE", "a_file")
    equida.adapt(
        "a",
        "b",
        features=True,
        backbone="tf_efficientnet_lite0",
        recipe_params=SHORT,
        out="run",
        progress=False,
    )
    said = "features are not kept for other commands (Not a directory: a_file"
    assert [line for line in caplog.messages if line.startswith(said)]


@pytest.mark.parametrize("size", ["5", "-1", "-5GB", "99"])
def test_a_size_of_the_cache_without_a_unit(
    size: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before: 5 bytes, or fewer than none, so that nothing was kept and nothing said."""
    monkeypatch.setenv("EQUIDA_CACHE_SIZE", size)
    assert main(["cache"]) == 2
    assert (
        f"EQUIDA_CACHE_SIZE is '{size}'; expected a size such as 500MB" in capsys.readouterr().err
    )
