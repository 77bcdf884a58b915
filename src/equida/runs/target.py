"""What the result of a run says of its target, in words; no target label is behind any of it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from equida.errors import counted
from equida.evaluation.harm import IMBALANCED, SOURCE_ONLY, START

SKEWED = 0.2
"""Above this distance of predicted shares from equal ones, predictions are skewed."""
NEARLY_EQUAL = 0.01
"""Up to this distance, shares count as equal ones: recorded shares are rounded."""
SHOWN = 4
"""The terminal names so many classes, and sums up the others where these are two or more."""


def target_remarks(result: Mapping[str, Any], advice: str = "--prior estimate") -> list[str]:
    """Warnings and what to expect, a line each; nothing for results that do not say it.

    Args:
        result: the content of a result.json.
        advice: how the reader asks for estimated shares.

    >>> shares = {"predicted": [0.9, 0.1], "aim": [0.5, 0.5], "agreement": 0.9, "imbalance": 0.21}
    >>> target_remarks({"shares": shares})[0]
    'the target looks imbalanced (W = .21): equal class sizes may hurt; try --prior estimate'
    """
    return [*share_remarks(result, advice), *_harm_remarks(result), *_expectation(result)]


def share_remarks(result: Mapping[str, Any], advice: str = "--prior estimate") -> list[str]:
    """What the class shares of the target look like, where that calls for a word."""
    shares = result.get("shares") or {}
    if "imbalance" not in shares:
        return []
    imbalance = float(shares["imbalance"])
    if imbalance > IMBALANCED:
        looks = f"the target looks imbalanced (W = {_imbalance_text(imbalance)})"
        if not aims_at_equal_sizes(result):
            return [looks]
        return [f"{looks}: equal class sizes may hurt; try {advice}"]
    aim = shares.get("aim")
    if aim is not None and distance_from_equal(aim) > NEARLY_EQUAL:
        return []  # it was told other shares, or a third estimate was trusted
    if not shares["agreement"] and _most_skewed(result) > SKEWED:
        return [
            "cannot tell whether the target is imbalanced: predicted classes differ in size, but"
            " two estimates of their shares disagree"
        ]
    return []


def _most_skewed(result: Mapping[str, Any]) -> float:
    """How far from equal sizes the predictions are, after adaptation or before it.

    A method that was asked for equal sizes may have made them, whatever the target is like.
    """
    after = distance_from_equal(result["shares"]["predicted"])
    before = (result.get("harm") or {}).get("source_only")
    return max(after, 0.5 * (1.0 - before["equity"])) if before else after


def aims_at_equal_sizes(result: Mapping[str, Any]) -> bool:
    """Whether the method of a run was asked for equal class sizes, by name or by shares."""
    aim = (result.get("shares") or {}).get("aim")
    return aim is not None and distance_from_equal(aim) <= NEARLY_EQUAL


def share_rows(shares: Mapping[str, Any], classes: Sequence[str]) -> list[list[str]]:
    """Class shares in percent as the rows of a small table, the first of which is its head.

    Of many classes it has those whose predicted share is farthest from the estimated one or, where
    there is no estimate, from an equal one; the last row is the sum of the others.

    Args:
        shares: as in a result.json; without predicted shares there are no rows.
        classes: their names.

    >>> head, *rows = share_rows({"predicted": [0.9, 0.1], "aim": [0.5, 0.5]}, ["mug", "pen"])
    >>> head
    ['class shares', 'predicted', 'aimed at']
    >>> rows
    [['mug', '90.0 %', '50.0 %'], ['pen', '10.0 %', '50.0 %']]
    """
    titles = {"predicted": "predicted", "estimated": "estimated", "aim": "aimed at"}
    columns = {title: shares[name] for name, title in titles.items() if shares.get(name)}
    if "predicted" not in columns:
        return []
    count = len(classes)
    wanted = columns.get("estimated", [1 / count] * count)
    apart = [abs(p - w) for p, w in zip(columns["predicted"], wanted, strict=True)]
    shown = sorted(range(count), key=lambda number: -apart[number])
    shown = shown[: SHOWN if count > SHOWN + 1 else count]
    rows = [
        [classes[number], *(_percent(each[number]) for each in columns.values())]
        for number in shown
    ]
    if more := count - len(shown):
        sums = (sum(each) - sum(each[number] for number in shown) for each in columns.values())
        rows.append([f"{more} others", *map(_percent, sums)])
    return [["class shares", *columns], *rows]


def _percent(share: float) -> str:
    return f"{100 * abs(share):.1f} %"


def imbalance_notes(results: Iterable[tuple[str, str, Mapping[str, Any]]]) -> list[str]:
    """At most one line for a table of runs: which targets look imbalanced although methods aim at
    equal class sizes there.

    Args:
        results: method, task and the content of result.json of each run.
    """
    found: dict[str, float] = {}
    methods: dict[str, None] = {}
    for method, task, result in results:
        imbalance = float((result.get("shares") or {}).get("imbalance", 0.0))
        if imbalance > IMBALANCED and aims_at_equal_sizes(result):
            found[task] = max(imbalance, found.get(task, 0.0))
            methods[method] = None
    if not found:
        return []
    tasks = ", ".join(f"{task} (W = {_imbalance_text(value)})" for task, value in found.items())
    return [
        f"The target looks imbalanced: {tasks}. Equal class sizes may hurt there"
        f" ({', '.join(methods)}); try the prior 'estimate'."
    ]


def distance_from_equal(shares: Sequence[float]) -> float:
    """Half the sum of the distances of shares from equal ones, in [0, 1).

    >>> distance_from_equal([0.75, 0.25])
    0.25
    """
    return 0.5 * sum(abs(share - 1 / len(shares)) for share in shares)


def _harm_remarks(result: Mapping[str, Any]) -> list[str]:
    harm = result.get("harm")
    if not harm or result.get("method") == "source_only":  # which adapts nothing
        return []
    before, after = harm["source_only"], harm["adapted"]
    beside = START if harm.get("compared_with") == START else SOURCE_ONLY
    remarks = []
    if harm["levelled"]:
        remarks.append(
            f"adaptation may have hurt: equity rose from {before['equity']:.2f} ({beside}) to"
            f" {after['equity']:.2f} on a target that looks imbalanced"
        )
    if harm["collapsed"]:
        remarks.append(
            f"adaptation may have hurt: predictions are sure, but equity fell from"
            f" {before['equity']:.2f} ({beside}) to {after['equity']:.2f}: classes are left out"
        )
    return remarks


def _expectation(result: Mapping[str, Any]) -> list[str]:
    found, missing = result.get("calibration"), result.get("uncalibrated")
    if missing:
        why = _why_uncalibrated(missing["reason"], missing["seen"], missing["needed"])
        return [f"confidences are not calibrated{why and ': '}{why}"]
    if not found:  # nobody asked for it, or a record of an earlier version
        return []
    return [
        f"confidences, calibrated on the source (temperature {found['temperature']:.2f}), promise"
        f" {100 * found['expected_accuracy']:.0f} % right; under a shift that is mostly optimistic"
    ]


def _why_uncalibrated(reason: str, seen: int, needed: int) -> str:
    is_or_are, held_out = "is" if seen == 1 else "are", counted(seen, "held-out source sample")
    left = f"{counted(seen, 'sample')} would be left"
    return {
        "no source": "there are no source samples to hold out",
        "none held out": "no source samples were held out; --holdout 0.2 holds a fifth of them out",
        "few held out": f"there {is_or_are} {held_out}, and it takes at least {needed:,}",
        "few left": f"with source samples held out, {left}, fewer than a batch of {needed:,}",
    }.get(reason, "")


def _imbalance_text(value: float) -> str:
    """With two digits; with more where these would hide that it is not the limit itself."""
    digits = next((n for n in (2, 3, 4) if float(f"{value:.{n}f}") != IMBALANCED), 2)
    return f"{value:.{digits}f}".lstrip("0")
