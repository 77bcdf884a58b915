"""N processes do what one process does with the same global batch.

Two real gloo processes train every registered method; the same is done here on one process.
"""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from lightning_fabric import Fabric
from safetensors.torch import load_file

from equida.methods import METHODS

SCRIPT = Path(__file__).with_name("two_processes.py")
sys.path.insert(0, str(SCRIPT.parent))
from two_processes import weights  # noqa: E402

BATCH_LEVEL = ("bnm", "cwsm", "nsm", "mcc", "im", "dan", "jan", "fbnm", "iw_max_square")


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("two")
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(out)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return out


@pytest.fixture(scope="module")
def alone() -> Fabric:
    return Fabric(accelerator="cpu", devices=1, precision="64-true")


def difference(file: Path, state: dict[str, torch.Tensor]) -> float:
    other = load_file(file)
    assert other.keys() == state.keys()
    return max(float((other[name] - value).abs().max()) for name, value in state.items())


@pytest.mark.parametrize("steps", [1, 10])
@pytest.mark.parametrize("method", METHODS)
def test_weights_equal_those_of_one_process(
    method: str, steps: int, two_processes: Path, alone: Fabric
) -> None:
    """After one step, where they differ by the gradient, and after ten."""
    file = two_processes / f"{method}-{steps}.safetensors"
    assert difference(file, weights(method, steps, alone)) < 1e-6


@pytest.mark.parametrize("method", BATCH_LEVEL)
def test_without_the_gather_they_would_not(method: str, two_processes: Path, alone: Fabric) -> None:
    file = two_processes / f"{method}-apart.safetensors"
    assert difference(file, weights(method, 10, alone)) > 1e-5
