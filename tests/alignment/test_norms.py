"""Feature norms against the originals.

jihanyang/AFN vanilla/Office31 at d96515b26223, tllib/normalization/afn.py at c4aa59eb5656.
"""

from typing import Any

import pytest
import torch

from equida.alignment import hard_norm, stepwise_norm
from equida.losses import entropy


@pytest.mark.golden("safn")
def test_stepwise_norm_equals_the_original(case: Any) -> None:
    weight = case.params.get("weight", 1.0)
    case.check(weight * stepwise_norm(case["features"], case.params["delta_r"]))


@pytest.mark.golden("hafn")
def test_hard_norm_equals_the_original(case: Any) -> None:
    case.check(case.params["weight"] * hard_norm(case["features"], case.params["radius"]))


@pytest.mark.golden("ent_afn/L36x31_s1", "ent_afn/L8x5_s1")
def test_entropy_of_safn_is_ours_where_nothing_is_masked(case: Any) -> None:
    assert float(case["logits"].detach().softmax(1).min()) >= 1e-6
    case.check(case.params["weight"] * entropy(case["logits"]))


@pytest.mark.golden("ent_afn/L36x31_s5")
def test_entropy_of_safn_is_ours_up_to_the_mask(case: Any) -> None:
    probs = case["logits"].detach().softmax(1)
    masked = torch.where(probs < 1e-6, -probs * probs.log(), 0.0).sum(1).mean()
    ours = case.params["weight"] * (entropy(case["logits"]) - masked)
    assert ours.item() == pytest.approx(case.entry["value"], rel=1e-11)
    assert float(masked) > 0


def test_a_zero_feature_vector_has_a_finite_gradient() -> None:
    features = torch.zeros(2, 3, requires_grad=True)
    stepwise_norm(features).backward()
    assert features.grad is not None
    assert bool(features.grad.isfinite().all())
