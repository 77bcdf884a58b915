"""What CDAN and CDAN+E condition on, against thuml/CDAN pytorch/loss.py at c904cd3f2fe0."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from equida.alignment import (
    RandomizedMap,
    certainty_weights,
    domain_loss,
    multilinear_map,
    reverse_gradient,
)


@pytest.mark.golden("cdan_", "cdane_")
def test_conditional_loss_equals_the_original(case: Any) -> None:
    mapping = multilinear_map
    if "R_feature" in case.inputs:
        randomized = RandomizedMap(5, 4, width=6).double()
        randomized.by_feature.copy_(case["R_feature"].detach())
        randomized.by_class.copy_(case["R_class"].detach())
        mapping = randomized.__call__

    def discriminate(domain: str) -> torch.Tensor:
        probs = case[f"logits_{domain}"].softmax(1).detach()
        joint = mapping(reverse_gradient(case[domain]), probs)
        return F.linear(joint, case["w"], case["b"]).flatten()

    weights: list[torch.Tensor | None] = [None, None]
    if case.params["entropy_conditioning"]:
        weights = [certainty_weights(case[f"logits_{domain}"]) for domain in ("source", "target")]
    case.check(domain_loss(discriminate("source"), discriminate("target"), *weights))


def test_randomized_map_keeps_inner_products_on_average() -> None:
    torch.manual_seed(0)
    features = torch.randn(4, 6, dtype=torch.float64)
    probs = torch.randn(4, 5, dtype=torch.float64).softmax(1)
    exact = multilinear_map(features, probs)
    mapped = RandomizedMap(6, 5, width=200_000).double()(features, probs)
    torch.testing.assert_close(mapped @ mapped.T, exact @ exact.T, rtol=0.0, atol=0.1)


def test_reversal_of_the_entropy_follows_the_coefficient() -> None:
    logits = torch.tensor([[1.0, 0.0, -1.0], [0.0, 2.0, 0.0]], requires_grad=True)
    (full,) = torch.autograd.grad(certainty_weights(logits, 1.0)[0], logits)
    (half,) = torch.autograd.grad(certainty_weights(logits, 0.5)[0], logits)
    torch.testing.assert_close(half, 0.5 * full)
    assert float(full.abs().max()) > 0
