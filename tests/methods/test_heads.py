"""The heads of SymNets, MCD and MDD: which one is the network's, and what it predicts."""

import pytest
import torch
from torch import Tensor, nn

from equida.alignment import ramp, symmetric_classifier_loss, symmetric_feature_loss
from equida.losses import nsm
from equida.methods import Composite, Output, build_method
from equida.methods.mcd import MCD
from equida.methods.symnets import SymNets


@pytest.fixture
def outputs() -> tuple[nn.Linear, Output, Tensor, Output]:
    torch.manual_seed(0)
    head = nn.Linear(6, 3)
    source, target = torch.randn(2, 5, 6)
    labels = torch.tensor([0, 1, 2, 0, 1])
    return head, Output(source, head(source)), labels, Output(target, head(target))


def test_symnets_has_the_networks_head_as_its_target_classifier(
    outputs: tuple[nn.Linear, Output, Tensor, Output],
) -> None:
    head, source, labels, target = outputs
    method = build_method("symnets", 6, 3, head)
    assert isinstance(method, SymNets)
    joint = [
        torch.cat([method.source_classifier(output.features), output.logits], 1)
        for output in (source, target)
    ]
    terms = method(source, labels, target, 0.25)
    expected = {
        "classifiers": symmetric_classifier_loss(joint[0], labels, joint[1]),
        "features": symmetric_feature_loss(joint[0], labels, joint[1], ramp(0.25)),
    }
    torch.testing.assert_close(terms, expected)
    assert torch.equal(method.predict(target), target.logits)


def test_mcd_predicts_with_the_mean_of_both_heads(
    outputs: tuple[nn.Linear, Output, Tensor, Output],
) -> None:
    head, _, _, target = outputs
    method = build_method("mcd", 6, 3, head)
    assert isinstance(method, MCD)
    second = method.second(target.features)
    assert not torch.allclose(second, target.logits)
    torch.testing.assert_close(method.predict(target), (target.logits + second) / 2)
    composed = build_method("mcd+nsm", 6, 3, head)
    assert not torch.equal(composed.predict(target), target.logits)


@pytest.mark.parametrize("name", ["mcd+nsm", "nsm+mcd"])
def test_beside_mcd_the_mean_that_predicts_is_sharpened(
    name: str, outputs: tuple[nn.Linear, Output, Tensor, Output]
) -> None:
    head, source, labels, target = outputs
    method = build_method(name, 6, 3, head, {"nsm.normalize": "paper"})
    assert isinstance(method, Composite)
    mcd = method.methods["mcd"]
    assert isinstance(mcd, MCD)
    terms = method(source, labels, target, 0.5)
    mean = (head(target.features) + mcd.second(target.features)) / 2
    assert terms["nsm"].item() == pytest.approx(2.0 * nsm(mean).item())
    assert terms["nsm"].item() != pytest.approx(2.0 * nsm(target.logits).item())
    alone = mcd(source, labels, target, 0.5)
    for key, value in alone.items():
        assert terms[key].item() == value.item()


@pytest.mark.parametrize("name", ["mcd", "mcd+nsm", "nsm+mcd"])
def test_the_second_head_learns_the_source_from_the_first_step(
    name: str, outputs: tuple[nn.Linear, Output, Tensor, Output]
) -> None:
    head, source, labels, target = outputs
    method = build_method(name, 6, 3, head)
    full = method(source, labels, target, 0.0)
    for ramp_ in (0.0, 0.25, 1.0):
        terms = method.ramped_terms(source, labels, target, 0.0, ramp_)
        assert set(terms) == set(full) >= {"second", "discrepancy", "balance"}
        for key, term in terms.items():
            weight = 1.0 if key == "second" else ramp_
            assert term.item() == pytest.approx(weight * full[key].item(), abs=1e-12)


@pytest.mark.parametrize("name", ["dann", "cdan", "mdd"])
def test_reversal_grows_with_progress(
    name: str, outputs: tuple[nn.Linear, Output, Tensor, Output]
) -> None:
    head, source, labels, target = outputs
    method = build_method(name, 6, 3, head, {"dropout": 0.0})

    def gradient(progress: float) -> Tensor:
        features = target.features.clone().requires_grad_()
        moved = Output(features, target.logits.detach())
        (term,) = method(source, labels, moved, progress).values()
        (found,) = torch.autograd.grad(term, features)
        return found

    assert not gradient(0.0).any()
    # tanh(5 p) is 0.4621 at p = 0.1 and 0.9999 at the end.
    torch.testing.assert_close(gradient(0.1), 0.4621171573 / 0.9999092043 * gradient(1.0))
    assert gradient(1.0).any()
