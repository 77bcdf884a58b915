"""What every test shares: one thread, and the shared reference data where it is present."""

from pathlib import Path

import pytest
import torch

SHARED = Path(__file__).resolve().parents[2] / "shared"


def pytest_configure() -> None:
    # Tiny tensors are slower with many threads, and the suite shares the machine.
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def office31() -> Path:
    """The folder of Office-31; tests that need it skip where it is absent."""
    folder = SHARED / "data" / "office31"
    if not folder.is_dir():
        pytest.skip(f"needs the Office-31 images in {folder}")
    return folder
