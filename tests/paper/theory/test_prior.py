"""Allocations under a prior against every other one."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from equida.paper.theory.prior import cws_sizes, ns_sizes

SHARES = st.lists(st.floats(0.05, 1.0), min_size=2, max_size=4)


def _all_sizes(rows: int, classes: int) -> np.ndarray:
    ranges = itertools.product(range(rows + 1), repeat=classes)
    return np.array([sizes for sizes in ranges if sum(sizes) == rows], dtype=float)


@given(SHARES, st.integers(1, 7), st.floats(0.05, 0.95))
@settings(max_examples=40, deadline=None)
def test_allocations_are_the_best_of_all(shares: list[float], rows: int, r: float) -> None:
    prior = np.array(shares) / sum(shares)
    every, relative = _all_sizes(rows, len(prior)), len(prior) * prior

    def worth(sizes: Any) -> Any:
        return np.sum(relative**r * np.where(sizes > 0, sizes ** (1 - r), 0.0), axis=-1)

    def cost(sizes: Any) -> Any:
        return np.sum((sizes**2 - sizes) / relative, axis=-1)

    cws = np.array(cws_sizes(rows, prior.tolist(), r), dtype=float)
    ns = np.array(ns_sizes(rows, prior.tolist()), dtype=float)
    assert cws.sum() == ns.sum() == rows
    assert worth(cws) == pytest.approx(worth(every).max(), rel=1e-12)
    assert cost(ns) == pytest.approx(cost(every).min(), rel=1e-12)


def test_a_uniform_prior_gives_balance() -> None:
    assert sorted(cws_sizes(8, [1 / 3] * 3, 0.5)) == [2, 3, 3]
    assert sorted(ns_sizes(8, [1 / 3] * 3)) == [2, 3, 3]


def test_aiming_at_shares() -> None:
    shares = [0.5, 0.3, 0.2]
    assert cws_sizes(60, shares, 0.5) == [30, 18, 12]
    assert ns_sizes(60, shares) == [30, 18, 12]
