"""Where the minimum lies when the class distribution of the target is known.

Over one-hot matrices the losses depend on the class sizes alone, so that every way to share B rows
among C classes can be tried; the expected optimum is computed from the sizes, not from the losses.
"""

import itertools
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from equida.losses import cwsm, nsm

PRIOR = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)
BATCH = 20


def one_hot_logits(sizes: tuple[int, ...]) -> Tensor:
    rows = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    return torch.eye(len(sizes), dtype=torch.float64)[rows] * 800


def best_sizes(loss: Callable[[Tensor], Tensor]) -> tuple[int, ...]:
    shares = [
        (a, b, BATCH - a - b)
        for a, b in itertools.product(range(BATCH + 1), repeat=2)
        if a + b <= BATCH
    ]
    return min(shares, key=lambda sizes: loss(one_hot_logits(sizes)).item())


@pytest.mark.parametrize("r", [0.25, 0.5, 0.75])
def test_cwsm_aims_at_sizes_in_proportion_to_the_prior(r: float) -> None:
    assert best_sizes(lambda z: cwsm(z, r, PRIOR)) == (10, 6, 4)
    assert best_sizes(lambda z: cwsm(z, r)) in {(7, 7, 6), (7, 6, 7), (6, 7, 7)}


@pytest.mark.parametrize("r", [0.1, 0.5, 1.0])
def test_nsm_aims_at_sizes_less_one_half_in_proportion_to_the_prior_to_the_r(r: float) -> None:
    """Minimising sum_c n_c (n_c - 1) p_c^-r gives n_c = 1/2 + (B - C/2) p_c^r / sum p^r."""
    powers = PRIOR**r
    continuous = 0.5 + (BATCH - len(PRIOR) / 2) * powers / powers.sum()
    found = torch.tensor(best_sizes(lambda z: nsm(z, r, prior=PRIOR)))
    assert (found - continuous).abs().max() < 1


@pytest.mark.parametrize("r", [0.25, 0.5])
def test_nsm_aims_at_given_shares_with_their_power_as_prior(r: float) -> None:
    """To aim at shares q, pass p in proportion to q^(1/r)."""
    powered = PRIOR ** (1 / r)
    assert best_sizes(lambda z: nsm(z, r, prior=powered / powered.sum())) == (10, 6, 4)


@pytest.mark.parametrize("loss", [cwsm, nsm])
def test_one_hot_rows_stay_optimal_with_a_prior(loss: Callable[..., Tensor]) -> None:
    """Ascent from random starts ends at one-hot rows, never above the best of them."""
    best = min(
        loss(one_hot_logits((a, b, 6 - a - b)), prior=PRIOR).item()
        for a in range(7)
        for b in range(7 - a)
    )
    for seed in range(5):
        generator = torch.Generator().manual_seed(seed)
        logits = torch.randn(6, 3, generator=generator, dtype=torch.float64).requires_grad_()
        optimizer = torch.optim.Adam([logits], lr=0.3)
        for _ in range(300):
            optimizer.zero_grad()
            value = loss(logits, prior=PRIOR)
            value.backward()
            optimizer.step()
        assert value.item() >= best - 1e-9
        assert logits.softmax(1).max(1).values.min() > 0.99


@pytest.mark.parametrize("loss", [cwsm, nsm])
def test_the_uniform_prior_is_the_papers_loss(loss: Callable[..., Tensor]) -> None:
    logits = torch.randn(9, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    torch.testing.assert_close(loss(logits, prior=[0.25] * 4), loss(logits))
