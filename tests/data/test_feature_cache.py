"""The feature cache with a small deterministic network: reuse, resume, damage."""

import errno
import json
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors import safe_open
from safetensors.torch import save_file
from tests.meters import Silent
from tests.small_data import write_pictures
from torch import Tensor, nn

import equida
from equida.cli import main
from equida.data import feature_domain
from equida.data.domain import ImageDomain
from equida.data.feature_cache import Extraction, ExtractionOptions, FeatureSettings, write_features
from equida.data.feature_cache import file as cache_file
from equida.data.feature_cache.contents import Contents
from equida.data.feature_cache.file import Existing
from equida.data.transforms import Transform
from equida.errors import InputError

CLASSES = ("mug", "pen")
TINY: dict[str, Any] = {"backbone": "tiny_backbone:net", "progress": False}
PLAIN = Transform("centre-crop", 12, 8, square=False)
SETTINGS = FeatureSettings("toy", "abc", 5, str(PLAIN))
VIEWS = FeatureSettings("toy", "abc", 5, str(PLAIN), (str(Transform("random-crop", 12, 8)),) * 2, 3)


def _folder(root: Path) -> ImageDomain:
    """The files in class folders, images or not."""
    paths = [file.relative_to(root).as_posix() for file in sorted(root.glob("*/*"))]
    labels = [CLASSES.index(path.partition("/")[0]) for path in paths]
    return ImageDomain(root, paths, name=root.name, classes=CLASSES, labels=labels)


class Network:
    """A convolution and a mean; counts the batches and images it sees."""

    def __init__(self, die_after: int | None = None) -> None:
        torch.manual_seed(0)
        self.convolution = nn.Conv2d(3, 5, 3)
        self.batches: list[int] = []
        self.die_after = die_after

    def __call__(self, images: Tensor) -> Tensor:
        if self.die_after is not None and len(self.batches) == self.die_after:
            os.kill(os.getpid(), signal.SIGKILL)
        self.batches.append(len(images))
        with torch.inference_mode():
            pooled: Tensor = self.convolution(images).mean((2, 3))
        return pooled


