"""Does the paper's claim hold in these runs: paired tests over (task, seed)."""

import dataclasses
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
from equida.data.benchmarks import BENCHMARKS
from equida.report.commands import bench_command
from equida.report.exhibit import PAPER_SEEDS

Outcome = Literal["holds", "does not hold", "undecided", "too few pairs", "no runs"]
LEVEL = 0.05
FEWEST_PAIRS = 6
"""Of n pairs, Wilcoxon's two-sided p is 2 / 2^n at least: 0.0625 of five, 0.031 of six."""
R_SWEEP = "r=0.5,1"
Score = Callable[[Mapping[str, Any]], float | None]


@dataclass(frozen=True)
class PairedTest:
    """Differences of pairs: their mean, its 95 % interval (paired t) and Wilcoxon's p."""

    pairs: int
    difference: float
    interval: tuple[float, float] | None
    p: float | None
    """Two-sided; None of fewer than two pairs."""
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
    methods: tuple[str, ...] = ()
    """Those that the claim is about."""
    sweep: str = ""
    """What was varied, as for `--sweep`."""
    command: str = ""
    """What makes the runs that a decision lacks."""

    @property
    def outcome(self) -> Outcome:
        return self.test.outcome if self.test else "no runs"

    @property
    def said(self) -> str:
        """The outcome, with the count where there are too few pairs to decide."""
        if self.test is None or self.outcome != "too few pairs":
            return self.outcome
        return f"too few pairs ({self.test.pairs}; at least {FEWEST_PAIRS} are needed)"


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


def compare(
    claim: str,
    setting: Setting,
    first: Variant,
    second: Variant,
    score: Score,
    *,
    unit: str = "points",
    printed: float | None = None,
    downward: bool = False,
    sweep: str = "",
) -> Verdict:
    """The claim that `first` scores above `second`, over all tasks and seeds that both have.

    Differences are of `first` minus `second`; where the claim is `downward`, it is that they are
    below 0.
    """
    ours, theirs = (_scores(setting.records([variant]), score) for variant in (first, second))
    differences = {place: ours[place] - theirs[place] for place in ours if place in theirs}
    methods = tuple(dict.fromkeys((first.method, second.method)))
    verdict = Verdict(claim, setting.benchmark, unit, printed, None, methods=methods, sweep=sweep)
    if not differences:
        return verdict
    by_task: dict[str, list[float]] = {}
    for (task, _), value in differences.items():
        by_task.setdefault(task, []).append(value)
    means = [statistics.fmean(values) for values in by_task.values()]
    return dataclasses.replace(
        verdict,
        test=paired_test(list(differences.values()), downward=downward),
        tasks=len(by_task),
        tasks_for=sum(mean < 0 if downward else mean > 0 for mean in means),
        seeds=len({seed for _, seed in differences}),
    )


def _scores(records: Sequence[Record], score: Score) -> dict[tuple[str, int], float]:
    found = {(r.task, r.seed): score(r.result) for r in records if r.result is not None}
    return {place: value for place, value in found.items() if value is not None}


def verdicts(setting: Setting, select: str) -> list[Verdict]:
    """Every claim of the paper about accuracies, equity and discriminability on one data set."""
    found = [*_order(setting, select), *_against_others(setting, select), *_of_r(setting, select)]
    return _with_commands(found, setting)


def _with_commands(found: Sequence[Verdict], setting: Setting) -> list[Verdict]:
    """The verdicts, those without enough pairs with the command that makes them.

    One command makes the runs for all claims on the same sweep.
    """
    short = [v for v in found if v.outcome in ("too few pairs", "no runs")]
    tasks = len(BENCHMARKS[setting.benchmark].tasks)
    commands = {}
    for sweep in {verdict.sweep for verdict in short}:
        named = {m for verdict in short if verdict.sweep == sweep for m in verdict.methods}
        commands[sweep] = bench_command(
            setting.benchmark,
            setting,
            setting.root,
            methods=",".join(method for method in ELEVEN if method in named),
            sweeps=(sweep,) if sweep else (),
            seeds=max(PAPER_SEEDS, math.ceil(FEWEST_PAIRS / tasks)),
        )
    return [dataclasses.replace(v, command=commands[v.sweep]) if v in short else v for v in found]


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
        each = [statistics.fmean(v for (t, _), v in scores.items() if t == task) for task in tasks]
        if each:
            means[name] = (len(each), statistics.fmean(each))
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
                sweep=R_SWEEP,
            )
        )
        own = EQUITY_TABLE if setting.benchmark == EQUITY_TABLE.benchmark else None
        found += [
            compare(
                f"{title}: {name} goes {way} from r=0.5 to r=1",
                setting,
                one,
                half,
                _measure(name, select),
                unit="",
                printed=_printed(own, one, half, name.capitalize()),
                downward=way == "down",
                sweep=R_SWEEP,
            )
            for name, way in (("equity", "up"), ("discriminability", "down"))
        ]
    return found


def _measure(name: str, select: str) -> Score:
    def score(result: Mapping[str, Any]) -> float | None:
        figures = selected(result, select)
        return None if figures is None else float(figures[name])

    return score


def _printed(
    table: PaperTable | None, first: Variant, second: Variant, column: str
) -> float | None:
    """The first row of the paper minus the second."""
    if table is None:
        return None
    rows = [_row(table, variant) for variant in (first, second)]
    if rows[0] is None or rows[1] is None:
        return None
    return round(rows[0].entries[column].value - rows[1].entries[column].value, 3)


def _row(table: PaperTable, variant: Variant) -> PaperRow | None:
    return table.row(variant.method, variant.shown) or table.row(variant.method, variant.overrides)
