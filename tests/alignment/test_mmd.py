"""MMD and JMMD against tllib's numbers (without the constant it adds) and by their properties.

Golden values and gradients: thuml/Transfer-Learning-Library, tllib/alignment/{dan,jan}.py at
c4aa59eb5656.
"""

from typing import Any

import pytest
import torch

from equida.alignment import joint_mmd, mmd
from equida.alignment.mmd import Estimator


@pytest.mark.golden("dan_tllib_")
def test_mmd_equals_tllib_up_to_its_constant(case: Any) -> None:
    value = mmd(case["source"], case["target"], case.params["estimator"])
    case.check(value, constant=case.params["constant_added"])


@pytest.mark.golden("jan_tllib_")
def test_joint_mmd_equals_tllib_up_to_its_constant(case: Any) -> None:
    logits = case["logits_source"], case["logits_target"]
    value = joint_mmd(case["source"], case["target"], *logits, case.params["estimator"])
    case.check(value, constant=case.params["constant_added"])


@pytest.mark.parametrize("estimator", ["linear", "quadratic"])
def test_expectation_is_zero_for_equal_distributions(estimator: Estimator) -> None:
    generator = torch.Generator().manual_seed(0)
    draws = torch.stack(
        [
            mmd(source, target, estimator)
            for source, target in torch.randn(
                400, 2, 10, 3, dtype=torch.float64, generator=generator
            )
        ]
    )
    assert float(draws.mean().abs()) < 3 * float(draws.std()) / 20


def test_unequal_batches_equal_the_definition() -> None:
    generator = torch.Generator().manual_seed(1)
    source = torch.randn(4, 3, dtype=torch.float64, generator=generator)
    target = torch.randn(7, 3, dtype=torch.float64, generator=generator) + 1.0
    both = torch.cat([source, target])
    scale = sum(float((x - y).square().sum()) for x in both for y in both) / len(both) ** 2

    def k(x: torch.Tensor, y: torch.Tensor) -> float:
        squared = (x - y).square().sum()
        return sum(float(torch.exp(-squared / (2 * 2.0**p * scale))) for p in range(-3, 2))

    expected = (
        sum(k(a, b) for i, a in enumerate(source) for j, b in enumerate(source) if i != j) / 12
        + sum(k(a, b) for i, a in enumerate(target) for j, b in enumerate(target) if i != j) / 42
        - 2 * sum(k(a, b) for a in source for b in target) / 28
    )
    assert float(mmd(source, target)) == pytest.approx(expected, rel=1e-12)


def test_float32_survives_features_far_from_the_origin() -> None:
    generator = torch.Generator().manual_seed(2)
    source, target = torch.randn(2, 12, 8, generator=generator)
    near, far = mmd(source, target), mmd(source + 1000.0, target + 1000.0)
    assert float(far) == pytest.approx(float(near), abs=1e-3)


def test_a_batch_of_equal_rows_is_finite() -> None:
    features = torch.ones(5, 3, requires_grad=True)
    value = mmd(features, torch.ones(5, 3))
    value.backward()
    assert value.item() == 0.0
    assert features.grad is not None
    assert bool(features.grad.isfinite().all())


def test_autocast_changes_nothing() -> None:
    source, target = torch.randn(2, 12, 8, generator=torch.Generator().manual_seed(3))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = mmd(source, target)
    assert torch.equal(inside, mmd(source, target))


@pytest.mark.parametrize(
    ("source", "target", "estimator", "message"),
    [
        ((4, 3), (5, 3), "linear", "equal numbers"),
        ((4, 3), (4, 2), "quadratic", "widths"),
        ((1, 3), (4, 3), "quadratic", "2 or more"),
        ((4, 3), (4, 3), "cubic", "'linear' or 'quadratic'"),
    ],
)
def test_what_mathematics_forbids(
    source: tuple[int, int], target: tuple[int, int], estimator: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        mmd(torch.zeros(source), torch.zeros(target), estimator)


def test_rows_of_features_and_logits_must_agree() -> None:
    with pytest.raises(ValueError, match="same number of rows"):
        joint_mmd(torch.zeros(4, 3), torch.zeros(4, 3), torch.zeros(5, 2), torch.zeros(5, 2))
