"""Whether one system is better than another: paired tests over tasks and seeds."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

Outcome = Literal["holds", "does not hold", "undecided", "too few pairs"]
LEVEL = 0.05
FEWEST_PAIRS = 6
"""Wilcoxon's two-sided p of n pairs is 2 / 2^n at least: 0.0625 of five, 0.031 of six."""
TIED = 5e-7
"""Differences that are so near to each other, as shares of 1, have one rank. Older results hold
accuracies in single precision, whose noise, 2e-7, must not break the ties of equal counts of
samples."""


@dataclass(frozen=True)
class PairedTest:
    """Differences of pairs: their mean, its 95 % interval (paired t) and Wilcoxon's p."""

    pairs: int
    difference: float
    interval: tuple[float, float] | None
    p: float | None
    """Two-sided; None for fewer than two pairs."""
    downward: bool = False
    """Whether the claim is that differences are below 0."""

    @property
    def outcome(self) -> Outcome:
        """Decided only where the interval leaves 0 out and the signed ranks agree."""
        return self.outcome_among(1)

    def outcome_among(self, tests: int) -> Outcome:
        """The same where this is one of several tests: p counts that many times (Bonferroni)."""
        if self.pairs < FEWEST_PAIRS:
            return "too few pairs"
        if self.interval is None or self.p is None or self.p * tests >= LEVEL:
            return "undecided"
        low, high = sorted(-x if self.downward else x for x in self.interval)
        return "holds" if low > 0 else "does not hold" if high < 0 else "undecided"


def paired_test(
    differences: Sequence[float], *, downward: bool = False, one: float = 100.0
) -> PairedTest:
    """The test of whether paired differences are above 0, or below it.

    Fewer than six pairs decide nothing, whatever they are.

    Args:
        differences: one for each pair.
        downward: whether the claim is that they are below 0.
        one: the score that means 100 %: 100 for percentages, 1 for shares.

    >>> paired_test([1.0, 2.0, 1.5, 1.2, 0.8, 1.9]).outcome
    'holds'
    """
    count, mean = len(differences), statistics.fmean(differences)
    if count < 2:
        return PairedTest(count, mean, None, None, downward)
    from scipy import stats

    error = statistics.stdev(differences) / math.sqrt(count)
    half = float(stats.t.ppf(1 - LEVEL / 2, count - 1)) * error
    return PairedTest(
        count, mean, (mean - half, mean + half), _wilcoxon([d / one for d in differences]), downward
    )


def _wilcoxon(differences: Sequence[float]) -> float:
    """The two-sided p of Wilcoxon's signed ranks, exact also where ranks are tied.

    Differences of 0 are left out. What is counted is, over all choices of signs, how often the sum
    of the ranks with a plus is as small as it is, or smaller.
    """
    signed = sorted((d for d in differences if abs(d) > TIED), key=abs)
    ranks = _doubled_ranks([abs(d) for d in signed])
    # The probability of each sum of ranks, doubled, where every sign is a toss of a coin.
    chance = np.zeros(sum(ranks) + 1)
    chance[0] = 1.0
    for rank in ranks:
        chance[rank:] += chance[:-rank].copy()
        chance /= 2.0
    plus = sum(rank for rank, d in zip(ranks, signed, strict=True) if d > 0)
    return min(1.0, 2.0 * float(chance[: min(plus, sum(ranks) - plus) + 1].sum()))


def _doubled_ranks(sizes: Sequence[float]) -> list[int]:
    """Twice the rank of each of the sorted sizes; those that are tied share the mean of theirs.

    >>> _doubled_ranks([0.5, 1.0, 1.0, 2.0])
    [2, 5, 5, 8]
    """
    ranks: list[int] = []
    while len(ranks) < len(sizes):
        first = last = len(ranks)
        while last + 1 < len(sizes) and sizes[last + 1] - sizes[last] <= TIED:
            last += 1
        ranks += [first + last + 2] * (last - first + 1)
    return ranks
