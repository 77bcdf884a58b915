"""Paired tests, against scipy's own and against counting."""

import itertools

import numpy as np
import pytest
from scipy import stats

from equida.runs.significance import FEWEST_PAIRS, paired_test


def test_the_interval_and_p_are_those_of_scipys_own_tests() -> None:
    generator = np.random.default_rng(0)
    first, second = generator.normal(0.6, 1, 18), generator.normal(0, 1, 18)
    test = paired_test((first - second).tolist())
    expected = stats.ttest_rel(first, second).confidence_interval(0.95)
    assert test.interval == pytest.approx((expected.low, expected.high))
    assert test.p == pytest.approx(stats.wilcoxon(first, second).pvalue)
    assert test.difference == pytest.approx(np.mean(first - second))


def test_a_claim_is_decided_only_by_enough_pairs_of_one_sign() -> None:
    clear = [1.0, 1.2, 0.9, 1.1, 1.3, 0.8]
    assert paired_test(clear).outcome == "holds"
    assert paired_test([-value for value in clear]).outcome == "does not hold"
    assert paired_test(clear, downward=True).outcome == "does not hold"
    assert paired_test([-value for value in clear], downward=True).outcome == "holds"
    assert paired_test(clear[:5]).outcome == "too few pairs"
    # With ties, p may come from an approximation that is too small for five pairs.
    assert paired_test([1.0] * 5).outcome == "too few pairs"
    assert paired_test([1.0, -1.0, 2.0, -2.0, 0.5, -0.4]).outcome == "undecided"
    assert paired_test([1.0]).outcome == "too few pairs"
    assert paired_test([0.0] * 6).outcome == "undecided"


def smallest_p(pairs: int) -> float:
    """Of all signs that n distinct ranks can have, the share as extreme as all of one sign."""
    ranks = range(1, pairs + 1)
    sums = [
        sum(rank for rank, sign in zip(ranks, signs, strict=True) if sign)
        for signs in itertools.product((False, True), repeat=pairs)
    ]
    return 2 * sums.count(0) / len(sums)


def test_six_pairs_are_the_fewest_that_can_decide() -> None:
    assert smallest_p(FEWEST_PAIRS - 1) == 0.0625
    assert smallest_p(FEWEST_PAIRS) == 0.03125


def test_tied_ranks_are_exact_too() -> None:
    """Against an enumeration of all signs; ranks of ties are their mean, as scipy's rankdata."""
    generator = np.random.default_rng(0)
    for _ in range(20):
        differences = generator.integers(-3, 4, 8).astype(float)
        kept = differences[differences != 0]
        ranks = stats.rankdata(np.abs(kept))
        smaller = min(ranks[kept > 0].sum(), ranks[kept < 0].sum())
        sums = [ranks @ signs for signs in itertools.product((0, 1), repeat=len(kept))]
        expected = min(1.0, 2.0 * float(np.mean(np.array(sums) <= smaller)))
        assert paired_test(differences.tolist()).p == pytest.approx(expected)


def test_rounding_breaks_no_ties() -> None:
    """Accuracies in single precision; before, p of the same counts was 0.023 to 0.148."""
    changes = [1] * 8 + [-1]
    expected = paired_test([100.0 * change / 498 for change in changes]).p
    generator = np.random.default_rng(0)
    for _ in range(20):
        starts = generator.integers(200, 400, 9)
        differences = [
            100.0 * float(np.float32(start + change) / np.float32(498))
            - 100.0 * float(np.float32(start) / np.float32(498))
            for start, change in zip(starts, changes, strict=True)
        ]
        assert paired_test(differences).p == expected


def test_shares_are_compared_as_finely_as_percentages() -> None:
    """Before: differences of equity, which is a share, were tied or left out below 5e-5."""
    small = [1e-5, 2e-5, 3e-5, 4e-5, 1e-4, 2e-4]
    assert paired_test(small, one=1.0).p == smallest_p(6)
    percentages = [100.0 * difference for difference in small]
    assert paired_test(percentages).p == smallest_p(6)
