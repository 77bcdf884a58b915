"""The search finds what is there, and says so when an optimum is wrong."""

import pytest
import torch
from torch import Tensor

from equida.evaluation import mean_squares, normalized_squares
from equida.paper.theory.checks import QUICK, Context
from equida.paper.theory.search import SearchResult, find_maximum, random_logits


def _search(optimum: float, shape: tuple[int, int] = (3, 2)) -> SearchResult:
    generator = torch.Generator().manual_seed(0)
    return find_maximum(mean_squares, optimum, shape, QUICK, generator, {})


def test_every_ascent_of_mean_squares_ends_at_one_hot_rows() -> None:
    found = _search(1.0)
    assert found.attained
    assert found.one_hot
    assert found.reached == QUICK.starts
    assert [2, 1] in found.sizes
    assert [3, 0] in found.sizes


def test_an_optimum_that_is_too_low_is_exceeded() -> None:
    found = _search(0.9)
    assert found.excess > 0.09
    assert not found.attained


def test_an_optimum_that_is_too_high_is_not_reached() -> None:
    found = _search(1.1)
    assert found.reached == 0
    assert found.gap > 0.09
    assert not found.attained
    assert not found.one_hot


def test_soft_maximisers_are_told_from_one_hot_ones() -> None:
    def flat(probs: Tensor) -> Tensor:
        return probs.sum((-2, -1)) / probs.shape[-2]

    found = find_maximum(flat, 1.0, (3, 2), QUICK, torch.Generator().manual_seed(0), {})
    assert found.attained
    assert not found.one_hot


@pytest.mark.slow(reason="two searches")
def test_the_same_seed_finds_the_same() -> None:
    def once(seed: int) -> SearchResult:
        generator = Context(seed=seed).generator("test")
        return find_maximum(normalized_squares, 1.0, (2, 2), QUICK, generator, {})

    assert once(3) == once(3)
    assert once(3) != once(4)


def test_random_logits_go_from_nearly_uniform_to_nearly_one_hot() -> None:
    probs = random_logits(50, 4, 3, torch.Generator().manual_seed(0), widest=300.0).softmax(-1)
    assert float(probs[0].max()) < 0.5
    assert float(probs[-1].amax(-1).min()) > 0.99
