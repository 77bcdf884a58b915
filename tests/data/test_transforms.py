"""Every transform against torchvision's own on Pillow images, bit for bit, from the same seed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from equida.data.transforms import (
    IMAGENET_MEAN,
    IMAGENET_STD,
    Transform,
    evaluation_transform,
    feature_transform,
    train_transform,
)
from equida.errors import InputError
from equida.torchvision_ops import ensure_operators

ensure_operators()
from torchvision import transforms as tv  # noqa: E402

TAIL = [tv.ToTensor(), tv.Normalize(IMAGENET_MEAN, IMAGENET_STD)]
SQUARE = tv.Resize((256, 256))
THEIRS: dict[str, tuple[Transform, Callable[[Image.Image], Any]]] = {
    "random crop": (
        train_transform(),
        tv.Compose([SQUARE, tv.RandomCrop(224), tv.RandomHorizontalFlip(), *TAIL]),
    ),
    "resized crop": (
        train_transform("random-resized-crop"),
        tv.Compose([SQUARE, tv.RandomHorizontalFlip(), tv.RandomResizedCrop(224), *TAIL]),
    ),
    "test": (evaluation_transform(), tv.Compose([SQUARE, tv.CenterCrop(224), *TAIL])),
    "features": (
        feature_transform(),
        tv.Compose([tv.Resize(256), tv.CenterCrop(224), *TAIL]),
    ),
    "ten": (
        evaluation_transform(ten_crop=True),
        tv.Compose(
            [
                SQUARE,
                tv.TenCrop(224),
                lambda crops: torch.stack([TAIL[1](TAIL[0](crop)) for crop in crops]),
            ]
        ),
    ),
}


def _image(width: int, height: int, seed: int = 0) -> Image.Image:
    pixels = np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)
    return Image.fromarray(pixels)


@pytest.mark.parametrize("name", THEIRS)
@pytest.mark.parametrize("size", [(300, 300), (401, 267), (130, 311), (256, 256)])
def test_equals_torchvision_bit_for_bit(name: str, size: tuple[int, int]) -> None:
    ours, theirs = THEIRS[name]
    for seed in range(6):
        image = _image(*size, seed)
        torch.manual_seed(seed)
        expected = theirs(image)
        assert torch.equal(ours(image, torch.Generator().manual_seed(seed)), expected)
        torch.manual_seed(seed)
        assert torch.equal(ours(image), expected)


def test_the_box_that_never_fits_is_the_whole_image(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten scales of 1 with an aspect that does not fit: torchvision falls back, and so do we."""

    def always_high(self: torch.Tensor, low: float, high: float, generator: Any = None) -> Any:
        return self.fill_(high)

    monkeypatch.setattr(torch.Tensor, "uniform_", always_high)
    ours, theirs = THEIRS["resized crop"]
    torch.manual_seed(0)
    expected = theirs(_image(300, 300))
    torch.manual_seed(0)
    assert torch.equal(ours(_image(300, 300)), expected)


def test_grey_images_for_networks_of_one_channel() -> None:
    transform = Transform("centre-crop", 28, 28, mean=(0.5,), std=(0.5,))
    image = _image(28, 28)
    expected = tv.Compose([tv.Grayscale(), tv.ToTensor(), tv.Normalize((0.5,), (0.5,))])(image)
    assert torch.equal(transform(image), expected)


def test_batches_are_in_channels_last_order() -> None:
    transform = evaluation_transform()
    pixels = torch.stack([transform.pixels(_image(300, 300, seed)) for seed in range(2)])
    batch = transform.normalize(pixels)
    assert batch.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(batch[1], transform(_image(300, 300, 1)))


@pytest.mark.parametrize("mean", [(0.485, 0.456, 0.406), (0.1307,)])
def test_planes_are_normalised_as_batches_are(mean: tuple[float, ...]) -> None:
    """Bit for bit, for every byte."""
    std = tuple(0.5 * each for each in mean)
    transform = Transform("centre-crop", 16, 16, mean=mean, std=std)
    pixels = np.arange(256, dtype=np.uint8).reshape(16, 16, 1) + np.zeros_like(mean, np.uint8)
    batch = np.stack([pixels, 255 - pixels, pixels // 2])
    expected = transform.normalize(torch.from_numpy(batch))
    found = transform.normalize_planes(batch)
    assert found.flags.c_contiguous
    assert np.array_equal(found, expected.numpy())


@pytest.mark.parametrize("name", THEIRS)
def test_the_text_of_a_transform_reads_back(name: str) -> None:
    transform = THEIRS[name][0]
    assert Transform.parse(str(transform)) == transform


def test_different_transforms_have_different_texts() -> None:
    variants = [entry[0] for entry in THEIRS.values()]
    variants += [feature_transform(reduced=True), feature_transform(std=(1.0, 1.0, 1.0))]
    assert len({str(variant) for variant in variants}) == len(variants)


def test_larger_networks_get_the_same_share_of_the_image() -> None:
    assert [feature_transform(size=size).resize for size in (224, 240, 260)] == [256, 274, 297]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "crop"}, "transform 'crop' does not exist"),
        ({"kind": "centre-crop", "crop": 300}, "crop is 300; expected 1 to 256"),
        ({"kind": "centre-crop", "mean": (0.5,)}, "mean has 1 numbers and std 3"),
        ({"kind": "random-resized-crop", "square": False}, "expected square=True"),
    ],
)
def test_a_wrong_transform_says_so(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Transform(**arguments)


def test_reduced_decoding_is_smaller_and_close(tmp_path: Path) -> None:
    y, x = np.mgrid[0:1000, 0:1000]
    smooth = np.stack([(x + y) % 256, x // 4, y // 4], -1).astype(np.uint8)
    Image.fromarray(smooth).resize((1000, 1000)).save(tmp_path / "photo.jpg", quality=90)
    transform = feature_transform(reduced=True)
    reduced = transform.open_reduced(tmp_path / "photo.jpg")
    assert reduced is not None
    assert reduced.size == (500, 500)  # 250 would be below 256
    whole = Image.open(tmp_path / "photo.jpg").convert("RGB")
    far = transform.pixels(reduced).int() - feature_transform().pixels(whole).int()
    assert 0 < far.abs().float().mean() < 2.0


def test_reduced_decoding_is_left_to_the_usual_way_elsewhere(tmp_path: Path) -> None:
    _image(600, 600).save(tmp_path / "photo.png")
    _image(600, 600).save(tmp_path / "photo.jpg")
    (tmp_path / "broken.jpg").write_bytes(b"\xff\xd8\xff")
    assert feature_transform(reduced=True).open_reduced(tmp_path / "photo.png") is None
    assert feature_transform(reduced=True).open_reduced(tmp_path / "broken.jpg") is None
    assert feature_transform().open_reduced(tmp_path / "photo.jpg") is None
