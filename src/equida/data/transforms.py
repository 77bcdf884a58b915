"""The image transforms of the protocol, with the results of torchvision's for Pillow images.

The steps are written here rather than taken from torchvision for three reasons: their random
numbers come from a generator that is passed in, so that a sample's augmentation depends neither on
the number of workers nor on the thread that makes it; a transform can be written into a run's
record and compared; and data can be prepared without torchvision. The tests compare them with
torchvision's, bit for bit.
"""

import math
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from equida.data.images import as_mode
from equida.errors import InputError
from equida.files import why_not_a_file

if TYPE_CHECKING:
    from PIL import Image

TrainCrop = Literal["random-crop", "random-resized-crop"]
Kind = Literal[TrainCrop, "centre-crop", "ten-crop"]
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Transform:
    """From an RGB image to a normalised tensor: resize, crop, flip, scale.

    "random-crop": resize, random crop, random flip; "random-resized-crop": resize, random flip,
    crop of 8 to 100 % of the area resized to `crop`; "centre-crop"; "ten-crop": the four corners
    and the centre, then those of the mirrored image, (10, channels, crop, crop).

    Attributes:
        kind: how the crop is taken.
        resize: the side in pixels to which the image is resized first (bilinear).
        crop: the side of the result.
        square: resize both sides to `resize`, as the protocol does; False: resize the shorter side
            and keep the aspect.
        mean: what is subtracted from each channel, for pixels in [0, 1]; one number means a grey
            image.
        std: what each channel is then divided by.
        reduced: decode a JPEG at the smallest scale that is not below `resize`. This takes 0.6 of
            the time for Office-31's webcam images and 0.4 for its dslr images; pixels are off by 1
            of 255 on average, and features (EfficientNet-Lite0) have a cosine of 0.993 or more with
            the exact ones.

    >>> print(Transform("centre-crop", mean=(0.5,), std=(0.5,)))
    centre-crop resize=256 crop=224 square=True mean=0.5 std=0.5 reduced=False
    """

    kind: Kind
    resize: int = 256
    crop: int = 224
    square: bool = True
    mean: tuple[float, ...] = IMAGENET_MEAN
    std: tuple[float, ...] = IMAGENET_STD
    reduced: bool = False

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            known = ", ".join(get_args(Kind))
            raise InputError(f"transform {self.kind!r} does not exist; it is one of: {known}")
        if not 0 < self.crop <= self.resize:
            raise InputError(f"crop is {self.crop}; expected 1 to {self.resize}, the resized side")
        if self.kind == "random-resized-crop" and not self.square:
            raise InputError("random-resized-crop with square=False; expected square=True")
        if len(self.mean) != len(self.std) or len(self.mean) not in (1, 3):
            raise InputError(
                f"mean has {len(self.mean)} numbers and std {len(self.std)}; expected 3, or 1 for"
                " grey images"
            )

    def __str__(self) -> str:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        kind = values.pop("kind")
        for name in ("mean", "std"):
            values[name] = ",".join(map(repr, values[name]))
        return " ".join([kind, *(f"{name}={value}" for name, value in values.items())])

    @classmethod
    def parse(cls, text: str) -> "Transform":
        """The transform whose text (`str(transform)`) is `text`.

        >>> Transform.parse(str(Transform("ten-crop"))) == Transform("ten-crop")
        True
        """
        kind, *pairs = text.split()
        values = dict(pair.split("=", 1) for pair in pairs)
        mean, std = (tuple(map(float, values[name].split(","))) for name in ("mean", "std"))
        return cls(
            kind,  # type: ignore[arg-type]
            int(values["resize"]),
            int(values["crop"]),
            values["square"] == "True",
            mean,
            std,
            values["reduced"] == "True",
        )

    @property
    def random(self) -> bool:
        """Whether two calls may differ."""
        return self.kind.startswith("random")

    def __call__(self, image: "Image.Image", generator: Generator | None = None) -> Tensor:
        """The image as float32, (channels, crop, crop), or (10, ...) for "ten-crop".

        Args:
            image: any Pillow image.
            generator: the source of random numbers; None: torch's global generator.
        """
        pixels = self.pixels(image, generator)
        return self.normalize(pixels[None])[0].contiguous()

    def pixels(self, image: "Image.Image", generator: Generator | None = None) -> Tensor:
        """The cropped image before it is normalised: bytes, (..., crop, crop, channels)."""
        from PIL import Image

        image = _resized(as_mode(image, "L" if len(self.mean) == 1 else "RGB"), self)
        if self.kind == "ten-crop":
            return torch.stack([_bytes(part) for part in _ten_crops(image, self.crop)])
        if self.kind == "centre-crop":
            return _bytes(_centre_crop(image, self.crop))
        if self.kind == "random-crop":
            image = _random_crop(image, self.crop, generator)
        if torch.rand(1, generator=generator) < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        if self.kind == "random-resized-crop":
            image = _random_resized_crop(image, self.crop, generator)
        return _bytes(image)

    def normalize(self, pixels: Tensor) -> Tensor:
        """A batch of `pixels`, (batch, ..., channels), as float32 in channels_last order.

        The bytes are in that order already, so that no element is moved.
        """
        batch = pixels.movedim(-1, -3).to(torch.float32, copy=True)
        shape = (len(self.mean), 1, 1)
        mean, std = torch.tensor(self.mean).view(shape), torch.tensor(self.std).view(shape)
        return batch.div_(255).sub_(mean).div_(std)

    def normalize_planes(self, pixels: NDArray[np.uint8]) -> NDArray[np.float32]:
        """The values of `normalize`, in memory one channel after another.

        Inference engines take them in this order. One thread of numpy computes them, because the
        threads of torch would go on to wait on the cores that the engine needs.
        """
        shape = (len(self.mean), 1, 1)
        mean, std = (np.array(each, np.float32).reshape(shape) for each in (self.mean, self.std))
        batch = np.empty((len(pixels), len(mean), *pixels.shape[1:3]), np.float32)
        for planes, image in zip(batch, pixels, strict=True):
            planes[...] = image.transpose(2, 0, 1)
            planes /= np.float32(255)
            planes -= mean
            planes /= std
        return batch

    def open_reduced(self, path: Path) -> "Image.Image | None":
        """A JPEG decoded at reduced scale, or None where that is not wanted or not possible.

        It is None for a file that cannot be read too: `read_image` then says why.
        """
        from PIL import Image

        if not self.reduced or why_not_a_file(path):
            return None
        try:
            with Image.open(path) as image:
                if image.format != "JPEG" or image.mode not in ("RGB", "L"):
                    return None
                image.draft(image.mode, (self.resize, self.resize))
                return image.convert("RGB")
        except (OSError, ValueError, SyntaxError):
            return None


