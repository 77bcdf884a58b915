"""The golden numbers of the original implementations, as tensors.

They are values and gradients in float64 that the original code of each loss gives for fixed inputs;
`origin` in every entry names repository, file and commit.
"""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

FILE = Path(__file__).parents[1] / "data" / "golden_alignment.json.gz"
ENTRIES: dict[str, dict[str, Any]] = json.loads(gzip.decompress(FILE.read_bytes()))


class Golden:
    """One entry: its inputs require grad; `check` compares a value and its gradients."""

    def __init__(self, name: str) -> None:
        self.entry = ENTRIES[name]
        self.params: dict[str, Any] = self.entry["params"]
        self.inputs = {key: _tensor(value) for key, value in self.entry["inputs"].items()}

    def __getitem__(self, key: str) -> Tensor:
        return self.inputs[key]

    def check(self, value: Tensor, constant: float = 0.0, sign: float = 1.0) -> None:
        """The entry's value is sign * value + constant, and the gradients are sign times ours."""
        expected = torch.tensor(self.entry["value"], dtype=torch.float64)
        torch.testing.assert_close(sign * value + constant, expected, rtol=1e-11, atol=1e-12)
        names = list(self.entry["grad"])
        gradients = torch.autograd.grad(
            sign * value, [self[name] for name in names], allow_unused=True
        )
        for name, gradient in zip(names, gradients, strict=True):
            got = torch.zeros_like(self[name]) if gradient is None else gradient
            self._check_gradient(self.entry["grad"][name], got)

    def _check_gradient(self, expected: Any, got: Tensor) -> None:
        if isinstance(expected, list):
            full = torch.tensor(expected, dtype=torch.float64)
            close = 1e-8 * float(full.abs().max()) + 1e-12
            torch.testing.assert_close(got, full, rtol=0.0, atol=close)
        elif "zero_below" in expected:
            assert float(got.abs().max()) < 1e-12
        else:
            rows = torch.tensor(expected["values"], dtype=torch.float64)
            close = 1e-8 * expected["fro_norm"]
            torch.testing.assert_close(got[expected["rows"]], rows, rtol=0.0, atol=close)
            assert float(got.norm()) == pytest.approx(expected["fro_norm"], rel=1e-9)
            assert float(got.abs().sum()) == pytest.approx(expected["abs_sum"], rel=1e-9)


def _tensor(value: Any) -> Tensor:
    if isinstance(value, str):
        name, _, key = value[1:].rsplit("/", 2)
        return _tensor(ENTRIES[name]["inputs"][key])
    if all(isinstance(item, int) for item in value):
        return torch.tensor(value)
    return torch.tensor(value, dtype=torch.float64, requires_grad=True)


@pytest.fixture
def golden() -> Callable[[str], Golden]:
    """`golden(name)` is the entry of that name."""
    return Golden


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes `case` runs for every entry whose name starts with its mark's prefixes."""
    if "case" in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker("golden")
        assert marker, f"{metafunc.function.__name__} takes `case` and names no golden entries"
        names = [name for name in ENTRIES if name.startswith(marker.args)]
        assert names, f"no golden entry starts with {marker.args}"
        metafunc.parametrize("case", [pytest.param(Golden(n), id=n) for n in names])


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "golden(*prefixes): the golden entries that `case` runs over"
    )
