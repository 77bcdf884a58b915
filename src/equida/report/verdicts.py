"""Does the paper's claim hold in these runs: paired tests over (task, seed)."""

import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from equida.bench.paper_tables import (
    AVERAGE,
    ELEVEN,
    EQUITY_TABLE,
    R_TABLES,
    RESULTS,
    PaperRow,
    PaperTable,
)
from equida.bench.results import Record, percent, selected
from equida.bench.settings import Setting
from equida.bench.sweep import Variant, make_variant

Outcome = Literal["holds", "does not hold", "undecided", "no runs"]
LEVEL = 0.05
Score = Callable[[Mapping[str, Any]], float | None]


@dataclass(frozen=True)
class PairedTest:
    """Differences of pairs: their mean, its 95 % interval (paired t) and Wilcoxon's p."""

    pairs: int
    difference: float
    interval: tuple[float, float] | None
    p: float | None
    """Two-sided; None of fewer than two pairs."""

    @property
    def outcome(self) -> Outcome:
        """Decided only where the interval leaves 0 out and the signed ranks agree."""
        if self.interval is None or self.p is None or self.p >= LEVEL:
            return "undecided"
        low, high = self.interval
        return "holds" if low > 0 else "does not hold" if high < 0 else "undecided"


@dataclass(frozen=True)
class Verdict:
    """A claim of the paper, and what the runs say of it."""

    claim: str
    benchmark: str
    unit: str
    printed: float | None
    """The same difference in the paper's tables."""
    test: PairedTest | None
    tasks: int = 0
    tasks_for: int = 0
    """Tasks whose mean difference has the claimed sign."""
    seeds: int = 0

    @property
    def outcome(self) -> Outcome:
        return self.test.outcome if self.test else "no runs"


def paired_test(differences: Sequence[float]) -> PairedTest:
    """The test of whether paired differences are above 0.

    >>> paired_test([1.0, 2.0, 1.5, 1.2, 0.8, 1.9]).outcome
    'holds'
    """
    count, mean = len(differences), statistics.fmean(differences)
    if count < 2:
        return PairedTest(count, mean, None, None)
    from scipy import stats

    error = statistics.stdev(differences) / math.sqrt(count)
    half = float(stats.t.ppf(1 - LEVEL / 2, count - 1)) * error
    p = float(stats.wilcoxon(differences).pvalue) if any(differences) else 1.0
    return PairedTest(count, mean, (mean - half, mean + half), p)


def compare(
    claim: str,
    setting: Setting,
    better: Variant,
    worse: Variant,
    score: Score,
    *,
    unit: str = "points",
    printed: float | None = None,
) -> Verdict:
    """The claim that `better` scores above `worse`, over all tasks and seeds that both have."""
    first, second = (_scores(setting.records([variant]), score) for variant in (better, worse))
    differences = {place: first[place] - second[place] for place in first if place in second}
    if not differences:
        return Verdict(claim, setting.benchmark, unit, printed, None)
    by_task: dict[str, list[float]] = {}
    for (task, _), value in differences.items():
        by_task.setdefault(task, []).append(value)
    return Verdict(
        claim,
        setting.benchmark,
        unit,
        printed,
        paired_test(list(differences.values())),
        len(by_task),
        sum(statistics.fmean(values) > 0 for values in by_task.values()),
        len({seed for _, seed in differences}),
    )


def _scores(records: Sequence[Record], score: Score) -> dict[tuple[str, int], float]:
    found = {(r.task, r.seed): score(r.result) for r in records if r.result is not None}
    return {place: value for place, value in found.items() if value is not None}


def verdicts(setting: Setting, select: str) -> list[Verdict]:
    """Every claim of the paper about accuracies, equity and discriminability on one data set."""
    return [*_order(setting, select), *_against_others(setting, select), *_of_r(setting, select)]


def _accuracy(select: str) -> Score:
    return lambda result: percent(result, select)


def _order(setting: Setting, select: str) -> list[Verdict]:
    pairs = [
        ("cwsm", "max_square"),
        ("nsm", "max_square"),
        ("bnm", "max_square"),
        ("max_square", "source_only"),
        ("cwsm", "bnm"),
        ("nsm", "bnm"),
        ("nsm", "cwsm"),
    ]
    return [_pair(setting, select, better, worse) for better, worse in pairs]


def _pair(setting: Setting, select: str, better: str, worse: str, remark: str = "") -> Verdict:
    first, second = Variant(better), Variant(worse)
    printed = _printed(RESULTS.get(setting.benchmark), first, second, AVERAGE)
    claim = f"{first.title} is more accurate than {second.title}{remark}"
    return compare(claim, setting, first, second, _accuracy(select), printed=printed)


def _against_others(setting: Setting, select: str) -> list[Verdict]:
    """BNM, CWSM and NSM against the best, here, of the systems that the paper compares with."""
    means = {}
    for name in ELEVEN[1:7]:
        scores = _scores(setting.records([Variant(name)]), _accuracy(select))
        tasks = {task for task, _ in scores}
        if scores:
            means[name] = (len(tasks), statistics.fmean(scores.values()))
    if not means:
        return []
    best = max(means, key=lambda name: means[name])
    remark = ", the best here of the others compared"
    return [_pair(setting, select, name, best, remark) for name in ("bnm", "cwsm", "nsm")]


def _of_r(setting: Setting, select: str) -> list[Verdict]:
    found = []
    for method in ("cwsm", "nsm"):
        half, one = (make_variant(method, {"r": r}, setting.benchmark) for r in (0.5, 1.0))
        title = Variant(method).title
        table = R_TABLES.get(setting.benchmark)
        found.append(
            compare(
                f"{title}: r=0.5 is more accurate than r=1",
                setting,
                half,
                one,
                _accuracy(select),
                printed=_printed(table, half, one, AVERAGE),
            )
        )
        for name, first, second in (("equity", one, half), ("discriminability", half, one)):
            way = "up" if name == "equity" else "down"
            found.append(
                compare(
                    f"{title}: {name} goes {way} from r=0.5 to r=1",
                    setting,
                    first,
                    second,
                    _measure(name, select),
                    unit="",
                    printed=_printed(EQUITY_TABLE, first, second, name.capitalize())
                    if setting.benchmark == EQUITY_TABLE.benchmark
                    else None,
                )
            )
    return found


def _measure(name: str, select: str) -> Score:
    def score(result: Mapping[str, Any]) -> float | None:
        figures = selected(result, select)
        return None if figures is None else float(figures[name])

    return score


def _printed(
    table: PaperTable | None, better: Variant, worse: Variant, column: str
) -> float | None:
    """The difference of two rows of the paper."""
    if table is None:
        return None
    rows = [_row(table, variant) for variant in (better, worse)]
    if rows[0] is None or rows[1] is None:
        return None
    return round(rows[0].entries[column].value - rows[1].entries[column].value, 3)


def _row(table: PaperTable, variant: Variant) -> PaperRow | None:
    return table.row(variant.method, variant.shown) or table.row(variant.method, variant.overrides)