def train_transform(
    crop: TrainCrop = "random-crop",
    mean: tuple[float, ...] = IMAGENET_MEAN,
    std: tuple[float, ...] = IMAGENET_STD,
    size: int = 224,
) -> Transform:
    """The protocol's training transform, with the crop that a domain asks for (`train_crop`).

    >>> train_transform().resize, train_transform("random-resized-crop").kind
    (256, 'random-resized-crop')
    """
    return Transform(crop, _before_crop(size), size, mean=mean, std=std)


def evaluation_transform(
    mean: tuple[float, ...] = IMAGENET_MEAN,
    std: tuple[float, ...] = IMAGENET_STD,
    size: int = 224,
    *,
    ten_crop: bool = False,
) -> Transform:
    """The protocol's test transform: the centre 224 (or ten crops) of a square of 256."""
    kind: Kind = "ten-crop" if ten_crop else "centre-crop"
    return Transform(kind, _before_crop(size), size, mean=mean, std=std)


def feature_transform(
    mean: tuple[float, ...] = IMAGENET_MEAN,
    std: tuple[float, ...] = IMAGENET_STD,
    size: int = 224,
    *,
    reduced: bool = False,
) -> Transform:
    """The transform for computing features: the centre, once the shorter side is 8/7 of `size`.

    >>> feature_transform(size=224).resize
    256
    """
    return Transform("centre-crop", _before_crop(size), size, False, mean, std, reduced)


def _before_crop(size: int) -> int:
    """The side before the crop: 256 for 224, and the same ratio for networks of another size."""
    return round(size * 256 / 224)


def _bytes(image: "Image.Image") -> Tensor:
    pixels = torch.from_numpy(np.array(image))
    return pixels if pixels.ndim == 3 else pixels[..., None]


def _resized(image: "Image.Image", transform: Transform) -> "Image.Image":
    from PIL import Image

    side, (width, height) = transform.resize, image.size
    size = (side, side)
    if not transform.square:
        longer = int(side * max(width, height) / min(width, height))
        size = (side, longer) if width <= height else (longer, side)
    return image if size == image.size else image.resize(size, Image.Resampling.BILINEAR)


def _cut(image: "Image.Image", left: int, top: int, side: int) -> "Image.Image":
    return image.crop((left, top, left + side, top + side))


def _centre_crop(image: "Image.Image", side: int) -> "Image.Image":
    width, height = image.size
    return _cut(image, round((width - side) / 2.0), round((height - side) / 2.0), side)


def _ten_crops(image: "Image.Image", side: int) -> list["Image.Image"]:
    from PIL import Image

    right, bottom = image.size[0] - side, image.size[1] - side
    corners = [(0, 0), (right, 0), (0, bottom), (right, bottom)]
    crops = []
    for side_of_mirror in (image, image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)):
        crops += [_cut(side_of_mirror, left, top, side) for left, top in corners]
        crops.append(_centre_crop(side_of_mirror, side))
    return crops


def _random_crop(image: "Image.Image", side: int, generator: Generator | None) -> "Image.Image":
    width, height = image.size
    if (width, height) == (side, side):
        return image
    top = int(torch.randint(0, height - side + 1, (1,), generator=generator))
    left = int(torch.randint(0, width - side + 1, (1,), generator=generator))
    return _cut(image, left, top, side)


def _random_resized_crop(
    image: "Image.Image", side: int, generator: Generator | None
) -> "Image.Image":
    from PIL import Image

    width, height = image.size
    left, top, w, h = _random_box(width, height, generator)
    part = image.crop((left, top, left + w, top + h))
    return part.resize((side, side), Image.Resampling.BILINEAR)


def _random_box(width: int, height: int, generator: Generator | None) -> tuple[int, int, int, int]:
    """Left, top, width and height of a box of 8 to 100 % of the area and an aspect of 3/4 to 4/3.

    After ten boxes that do not fit it is the whole image.
    """
    low, high = torch.log(torch.tensor((3.0 / 4.0, 4.0 / 3.0))).tolist()
    for _ in range(10):
        scale = torch.empty(1).uniform_(0.08, 1.0, generator=generator).item()
        aspect = torch.exp(torch.empty(1).uniform_(low, high, generator=generator)).item()
        w = round(math.sqrt(width * height * scale * aspect))
        h = round(math.sqrt(width * height * scale / aspect))
        if 0 < w <= width and 0 < h <= height:
            top = int(torch.randint(0, height - h + 1, (1,), generator=generator))
            left = int(torch.randint(0, width - w + 1, (1,), generator=generator))
            return left, top, w, h
    return 0, 0, width, height
