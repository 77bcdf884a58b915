"""The sentences at the head of the page: what adaptation gains, and what the runs can tell."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from equida.errors import counted, enumerated
from equida.report.page.content import PageContent, ShownGroup
from equida.runs.significance import Outcome, paired_test
from equida.runs.table import Cell, heading
from equida.runs.variant import Variant

MOST_NAMES = 4
"""Where there are more systems, a sentence names the first ones and counts the others."""


@dataclass(frozen=True)
class _Standing:
    """The mean accuracy of a system at the last step."""

    variant: Variant
    label: str
    cell: Cell

    @property
    def mean(self) -> float:
        assert self.cell.mean is not None
        return self.cell.mean


def headlines(content: PageContent) -> list[str]:
    """One sentence for each group in which at least two systems have finished all tasks."""
    found = [(group, _sentence(group)) for group in content.groups]
    return [f"{group.title}: {text}" for group, text in found if text]


def _sentence(group: ShownGroup) -> str | None:
    cells = [(variant, group.mean_accuracy(variant, "last")) for variant in group.variants]
    standings = [
        _Standing(variant, group.label(variant), cell)
        for variant, cell in cells
        if cell.mean is not None
    ]
    if len(standings) < 2:
        return None
    count = len(group.tasks)
    scope = f"over {count} tasks" if count > 1 else f"on {heading(group.tasks[0])}"
    best = max(standings, key=lambda one: one.mean)
    others = [one for one in standings if one is not best]
    if best.cell.count == 1:
        return _of_one_seed(best, others, scope)
    text = (
        f"{best.label} has the highest mean accuracy at the last step, "
        f"{best.mean:.1f} ± {best.cell.deviation:.1f} % {scope}"
    )
    gain = _gain(best, others)
    if gain:
        text += f", {gain} above source only"
    return f"{text}{_comparison(group, best, others)}."


def _of_one_seed(best: _Standing, others: Sequence[_Standing], scope: str) -> str:
    """What one seed shows; it ranks nothing."""
    gain = _gain(best, others)
    if best.variant.method == "source_only":
        text = f"no adaptation does better than source only, {best.mean:.1f} % {scope}"
    elif gain:
        text = f"adaptation gains up to {gain} over source only {scope} ({best.label}, "
        text += f"{best.mean:.1f} %)"
    else:
        worst = min(one.mean for one in others)
        text = f"accuracies range from {worst:.1f} to {best.mean:.1f} % {scope}"
    return f"{text}, at the last step; one seed does not rank systems."


def _gain(best: _Standing, others: Sequence[_Standing]) -> str:
    """How far the best is above source only; "" where source only is not among the others."""
    base = [one.mean for one in others if one.variant.method == "source_only"]
    return f"{best.mean - max(base):.1f} points" if base else ""


def _comparison(group: ShownGroup, best: _Standing, others: Sequence[_Standing]) -> str:
    """Which systems the best one is ahead of, as far as paired tests can tell.

    The best one of many is chosen by the runs that are then tested: each p counts as often as there
    are pairs of systems.
    """
    found: dict[tuple[Outcome, int], list[str]] = defaultdict(list)
    tests = math.comb(len(others) + 1, 2)
    for other in others:
        found[_outcome(group, best.variant, other.variant, tests)].append(other.label)
    open_cases = {key: names for key, names in found.items() if key[0] != "holds"}
    if not open_cases:
        return ", and is ahead of all others"
    ahead = [name for key, names in found.items() if key[0] == "holds" for name in names]
    text = f", and is ahead of {enumerated(ahead, MOST_NAMES)}" if ahead else ""
    for (outcome, pairs), names in open_cases.items():
        text += f"; {_reason(outcome, pairs)} {enumerated(names, MOST_NAMES)}"
    return text


def _reason(outcome: Outcome, pairs: int) -> str:
    seen = counted(pairs, "pair of runs", "pairs of runs")
    if outcome == "too few pairs":
        return f"{seen} {'is' if pairs == 1 else 'are'} too few to tell it apart from"
    if outcome == "does not hold":
        return f"in the {seen} that it shares with them, it is behind"
    return f"{seen} cannot tell it apart from"


def _outcome(group: ShownGroup, best: Variant, other: Variant, tests: int) -> tuple[Outcome, int]:
    """The test over the tasks and seeds that both have, and how many these are."""
    pairs = group.runs.differences(best, other, lambda entry: entry.accuracy("last"))
    if not pairs:
        return "too few pairs", 0
    return paired_test(list(pairs.values())).outcome_among(tests), len(pairs)
