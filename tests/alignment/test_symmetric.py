"""SymNets' losses against YBZh/SymNets symnets/trainer.py at d6e0fcf19112."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from equida.alignment import symmetric_classifier_loss, symmetric_feature_loss

KEYS = ("logits_source", "labels_source", "logits_target")


@pytest.mark.golden("symnets_classifier")
def test_classifier_loss_equals_the_original(case: Any) -> None:
    case.check(symmetric_classifier_loss(*(case[key] for key in KEYS)))


@pytest.mark.golden("symnets_feature")
def test_feature_loss_equals_the_original(case: Any) -> None:
    source, labels, target = (case[key] for key in KEYS)
    case.check(symmetric_feature_loss(source, labels, target, case.params["lambda"]))


@pytest.mark.parametrize("tag", ["a", "b", "c"])
def test_single_terms_equal_the_original(tag: str, golden: Callable[[str], Any]) -> None:
    def term(name: str) -> float:
        return float(golden(f"symnets_term_loss_{name}/{tag}").entry["value"])

    case = golden(f"symnets_feature/{tag}")
    source, labels, target = (case[key] for key in KEYS)
    category = symmetric_feature_loss(source, labels, target, 0.0)
    on_target = symmetric_feature_loss(source, labels, target, 1.0) - category
    assert category.item() == pytest.approx(term("category_st_G"), rel=1e-11)
    expected = term("domain_st_G") + term("target_em")
    assert on_target.item() == pytest.approx(expected, rel=1e-10)
    names = ("task_s_Cs", "task_s_Ct", "domain_st_Cst_part1", "domain_st_Cst_part2")
    classifier = symmetric_classifier_loss(source, labels, target)
    assert classifier.item() == pytest.approx(sum(map(term, names)), rel=1e-11)


def test_sure_logits_give_finite_gradients() -> None:
    logits = torch.tensor([[300.0, 0.0, -300.0, 0.0]], requires_grad=True)
    labels = torch.tensor([1])
    value = symmetric_classifier_loss(logits, labels, logits)
    value = value + symmetric_feature_loss(logits, labels, logits)
    value.backward()
    assert logits.grad is not None
    assert bool(logits.grad.isfinite().all())


def test_odd_columns_are_refused() -> None:
    with pytest.raises(ValueError, match="even"):
        symmetric_feature_loss(
            torch.zeros(2, 5), torch.zeros(2, dtype=torch.int64), torch.zeros(2, 5)
        )
