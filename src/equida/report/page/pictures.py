"""Small pictures of target samples, as addresses that hold the picture itself."""

import base64
import contextlib
import dataclasses
import io
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from equida.data import ArrayDomain, Domain, ImageDomain, read_image
from equida.data.images import import_pil, is_image_name
from equida.data.spec import DataSpec, open_target
from equida.errors import InputError

SIZE = 72
"""Longest side of a picture, in pixels."""
LIMIT = 1000
"""Pictures of a page; about 2 kB each."""


class Pictures:
    """Pictures of target samples, each made once, up to a limit for the page.

    Args:
        images: folder of the images that features were computed from, if the user names one.
        limit: how many there may be.
    """

    def __init__(self, images: Path | None = None, limit: int = LIMIT) -> None:
        self.images, self.limit = images, limit
        self.made: list[str] = []
        self.refused = 0
        """Pictures that were left out for the limit."""
        self._numbers: dict[tuple[str, str], int | None] = {}
        self._places: dict[str, tuple[Domain, dict[str, int]] | None] = {}

    def of(self, data: DataSpec | None, sample: str) -> int | None:
        """The number of a target sample's picture in `made`, or None where there is none."""
        place = (_place(data), sample)
        if place not in self._numbers:
            if len(self.made) >= self.limit:
                self.refused += 1
                return None
            uri = self._make(data, sample)
            self._numbers[place] = len(self.made) if uri else None
            self.made += [uri] if uri else []
        return self._numbers[place]

    def _make(self, data: DataSpec | None, sample: str) -> str:
        try:
            found = self._find(data, sample)
        except (InputError, OSError, IndexError):
            return ""
        return "" if found is None else _uri(found)

    def _find(self, data: DataSpec | None, sample: str) -> Any:
        if data is None:
            return None
        opened = self._open(data)
        if opened is not None:
            domain, numbers = opened
            if sample in numbers:
                found = domain[numbers[sample]]
                return _from_array(found) if isinstance(found, Tensor) else found
        if self.images is not None and is_image_name(sample):
            file = self.images / sample
            if file.is_file() and file.resolve().is_relative_to(self.images.resolve()):
                return read_image(file)
        return None

    def _open(self, data: DataSpec) -> tuple[Domain, dict[str, int]] | None:
        """The target's samples by name: the run's own, or images that its rows came from."""
        key = _place(data)
        if key not in self._places:
            self._places[key] = None
            places = [data]
            if data.benchmark is not None and self.images is not None:
                places.append(dataclasses.replace(data, data=str(self.images)))
            for place in places:
                # Data that have moved away cost their pictures, not the page.
                with contextlib.suppress(InputError, OSError):
                    domain = open_target(place)
                    if _has_pictures(domain):
                        names = {domain.identity(i): i for i in range(len(domain))}
                        self._places[key] = domain, names
                        break
        return self._places[key]


def _place(data: DataSpec | None) -> str:
    """What two runs with the same target samples share."""
    return "" if data is None else repr((data.benchmark, data.data, data.target, data.protocol))


def _has_pictures(domain: Domain) -> bool:
    if isinstance(domain, ArrayDomain):
        return len(domain.values.shape) == 4
    return isinstance(domain, ImageDomain)


def _from_array(values: Tensor) -> Any:
    """An image of (channels, height, width), its smallest value black and its largest white."""
    low, high = values.min(), values.max()
    scaled = (values - low) / (high - low).clamp_min(1e-12) * 255
    pixels = scaled.round().to(torch.uint8).numpy()
    pil = import_pil()
    if len(pixels) == 3:
        return pil.fromarray(pixels.transpose(1, 2, 0))
    return pil.fromarray(pixels[0])


def _uri(image: Any) -> str:
    """The picture as a data address: PNG for small drawings, WebP for photographs."""
    stream = io.BytesIO()
    image.thumbnail((SIZE, SIZE))
    if image.mode == "L":
        image.save(stream, "PNG", optimize=True)
        kind = "png"
    else:
        image.save(stream, "WEBP", quality=60, method=4)
        kind = "webp"
    return f"data:image/{kind};base64,{base64.b64encode(stream.getvalue()).decode()}"
