"""No loss makes a tensor of all pairs times classes; and the arithmetic of `benchmarks.scale`."""

import pytest
import torch

from benchmarks.scale import FEATURES, Largest, gradients, slope
from equida.losses import nsm
from equida.losses.squares import _nsm_in_logarithms

BATCH, CLASSES = 64, 50
FORMS = gradients(BATCH, CLASSES)


@pytest.mark.parametrize("name", FORMS)
def test_no_loss_makes_a_tensor_larger_than_all_pairs_of_both_batches(name: str) -> None:
    with Largest() as largest:
        found = FORMS[name]()
    assert all(bool(each.isfinite().all()) for each in found)
    assert BATCH < largest.numbers <= 2 * BATCH * max(2 * BATCH, FEATURES)


@pytest.mark.parametrize("with_prior", [False, True])
@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_small_powers_are_those_of_logarithms(scale: float, with_prior: bool) -> None:
    """In float64 products of 1e-200 still count, as the logarithms say."""
    logits = scale * torch.randn(12, 7, generator=torch.Generator().manual_seed(3))
    logits.requires_grad_()
    prior = torch.arange(1.0, 8.0) / 28 if with_prior else None
    value = nsm(logits, r=0.05, prior=prior)
    (gradient,) = torch.autograd.grad(value, logits)
    weights = None if prior is None else (1.0 / (7 * prior)).double()
    expected, slopes = _nsm_in_logarithms(logits.detach().double(), 0.05, 1.0, 0.0, weights)
    torch.testing.assert_close(value.double(), expected, rtol=1e-5, atol=0.0)
    torch.testing.assert_close(gradient.double(), slopes, rtol=1e-4, atol=1e-7)


def test_a_slope_is_the_exponent_of_growth() -> None:
    assert slope({10: 2.0, 100: 200.0}) == pytest.approx(2.0)
    assert slope({10: 3.0, 1000: 3.0}) == pytest.approx(0.0)
    # 5 s to start, and a second for each ten; then the square of it.
    assert slope({0: 5.0, 10: 6.0, 100: 15.0}) == pytest.approx(1.0)
    assert slope({0: 5.0, 10: 6.0, 100: 105.0}) == pytest.approx(2.0)
