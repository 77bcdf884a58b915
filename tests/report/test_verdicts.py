"""Paired tests of the paper's claims."""

import numpy as np
import pytest
from scipy import stats

from equida.report.verdicts import paired_test


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
    assert paired_test(clear[:3]).outcome == "undecided"
    assert paired_test([1.0, -1.0, 2.0, -2.0, 0.5, -0.4]).outcome == "undecided"
    assert paired_test([1.0]).outcome == "undecided"
    assert paired_test([0.0, 0.0, 0.0]).outcome == "undecided"