def _save(path: Path, seed: int, size: tuple[int, int] = (20, 16)) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (*size, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """Twenty-two images of two classes."""
    for number in range(22):
        _save(tmp_path / "shop" / ("mug", "pen")[number % 2] / f"{number:02d}.png", number)
    return tmp_path / "shop"


def _run(
    out: Path,
    *roots: Path,
    settings: FeatureSettings = SETTINGS,
    network: Network | None = None,
    skip: bool = False,
) -> tuple[Extraction, Network]:
    network = network or Network()
    domains = [_folder(root) for root in roots]
    options = ExtractionOptions(batch_size=4, workers=2, skip_unreadable=skip)
    outcome = write_features(out, domains, settings, options, network, Silent())
    return outcome, network


def _opened(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    with safe_open(path, framework="pt") as stored:
        tensors = {key: stored.get_tensor(key) for key in stored.keys()}  # noqa: SIM118
        return tensors, json.loads(stored.metadata()["equida"])


def test_the_file_holds_what_the_network_says_of_each_image(shop: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "shop.safetensors"
    outcome, network = _run(out, shop)
    assert outcome == Extraction(22, 22, (), True)
    assert network.batches == [4] * 6  # the last one is filled up
    tensors, described = _opened(out)
    domain = _folder(shop)
    images = torch.stack([PLAIN(domain[index]) for index in range(22)])
    torch.testing.assert_close(tensors["features"], Network()(images))
    assert domain.labels is not None
    assert tensors["labels"].tolist() == domain.labels.tolist()
    assert tensors["domains"].tolist() == [0] * 22
    assert described["paths"] == [domain.identity(index) for index in range(22)]
    assert described["format"] == 1
    assert described["domains"] == ["shop"]
    assert described["classes"] == ["mug", "pen"]
    assert described["backbone"] == "toy"
    assert described["weights_sha256"] == "abc"
    assert described["dtype"] == "float32"
    assert Transform.parse(described["transform"]) == PLAIN
    assert sorted(file.name for file in out.parent.iterdir()) == [out.name, f"{out.name}.seen"]


def test_digests_that_were_read_before_an_interruption_are_kept(shop: Path, tmp_path: Path) -> None:
    """Before: the call after it read every byte, and forgot what it had read."""
    out, folder = tmp_path / "shop.safetensors", tmp_path / "part"
    folder.mkdir()
    Contents(out, folder, [_folder(shop)], 1, Silent())  # and the process ends here
    Contents(out, folder, [_folder(shop)], 1, Silent()).remember()
    assert out.with_name(f"{out.name}.seen").exists()


def test_the_same_call_again_does_nothing(shop: Path, tmp_path: Path) -> None:
    out = tmp_path / "shop.safetensors"
    _run(out, shop)
    before = out.stat()
    outcome, network = _run(out, shop)
    assert outcome == Extraction(22, 0, (), False)
    assert network.batches == []
    assert (out.stat().st_mtime_ns, out.stat().st_ino) == (before.st_mtime_ns, before.st_ino)


def test_unchanged_files_are_not_read_again_and_touched_ones_are(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "shop.safetensors"
    _run(out, shop)
    os.utime(shop / "mug" / "00.png", ns=(1, 1))
    read: list[str] = []
    whole = Path.open

    def counted(path: Path, *arguments: Any, **options: Any) -> Any:
        read.append(path.name)
        return whole(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", counted)
    outcome, _ = _run(out, shop)
    assert [name for name in read if name.endswith(".png")] == ["00.png"]
    assert outcome == Extraction(22, 0, (), False)


def test_a_changed_image_is_computed_alone(shop: Path, tmp_path: Path) -> None:
    out, fresh = tmp_path / "shop.safetensors", tmp_path / "fresh.safetensors"
    _run(out, shop)
    _save(shop / "pen" / "03.png", 99)
    outcome, network = _run(out, shop)
    assert (outcome.computed, network.batches) == (1, [4])
    _run(fresh, shop)
    assert out.read_bytes() == fresh.read_bytes()


def test_images_that_come_go_or_move_cost_only_what_is_new(shop: Path, tmp_path: Path) -> None:
    out, fresh = tmp_path / "shop.safetensors", tmp_path / "fresh.safetensors"
    _run(out, shop)
    (shop / "mug" / "00.png").unlink()
    (shop / "mug" / "02.png").rename(shop / "pen" / "aa.png")
    _save(shop / "mug" / "zz.png", 77)
    outcome, _ = _run(out, shop)
    assert (outcome.images, outcome.computed) == (22, 1)
    _run(fresh, shop)
    assert out.read_bytes() == fresh.read_bytes()


def test_other_settings_compute_everything(shop: Path, tmp_path: Path) -> None:
    out = tmp_path / "shop.safetensors"
    _run(out, shop)
    for other in (
        FeatureSettings("toy", "def", 5, str(PLAIN)),
        FeatureSettings("toy", "def", 5, str(Transform("centre-crop", 13, 8, square=False))),
        FeatureSettings("toy", "def", 5, str(PLAIN), dtype="float16"),
    ):
        outcome, _ = _run(out, shop, settings=other)
        assert outcome == Extraction(22, 22, (), True)


def test_half_precision_is_the_rounded_single(shop: Path, tmp_path: Path) -> None:
    _run(tmp_path / "single.safetensors", shop)
    half = FeatureSettings("toy", "abc", 5, str(PLAIN), dtype="float16")
    _run(tmp_path / "half.safetensors", shop, settings=half)
    single, _ = _opened(tmp_path / "single.safetensors")
    assert torch.equal(
        _opened(tmp_path / "half.safetensors")[0]["features"], single["features"].half()
    )


def test_views_follow_the_plain_one_and_differ(shop: Path, tmp_path: Path) -> None:
    out = tmp_path / "views.safetensors"
    _run(out, shop, settings=VIEWS)
    _run(tmp_path / "plain.safetensors", shop)
    tensors, described = _opened(out)
    assert tensors["features"].shape == (22, 4, 5)
    plain = _opened(tmp_path / "plain.safetensors")[0]["features"]
    assert torch.equal(tensors["features"][:, 0], plain)
    assert (described["views"], described["seed"]) == (3, 0)
    views = tensors["features"][:, 1:]
    assert (views[:, 0] != views[:, 1]).any(1).sum() > 15
    _run(tmp_path / "again.safetensors", shop, settings=VIEWS)
    assert (tmp_path / "again.safetensors").read_bytes() == out.read_bytes()


def test_several_domains_share_one_file(shop: Path, tmp_path: Path) -> None:
    for number in range(3):
        _save(tmp_path / "desk" / "pen" / f"{number}.png", 50 + number)
    out = tmp_path / "both.safetensors"
    _run(out, tmp_path / "desk", shop)
    tensors, described = _opened(out)
    assert described["domains"] == ["desk", "shop"]
    assert tensors["domains"].tolist() == [0] * 3 + [1] * 22
    _run(tmp_path / "desk.safetensors", tmp_path / "desk")
    alone = _opened(tmp_path / "desk.safetensors")[0]["features"]
    assert torch.equal(tensors["features"][:3], alone)


def test_many_paths_are_a_tensor(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache_file, "MAX_HEADER_PATHS", 100)
    out = tmp_path / "shop.safetensors"
    _run(out, shop)
    tensors, described = _opened(out)
    paths = tensors["paths"].numpy().tobytes().decode().split("\n")
    assert paths == [_folder(shop).identity(index) for index in range(22)]
    assert "paths" not in described
    (shop / "mug" / "00.png").rename(shop / "mug" / "000.png")
    assert _run(out, shop)[0] == Extraction(22, 0, (), True)


def _killed(target: Callable[[], None]) -> None:
    process = multiprocessing.get_context("fork").Process(target=target)
    process.start()
    process.join(60)
    assert process.exitcode == -signal.SIGKILL


@pytest.mark.parametrize("settings", [SETTINGS, VIEWS])
def test_killed_between_batches_it_goes_on_and_the_file_is_identical(
    shop: Path, tmp_path: Path, settings: FeatureSettings
) -> None:
    out, undisturbed = tmp_path / "killed.safetensors", tmp_path / "whole.safetensors"
    per_batch = 1 + settings.views
    _killed(lambda: _run(out, shop, settings=settings, network=Network(2 * per_batch)) and None)
    assert not out.exists()
    _killed(lambda: _run(out, shop, settings=settings, network=Network(per_batch)) and None)
    _, network = _run(out, shop, settings=settings)
    assert len(network.batches) == 3 * per_batch  # of 6: two were kept first, then one
    _run(undisturbed, shop, settings=settings)
    assert out.read_bytes() == undisturbed.read_bytes()


@pytest.mark.parametrize("call", range(1, 10))
def test_killed_while_writing_it_goes_on_and_the_file_is_identical(
    shop: Path, tmp_path: Path, call: int
) -> None:
    """Killed before the n-th fsync, the file cut short: two small files first, that say what the
    images and the settings are, then six batches of the journal, then the feature file."""
    out, undisturbed = tmp_path / "killed.safetensors", tmp_path / "whole.safetensors"

    def child() -> None:
        calls, real = iter(range(1, 100)), os.fsync

        def fsync(number: Any) -> None:
            if next(calls) == call:
                os.ftruncate(number, max(0, os.fstat(number).st_size - 50))
                os.kill(os.getpid(), signal.SIGKILL)
            real(number)

        os.fsync = fsync  # type: ignore[assignment]
        _run(out, shop)

    _killed(child)
    assert not out.exists()
    _, network = _run(out, shop)
    assert len(network.batches) == 6 - min(max(call - 3, 0), 6)
    _run(undisturbed, shop)
    assert out.read_bytes() == undisturbed.read_bytes()
    assert not out.with_name(f"{out.name}.part").exists()


def test_an_image_that_changes_while_the_run_is_down_is_not_mixed_up(
    shop: Path, tmp_path: Path
) -> None:
    out, fresh = tmp_path / "shop.safetensors", tmp_path / "fresh.safetensors"
    _killed(lambda: _run(out, shop, network=Network(3)) and None)
    _save(shop / "mug" / "00.png", 99)
    _run(out, shop)
    _run(fresh, shop)
    assert out.read_bytes() == fresh.read_bytes()


def test_unreadable_images_stop_the_job_with_all_their_names(shop: Path, tmp_path: Path) -> None:
    for name in ("mug/10.png", "pen/13.png", "pen/21.png"):
        (shop / name).write_bytes(b"")
    whole = (shop / "mug" / "04.png").read_bytes()
    (shop / "mug" / "04.png").write_bytes(whole[: len(whole) // 2])
    out, network = tmp_path / "shop.safetensors", Network()
    with pytest.raises(InputError, match="4 of 22 images cannot be read") as error:
        _run(out, shop, network=network)
    for name in ("04.png", "10.png", "13.png", "21.png"):
        assert str(error.value).count(f"{name}: ") == 1
    assert "--skip-unreadable" in str(error.value)
    # The first batch had one, so nothing was computed in vain and nothing is left behind.
    assert network.batches == []
    assert [file.name for file in tmp_path.iterdir()] == ["shop"]


def test_unreadable_images_are_left_out_and_counted(shop: Path, tmp_path: Path) -> None:
    for name in ("mug/04.png", "pen/21.png"):
        (shop / name).write_bytes(b"no image")
    out, fresh = tmp_path / "shop.safetensors", tmp_path / "fresh.safetensors"
    outcome, _ = _run(out, shop, skip=True)
    assert (outcome.images, outcome.computed) == (20, 20)
    assert [Path(name).name for name, _ in outcome.skipped] == ["04.png", "21.png"]
    again, network = _run(out, shop, skip=True)
    assert (again.written, again.skipped, network.batches) == (False, outcome.skipped, [])
    for name in ("mug/04.png", "pen/21.png"):
        (shop / name).unlink()
    _run(fresh, shop)
    assert out.read_bytes() == fresh.read_bytes()


def test_an_unreadable_image_survives_the_kill_as_such(shop: Path, tmp_path: Path) -> None:
    (shop / "mug" / "00.png").write_bytes(b"no image")
    out, undisturbed = tmp_path / "killed.safetensors", tmp_path / "whole.safetensors"
    _killed(lambda: _run(out, shop, skip=True, network=Network(2)) and None)
    outcome, network = _run(out, shop, skip=True)
    assert len(network.batches) == 4
    assert [Path(name).name for name, _ in outcome.skipped] == ["00.png"]
    _run(undisturbed, shop, skip=True)
    assert out.read_bytes() == undisturbed.read_bytes()


def test_two_runs_into_one_file_do_not_mix(shop: Path, tmp_path: Path) -> None:
    out = tmp_path / "shop.safetensors"

    class Nested(Network):
        def __call__(self, images: Tensor) -> Tensor:
            with pytest.raises(InputError, match="another process is at work in"):
                _run(out, shop)
            return super().__call__(images)

    assert _run(out, shop, network=Nested())[0].written


def test_a_full_disk_is_one_line_and_what_was_computed_is_kept(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, fresh, calls, plain = tmp_path / "f.safetensors", tmp_path / "g.safetensors", [], os.fsync

    def full(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == 5:  # the third batch: two small files come first
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        plain(descriptor)

    monkeypatch.setattr(os, "fsync", full)
    said = r"^cannot write into .*f\.safetensors\.part: No space left on device; free some space"
    with pytest.raises(InputError, match=said) as error:
        _run(out, shop)
    assert "\n" not in str(error.value)
    _, network = _run(out, shop)
    assert len(network.batches) < 6
    _run(fresh, shop)
    assert out.read_bytes() == fresh.read_bytes()


def test_features_that_overflow_are_refused(shop: Path, tmp_path: Path) -> None:
    class Large(Network):
        def __call__(self, images: Tensor) -> Tensor:
            return super().__call__(images) * 1e6

    half = FeatureSettings("toy", "abc", 5, str(PLAIN), dtype="float16")
    with pytest.raises(InputError, match="not finite as float16; use --dtype float32"):
        _run(tmp_path / "shop.safetensors", shop, settings=half, network=Large())


def test_a_feature_file_that_is_not_whole_is_replaced(shop: Path, tmp_path: Path) -> None:
    out, fresh = tmp_path / "shop.safetensors", tmp_path / "fresh.safetensors"
    _run(fresh, shop)
    for damage in (b"", fresh.read_bytes()[:-100]):
        out.write_bytes(damage)
        _run(out, shop)
        assert out.read_bytes() == fresh.read_bytes()


def test_what_is_not_a_feature_file_is_never_replaced(shop: Path, tmp_path: Path) -> None:
    out = tmp_path / "model.safetensors"
    save_file({"weight": torch.zeros(3)}, out)
    for precious in (out.read_bytes(), b"not safetensors", b"\xff" * 100):
        out.write_bytes(precious)
        with pytest.raises(InputError, match="is not a file that this command may replace"):
            _run(out, shop)
        assert out.read_bytes() == precious
        assert [file.name for file in tmp_path.iterdir()] == [out.name, "shop"]


def test_wrong_names_and_empty_folders(shop: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected a name in \.safetensors"):
        _run(tmp_path / "shop.npz", shop)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no images in empty"):
        _run(tmp_path / "shop.safetensors", tmp_path / "empty")


MEASURE = """
import resource, sys
from pathlib import Path
import torch
sys.path.insert(0, {tests!r})
from test_feature_cache import PLAIN, Silent, _folder, _save
from equida.data.feature_cache import ExtractionOptions, write_features
from equida.data.feature_cache import FeatureSettings

def peak(count):
    root = Path({root!r}) / str(count)
    for number in range(count):
        _save(root / "mug" / f"{{number:03d}}.png", number)
    settings = FeatureSettings("toy", "abc", 100_000, str(PLAIN))
    network = lambda images: torch.zeros(len(images), 100_000)
    out = root / "f.safetensors"
    options = ExtractionOptions(batch_size=8, workers=1)
    write_features(out, [_folder(root)], settings, options, network, Silent())
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

few, many = peak(40), peak(400)
assert (Path({root!r}) / "400" / "f.safetensors").stat().st_size > 160e6
print(many - few)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kilobytes on Linux only")
def test_memory_does_not_grow_with_the_number_of_images(tmp_path: Path) -> None:
    """160 MB of features of ten times as many images take no 40 MB more."""
    code = MEASURE.format(tests=str(Path(__file__).parent), root=str(tmp_path))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 40


@pytest.mark.usefixtures("own_folder")
@pytest.mark.slow(reason="computes features")
def test_features_of_other_images_are_not_written_over() -> None:
    """Before: `features --out FILE` with another folder or domain left the new one's alone."""
    write_pictures(Path(), ["a", "b"], ["red", "blue"])
    network = TINY | {"out": "f.safetensors"}
    kept = equida.extract_features("a", **network)
    with pytest.raises(InputError, match=r"holds features of other images \(a\), which would be"):
        equida.extract_features("b", **network)
    assert len(feature_domain("f.safetensors")) == len(kept.x)
    Path("a").rename("renamed")
    (Path("renamed") / "red").rename(Path("renamed") / "crimson")
    assert equida.extract_features("renamed", **network).classes == ("blue", "crimson")


@pytest.mark.usefixtures("own_folder")
@pytest.mark.slow(reason="computes features")
def test_features_are_brought_up_to_date_by_the_same_call(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Before: refused, where a domain had no readable image or only new ones."""
    photos = write_pictures(Path("photos"), ["a", "b"], ["red", "blue"])
    for file in (photos / "b").rglob("*.jpg"):
        file.write_bytes(b"broken")
    call = ["features", "photos", "--out", "f.safetensors", "--backbone", "tiny_backbone:net"]
    for _ in range(2):
        assert main([*call, "--skip-unreadable"]) == 0
        assert len(feature_domain("f.safetensors", domain="a")) == 8
    before = np.asarray(feature_domain("f.safetensors", domain="a").values)
    for file in (photos / "a").rglob("*.jpg"):
        whole = file.read_bytes()
        (photos / "b" / file.relative_to(photos / "a")).write_bytes(whole)
        file.write_bytes(whole + b"\0")  # other bytes, the same picture
    assert main(call) == 0
    after = np.asarray(feature_domain("f.safetensors", domain="a").values)
    np.testing.assert_array_equal(before, after)
    # The name alone is not enough: many folders are called "images".
    write_pictures(Path("other"), ["a"], ["green"])
    (Path("other") / "a" / "green").rename(Path("other") / "a" / "lime")
    with pytest.raises(InputError, match=r"holds features of other images \(a\)"):
        equida.extract_features("other/a", out="f.safetensors", **TINY)
    # Nor are names of files, where no image is the same.
    for file in photos.rglob("*.jpg"):
        file.write_bytes(file.read_bytes() + b"\1")
    assert main(call) == 2
    assert "holds features of other images (a, b), which would be lost" in capsys.readouterr().err


@pytest.mark.usefixtures("own_folder")
@pytest.mark.slow(reason="computes features")
@pytest.mark.parametrize("damage", ["owners", "domains"])
def test_a_damaged_feature_file_is_made_again(damage: str) -> None:
    """Before: IndexError, or TypeError."""
    write_pictures(Path(), ["a"], ["red", "blue"])
    file = Path("f.safetensors")
    equida.extract_features("a", out=file, **TINY)
    whole = file.read_bytes()
    if damage == "owners":
        held = Existing(file)
        start = len(held.first) + held._entries["domains"]["data_offsets"][0]
        file.write_bytes(whole[:start] + b"\x07" + whole[start + 1 :])
    else:
        changed = whole.replace(b'\\"domains\\": [\\"a\\"]', b'\\"domains\\": 1234567')
        assert len(changed) == len(whole)
        file.write_bytes(changed)
    equida.extract_features("a", out=file, **TINY)
    assert file.read_bytes() == whole
