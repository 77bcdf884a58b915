"""Whether the paper's claims hold in these runs: paired tests over tasks and seeds."""

import dataclasses
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from equida.data.benchmarks import BENCHMARKS
from equida.evaluation.figures import FIGURES
from equida.experiments.sweep import make_variant
from equida.paper.items import PAPER_SEEDS
from equida.paper.result_tables import R_SWEEP
from equida.paper.tables import ELEVEN, EQUITY_TABLE, R_TABLES, RESULTS, PaperRow, PaperTable
from equida.runs import significance
from equida.runs.commands import bench_command
from equida.runs.entry import Entry
from equida.runs.group import RunGroup
from equida.runs.significance import FEWEST_PAIRS, PairedTest, paired_test
from equida.runs.table import AVERAGE
from equida.runs.variant import Variant

ClaimOutcome = significance.Outcome | Literal["no runs"]
Score = Callable[[Entry], float | None]


@dataclass(frozen=True)
class Verdict:
    """A claim of the paper, and what the runs say about it."""

    claim: str
    benchmark: str
    unit: str
    """"points" of accuracy, or "" for figures from 0 to 1."""
    printed: float | None
    """The same difference in the paper's tables."""
    test: PairedTest | None
    tasks: int = 0
    tasks_for: int = 0
    """The number of tasks whose mean difference has the claimed sign."""
    seeds: int = 0
    methods: tuple[str, ...] = ()
    """The methods that the claim is about."""
    sweep: str = ""
    """The values that the claim compares, as `--sweep` takes them."""
    command: str = ""
    """The command that makes the runs that are missing for a decision."""

    @property
    def outcome(self) -> ClaimOutcome:
        return self.test.outcome if self.test else "no runs"

    @property
    def outcome_phrase(self) -> str:
        """The outcome, with the count where there are too few pairs to decide."""
        if self.test is None or self.outcome != "too few pairs":
            return self.outcome
        return f"too few pairs ({self.test.pairs}; at least {FEWEST_PAIRS} are needed)"


def judge(
    claim: str,
    group: RunGroup,
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
    differences = group.differences(first, second, score)
    methods = tuple(dict.fromkeys((first.method, second.method)))
    verdict = Verdict(claim, _benchmark(group), unit, printed, None, methods=methods, sweep=sweep)
    if not differences:
        return verdict
    by_task: dict[str, list[float]] = {}
    for (task, _), value in differences.items():
        by_task.setdefault(task, []).append(value)
    means = [statistics.fmean(values) for values in by_task.values()]
    return dataclasses.replace(
        verdict,
        test=paired_test(
            list(differences.values()), downward=downward, one=100.0 if unit == "points" else 1.0
        ),
        tasks=len(by_task),
        tasks_for=sum(mean < 0 if downward else mean > 0 for mean in means),
        seeds=len({seed for _, seed in differences}),
    )


def _benchmark(group: RunGroup) -> str:
    """The name of the data set, which all of the paper's runs have."""
    assert group.benchmark is not None
    return group.benchmark


def paper_verdicts(group: RunGroup, select: str) -> list[Verdict]:
    """Every claim of the paper about accuracies, equity and discriminability on one data set."""
    claims = [_claims_of_order, _claims_against_others, _claims_of_r]
    return _with_commands([v for claim in claims for v in claim(group, select)], group)


def _with_commands(verdicts: Sequence[Verdict], group: RunGroup) -> list[Verdict]:
    """The verdicts; those with too few pairs name the command that makes more.

    One command makes the runs for all claims on the same sweep.
    """
    undecidable = [v for v in verdicts if v.outcome in ("too few pairs", "no runs")]
    tasks = len(BENCHMARKS[_benchmark(group)].tasks)
    commands = {}
    for sweep in {verdict.sweep for verdict in undecidable}:
        named = {m for verdict in undecidable if verdict.sweep == sweep for m in verdict.methods}
        commands[sweep] = bench_command(
            _benchmark(group),
            group,
            group.root,
            methods=",".join(method for method in ELEVEN if method in named),
            sweeps=(sweep,) if sweep else (),
            seeds=max(PAPER_SEEDS, math.ceil(FEWEST_PAIRS / tasks)),
        )
    return [
        dataclasses.replace(v, command=commands[v.sweep]) if v in undecidable else v
        for v in verdicts
    ]


def _accuracy(select: str) -> Score:
    return lambda entry: entry.accuracy(select)


def _claims_of_order(group: RunGroup, select: str) -> list[Verdict]:
    pairs = [
        ("cwsm", "max_square"),
        ("nsm", "max_square"),
        ("bnm", "max_square"),
        ("max_square", "source_only"),
        ("cwsm", "bnm"),
        ("nsm", "bnm"),
        ("nsm", "cwsm"),
    ]
    return [_pair(group, select, better, worse) for better, worse in pairs]


def _pair(group: RunGroup, select: str, better: str, worse: str, remark: str = "") -> Verdict:
    first, second = Variant(better), Variant(worse)
    printed = _printed(RESULTS.get(_benchmark(group)), first, second, AVERAGE)
    claim = f"{first.title} is more accurate than {second.title}{remark}"
    return judge(claim, group, first, second, _accuracy(select), printed=printed)


def _claims_against_others(group: RunGroup, select: str) -> list[Verdict]:
    """BNM, CWSM and NSM against the best, here, of the systems that the paper compares with."""
    means = {}
    for name in ELEVEN[1:7]:
        scores = group.scores(Variant(name), _accuracy(select))
        tasks = {task for task, _ in scores}
        each = [statistics.fmean(v for (t, _), v in scores.items() if t == task) for task in tasks]
        if each:
            means[name] = (len(each), statistics.fmean(each))
    if not means:
        return []
    best = max(means, key=lambda name: means[name])
    remark = ", the best here of the others compared"
    return [_pair(group, select, name, best, remark) for name in ("bnm", "cwsm", "nsm")]


def _claims_of_r(group: RunGroup, select: str) -> list[Verdict]:
    found = []
    for method in ("cwsm", "nsm"):
        half, one = (make_variant(method, {"r": r}, _benchmark(group)) for r in (0.5, 1.0))
        title = Variant(method).title
        table = R_TABLES.get(_benchmark(group))
        found.append(
            judge(
                f"{title}: r=0.5 is more accurate than r=1",
                group,
                half,
                one,
                _accuracy(select),
                printed=_printed(table, half, one, AVERAGE),
                sweep=R_SWEEP,
            )
        )
        own = EQUITY_TABLE if _benchmark(group) == EQUITY_TABLE.benchmark else None
        found += [
            judge(
                f"{title}: {name} goes {way} from r=0.5 to r=1",
                group,
                one,
                half,
                _measure(name, select),
                unit="",
                printed=_printed(own, one, half, FIGURES[name].title),
                downward=way == "down",
                sweep=R_SWEEP,
            )
            for name, way in (("equity", "up"), ("discriminability", "down"))
        ]
    return found


def _measure(name: str, select: str) -> Score:
    return lambda entry: entry.figure(name, select)


def _printed(
    table: PaperTable | None, first: Variant, second: Variant, column: str
) -> float | None:
    """The first row of the paper minus the second."""
    if table is None:
        return None
    rows = [_row(table, variant) for variant in (first, second)]
    if rows[0] is None or rows[1] is None:
        return None
    return round(rows[0].cells[column].value - rows[1].cells[column].value, 3)


def _row(table: PaperTable, variant: Variant) -> PaperRow | None:
    return table.row(variant.method, variant.shown) or table.row(variant.method, variant.overrides)
