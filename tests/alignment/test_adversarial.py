"""Domain loss, reversal and their schedules against the numbers of thuml/CDAN and tllib.

Golden values and gradients: thuml/CDAN pytorch/{loss,network}.py at c904cd3f2fe0 and
thuml/Transfer-Learning-Library tllib/modules/grl.py, tllib/alignment/mdd.py at c4aa59eb5656.
"""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from equida.alignment import Discriminator, domain_loss, ramp, reverse_gradient


@pytest.mark.golden("dann_thuml")
def test_domain_loss_equals_the_original(case: Any) -> None:
    def discriminate(x: torch.Tensor) -> torch.Tensor:
        x = F.linear(reverse_gradient(x, case.params["grl_coefficient"]), case["W1"], case["b1"])
        x = F.linear(x.relu(), case["W2"], case["b2"]).relu()
        return F.linear(x, case["W3"], case["b3"]).flatten()

    case.check(domain_loss(discriminate(case["source"]), discriminate(case["target"])))


@pytest.mark.golden("dann_thuml")
def test_the_discriminator_is_the_original_one(case: Any) -> None:
    ours = Discriminator(features=5, width=7, dropout=0.0).double()
    weights = [case[key].detach() for key in ("W1", "b1", "W2", "b2", "W3", "b3")]
    ours.load_state_dict(dict(zip(ours.state_dict(), weights, strict=True)))
    value = domain_loss(ours(case["source"]), ours(case["target"]))
    assert value.item() == pytest.approx(case.entry["value"], rel=1e-11)


@pytest.mark.parametrize("name", ["thuml", "tllib", "tllib_mdd"])
def test_schedule_of_the_reversal(name: str, golden: Callable[[str], Any]) -> None:
    case = golden(f"grl_coefficient_{name}")
    high = case.params.get("hi", 1.0)
    ours = [ramp(step / 10_000, high) for step in case["steps"].tolist()]
    assert ours == pytest.approx(case.entry["value"], rel=1e-11, abs=1e-14)


def test_schedule_of_symnets(golden: Callable[[str], Any]) -> None:
    case = golden("symnets_lambda")
    ours = [ramp(epoch / case.params["epochs"]) for epoch in case["epoch"].tolist()]
    assert ours == pytest.approx(case.entry["value"], rel=1e-11, abs=1e-14)


def test_each_domain_counts_half_whatever_its_size() -> None:
    source, target = torch.tensor([2.0]), torch.tensor([1.0, 3.0, -1.0])
    probability = torch.sigmoid(torch.cat([source, target]))
    expected = -0.5 * (probability[0].log() + (1 - probability[1:]).log().mean())
    torch.testing.assert_close(domain_loss(source, target), expected)


def test_a_sure_and_wrong_discriminator_has_a_gradient() -> None:
    logits = torch.tensor([-200.0], requires_grad=True)
    value = domain_loss(logits, torch.zeros(1))
    value.backward()
    assert value.item() == pytest.approx(100.0 + 0.5 * math.log(2))
    assert logits.grad is not None
    assert logits.grad.item() == pytest.approx(-0.5)
