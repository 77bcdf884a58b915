"""MCD and MDD against tllib/alignment/{mcd,mdd}.py at c4aa59eb5656 (MCD's authors' code agrees)."""

from typing import Any

import pytest
import torch

from equida.alignment import class_balance, classifier_discrepancy, margin_disparity


@pytest.mark.golden("mcd_discrepancy_tllib")
def test_discrepancy_equals_the_original(case: Any) -> None:
    case.check(classifier_discrepancy(case["logits1"], case["logits2"]))


@pytest.mark.golden("mcd_class_balance_tllib")
def test_class_balance_equals_the_original(case: Any) -> None:
    case.check(class_balance(case["logits1"]))


@pytest.mark.golden("mdd_tllib_margin")
def test_margin_disparity_is_minus_the_original(case: Any) -> None:
    source, source_adversary = case["y_s"], case["y_s_adv"]
    target, target_adversary = case["y_t"], case["y_t_adv"]
    margin = case.params["margin"]
    ours = margin_disparity(source, source_adversary, target, target_adversary, margin)
    case.check(ours, sign=-1.0)


def test_margin_disparity_takes_unequal_batches() -> None:
    generator = torch.Generator().manual_seed(0)
    source, adversary = torch.randn(2, 3, 4, generator=generator)
    few = margin_disparity(source, adversary, source, adversary)
    more = margin_disparity(source.repeat(2, 1), adversary.repeat(2, 1), source, adversary)
    torch.testing.assert_close(few, more)


def test_margin_disparity_is_finite_where_the_adversary_is_sure() -> None:
    logits = torch.tensor([[300.0, 0.0]])
    adversary = torch.tensor([[300.0, 0.0]], requires_grad=True)
    value = margin_disparity(logits, adversary, logits, adversary)
    value.backward()
    assert adversary.grad is not None
    assert bool(value.isfinite())
    assert bool(adversary.grad.isfinite().all())
