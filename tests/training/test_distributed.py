"""N processes do what one process does with the same global batch.

Two real gloo processes train every registered method; the same is done here on one process.
"""

import functools
import sys
from pathlib import Path

import pytest
import torch
from lightning_fabric import Fabric
from safetensors.torch import load_file
from tests.processes import run

SCRIPT = Path(__file__).with_name("two_processes.py")
sys.path.insert(0, str(SCRIPT.parent))
from two_processes import CASES, WHAT, difference, own_loop_gradient, shared_gradient  # noqa: E402

BATCH_LEVEL = (
    *("bnm", "cwsm", "nsm", "mcc", "im", "dan", "jan", "fbnm", "iw_max_square", "mcd"),
    *("cdan+e", "cdan+e, randomised", "cdan+nsm"),
)


@pytest.fixture(scope="module")
def two_processes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("two")
    run([sys.executable, SCRIPT, out], limit=500)  # before the limit of the test
    return out


@functools.cache
def alone(case: str, what: str) -> dict[str, torch.Tensor]:
    fabric = Fabric(accelerator="cpu", devices=1, precision="64-true")
    tensors: dict[str, torch.Tensor] = WHAT[what](case, fabric)
    return tensors


@pytest.mark.parametrize("what", WHAT)
@pytest.mark.parametrize("case", CASES)
def test_two_processes_do_what_one_does(case: str, what: str, two_processes: Path) -> None:
    """The gradient in mid-training, and the weights after ten steps."""
    file = two_processes / f"{case}-{what}-together.safetensors"
    assert difference(load_file(file), alone(case, what)) < 1e-12


@pytest.mark.parametrize("what", WHAT)
@pytest.mark.parametrize("case", BATCH_LEVEL)
def test_without_the_gather_they_would_not(case: str, what: str, two_processes: Path) -> None:
    file = two_processes / f"{case}-{what}-apart.safetensors"
    assert difference(load_file(file), alone(case, what)) > 1e-5


def test_shares_whose_gradients_are_one_tensor(two_processes: Path) -> None:
    """Each process has the gradient of the whole loss, times the processes that will be averaged
    over."""
    shares = [load_file(two_processes / f"shared-{rank}.safetensors") for rank in range(2)]
    alone = shared_gradient(Fabric(accelerator="cpu", devices=1))
    for name, expected in alone.items():
        assert torch.equal(torch.cat([share[name] for share in shares]), 2.0 * expected)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_loss_of_the_global_batch_in_a_loop_of_ones_own(rank: int, two_processes: Path) -> None:
    """NSM of a share is another function: its averaged gradient is not the one of the batch."""
    found = load_file(two_processes / f"own-loop-{rank}.safetensors")
    expected = own_loop_gradient(Fabric(accelerator="cpu", devices=1))["own share"]
    assert torch.allclose(found["global"], expected, rtol=0, atol=1e-12)
    assert not torch.allclose(found["own share"], expected, rtol=0, atol=1e-3)
