"""Small data on disk, and the command line as a user has it."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

Equida = Callable[..., "subprocess.Popen[str]"]
CLASSES = ("red, dark", 'gr"een', "blue")

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


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A feature file with the domains a and b: four blobs in eight dimensions, and moved ones."""
    random = np.random.default_rng(0)
    centres = 2.0 * random.normal(size=(4, 8))
    labels = np.arange(60) % 4
    a, b = (centres[labels] + shift + random.normal(size=(60, 8)) for shift in (0.0, 0.7))
    file = tmp_path / "toy.npz"
    names = np.array(["w", "x", "y", "z"])
    np.savez(file, a_x=a.astype("f4"), a_y=labels, b_x=b.astype("f4"), b_y=labels, classes=names)
    return file


@pytest.fixture(scope="session")
def _pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from PIL import Image

    root = tmp_path_factory.mktemp("pictures")
    random = np.random.default_rng(0)
    for domain, shift in (("photos", 0), ("drawings", 40)):
        for number, name in enumerate(CLASSES):
            folder = root / domain / name
            folder.mkdir(parents=True)
            for count in range(4):
                colour = np.full(3, 40.0) + shift
                colour[number] += 150
                pixels = np.clip(colour + random.normal(0, 30, (40, 48, 3)), 0, 255)
                Image.fromarray(pixels.astype("u1")).save(folder / f"{count}.jpg")
    (root / "tiny_backbone.py").write_text(BACKBONE)
    return root


@pytest.fixture
def pictures(_pictures: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folders photos and drawings with three classes, and the module tiny_backbone with net()."""
    monkeypatch.syspath_prepend(str(_pictures))
    return _pictures


@pytest.fixture
def equida() -> Equida:
    """Starts the command in a process of its own."""

    def start(arguments: Sequence[str], cwd: Path | None = None) -> "subprocess.Popen[str]":
        environment = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "80"}
        environment["PYTHONPATH"] = os.pathsep.join(sys.path)
        return subprocess.Popen(
            [sys.executable, "-m", "equida", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=cwd,
        )

    return start
