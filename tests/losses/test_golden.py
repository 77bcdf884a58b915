"""Values and gradients of the original implementations.

`tests/data/golden_losses.json.gz` holds numbers only, computed in float64 with the original code:
BNM and FBNM from cuishuhao/BNM and KevinMusgrave/pytorch-adapt, MaxSquare from
ZJULearning/MaxSquareLoss, entropy and IM from tim-learn/SHOT, MCC from
thuml/Transfer-Learning-Library; CWSM and NSM, which have no public code, from the paper's formulas
by complex step and, on extreme inputs, in 50-digit arithmetic.
"""

import gzip
import json
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from equida.losses import (
    bnm,
    cwsm,
    entropy,
    fbnm,
    information_maximization,
    iw_max_square,
    max_square,
    mcc,
    nsm,
)

FILE = Path(__file__).parents[1] / "data" / "golden_losses.json.gz"


@cache
def golden() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(gzip.decompress(FILE.read_bytes()))
    return data


LOSSES: dict[str, Callable[..., Tensor]] = {
    "bnm_over_B": bnm,
    "bnm_official": lambda z: bnm(z, normalize="min"),
    "bnm_readme": lambda z: bnm(z, normalize="sum"),
    "fbnm_official": fbnm,
    "maxsquare_official": lambda z: max_square(z) / (2 * z.shape[1]),
    "iw_maxsquare_official": iw_max_square,
    "mcc_tllib": mcc,
    "cwsm": cwsm,
    "nsm": nsm,
    "ent_shot": entropy,
    "im_shot": information_maximization,
}
# The originals add 1e-5 inside the logarithm; ours do not. -p log(p + e) differs from -p log p by
# less than e for each entry, and its derivative by the logit by less than 3 e.
CONSTANT_INSIDE_LOG = 1e-5
KINDS = sorted({entry["name"].split("/")[0] for entry in golden()["entries"]})


def loss_of(kind: str) -> Callable[..., Tensor]:
    return LOSSES[kind.split("_r")[0] if kind.startswith(("cwsm", "nsm")) else kind]


def assert_gradient(gradient: Tensor, expected: Any, relative: float, absolute: float) -> None:
    if expected is None:
        return
    if isinstance(expected, list):
        values = torch.tensor(expected, dtype=torch.float64)
        limit = relative * values.abs().max().item() + absolute
        assert (gradient - values).abs().max() <= limit
    elif "zero_below" in expected:
        assert gradient.abs().max() <= expected["zero_below"] + absolute
    else:
        values = torch.tensor(expected["values"], dtype=torch.float64)
        limit = relative * values.abs().max().item() + absolute
        assert (gradient[expected["rows"]] - values).abs().max() <= limit
        norm = gradient.norm().item()
        assert norm == pytest.approx(expected["fro_norm"], rel=max(relative, 1e-9), abs=absolute)
        i, j = gradient.shape
        weights = torch.arange(i * j, dtype=torch.float64).cos().view(i, j)
        assert (gradient * weights).sum().item() == pytest.approx(
            expected["dot_cos"], rel=relative, abs=absolute + relative * expected["fro_norm"]
        )


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("kind", KINDS)
def test_values_and_gradients(kind: str, dtype: torch.dtype) -> None:
    entries = [entry for entry in golden()["entries"] if entry["name"].split("/")[0] == kind]
    assert len(entries) == 27
    for entry in entries:
        logits = torch.tensor(golden()["inputs"][entry["input"]], dtype=dtype)
        logits.requires_grad_()
        value = loss_of(kind)(logits, **entry["params"])
        (gradient,) = torch.autograd.grad(value, logits)
        relative, absolute = (1e-8, 1e-12) if dtype == torch.float64 else (2e-5, 1e-6)
        precision = (1e-11, 1e-12) if dtype == torch.float64 else (1e-5, 1e-6)
        if kind in ("ent_shot", "im_shot"):
            absolute = 3 * CONSTANT_INSIDE_LOG
            precision = (0.0, 2 * CONSTANT_INSIDE_LOG * logits.shape[1])
        rel, abs_ = precision
        assert value.item() == pytest.approx(entry["value"], rel=rel, abs=abs_), entry["name"]
        assert_gradient(gradient.double(), entry["grad"], relative, absolute)


def test_every_kind_is_mapped_and_uniform_values_of_the_reference() -> None:
    """Figures computed apart from any implementation: uniform and balanced one-hot predictions."""
    assert len(KINDS) == 34
    uniform = torch.zeros(36, 31, dtype=torch.float64)
    assert bnm(uniform, "sum").item() == pytest.approx(-1.0776, abs=5e-5)
    assert cwsm(uniform).item() == pytest.approx(-0.0348, abs=5e-5)
    assert nsm(uniform).item() == pytest.approx(-0.00511, abs=5e-6)
    assert nsm(uniform, r=1.0).item() == pytest.approx(-1 / 36)
    balanced = torch.eye(31, dtype=torch.float64)[torch.arange(36) % 31] * 800
    assert bnm(balanced, "sum").item() == pytest.approx(-33.0711, abs=5e-5)
    assert cwsm(balanced).item() == pytest.approx(-1.0668, abs=5e-5)
    assert nsm(balanced).item() == pytest.approx(-0.78261, abs=5e-6)
    distinct = torch.eye(65, dtype=torch.float64)[:36] * 800
    assert nsm(distinct, alpha=2.0).item() == pytest.approx(-0.5 - 36e-6)
    assert bnm(distinct, "sqrt").item() == pytest.approx(-36 / math.sqrt(36 * 65))
