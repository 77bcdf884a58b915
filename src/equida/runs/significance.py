"""Whether one system is better than another: paired tests over tasks and seeds."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

Outcome = Literal["holds", "does not hold", "undecided", "too few pairs"]
LEVEL = 0.05
FEWEST_PAIRS = 6
"""Of n pairs, Wilcoxon's two-sided p is 2 / 2^n at least: 0.0625 of five, 0.031 of six."""


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
        if self.pairs < FEWEST_PAIRS:
            return "too few pairs"
        if self.interval is None or self.p is None or self.p >= LEVEL:
            return "undecided"
        low, high = sorted(-x if self.downward else x for x in self.interval)
        return "holds" if low > 0 else "does not hold" if high < 0 else "undecided"


def paired_test(differences: Sequence[float], *, downward: bool = False) -> PairedTest:
    """The test of whether paired differences are above 0, or below it.

    Fewer than six pairs decide nothing, whatever they are.

    >>> paired_test([1.0, 2.0, 1.5, 1.2, 0.8, 1.9]).outcome
    'holds'
    """
    count, mean = len(differences), statistics.fmean(differences)
    if count < 2:
        return PairedTest(count, mean, None, None, downward)
    from scipy import stats

    error = statistics.stdev(differences) / math.sqrt(count)
    half = float(stats.t.ppf(1 - LEVEL / 2, count - 1)) * error
    p = float(stats.wilcoxon(differences).pvalue) if any(differences) else 1.0
    return PairedTest(count, mean, (mean - half, mean + half), p, downward)
