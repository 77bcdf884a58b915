"""Small data on disk, and the command line as a user has it."""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.small_data import BACKBONE, write_blobs, write_pictures

Equida = Callable[..., "subprocess.Popen[str]"]
CLASSES = ("red, dark", 'gr"een', "blue")


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    """A feature file with the domains a and b: four blobs in eight dimensions, and moved ones."""
    return write_blobs(tmp_path / "toy.npz")


@pytest.fixture(scope="session")
def _pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = write_pictures(tmp_path_factory.mktemp("pictures"), ("photos", "drawings"), CLASSES)
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
