"""What several tests share: rows in blobs, coloured pictures, a network, and a short recipe."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

BACKBONE = """
import torch
from torch import nn

def net():
    torch.manual_seed(0)
    module = nn.Sequential(
        nn.Conv2d(3, 8, 5, 4), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    )
    module.input_size = (3, 32, 32)
    return module
"""
"""The source of a module with a small network, for `--backbone MODULE:net`."""

SHORT = {"iterations": 4, "evaluate_every": 2, "batch_size": 8}
"""A recipe whose runs take no time."""

SHORT_FLAGS = ["--iterations", "4", "--evaluate-every", "2", "--batch-size", "8", "--quiet"]
"""The same on the command line, without progress."""

CALL: dict[str, Any] = {"recipe_params": SHORT, "progress": False}
"""The same as keywords of a call."""


class Blobs(NamedTuple):
    """Rows of a source, and of a target whose blobs are moved; both have the same labels."""

    source: NDArray[np.float32]
    target: NDArray[np.float32]
    labels: NDArray[np.int64]


def blobs(samples: int = 60) -> Blobs:
    """Four blobs in eight dimensions, and the same ones moved."""
    random = np.random.default_rng(0)
    centres, labels = 2.0 * random.normal(size=(4, 8)), np.arange(samples) % 4
    source, target = (
        (centres[labels] + shift + random.normal(size=(samples, 8))).astype("f4")
        for shift in (0.0, 0.7)
    )
    return Blobs(source, target, labels)


def write_blobs(file: Path) -> Path:
    """A feature file with the domains a and b of `blobs`, and the classes w, x, y and z."""
    a, b, labels = blobs()
    names = np.array(["w", "x", "y", "z"])
    np.savez(file, a_x=a, a_y=labels, b_x=b, b_y=labels, classes=names)
    return file


def write_pictures(
    root: Path, domains: Sequence[str], classes: Sequence[str], count: int = 4
) -> Path:
    """A folder of class folders for each domain: JPEGs whose colour tells the class.

    Args:
        root: where the folders are made.
        domains: their names; the second is brighter than the first.
        classes: at most three, one for each colour.
        count: how many pictures a class has.
    """
    random = np.random.default_rng(0)
    for brighter, domain in enumerate(domains):
        for number, name in enumerate(classes):
            folder = root / domain / name
            folder.mkdir(parents=True)
            colour = np.full(3, 40.0 + 40.0 * brighter)
            colour[number] += 150
            for index in range(count):
                pixels = np.clip(colour + random.normal(0, 30, (40, 48, 3)), 0, 255)
                Image.fromarray(pixels.astype("u1")).save(folder / f"{index}.jpg")
    return root


def touch(root: Path, *names: str) -> Path:
    """Empty files of these names below a folder, which is returned."""
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return root
