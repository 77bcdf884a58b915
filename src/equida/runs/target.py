"""What the result of a run says of its target, in words; no target label is behind any of it."""

from collections.abc import Mapping, Sequence
from typing import Any

from equida.evaluation.harm import IMBALANCED

SKEWED = 0.2
"""Above this distance of predicted shares from equal ones, predictions are skewed."""


def target_remarks(result: Mapping[str, Any]) -> list[str]:
    """Warnings and what to expect, a line each; nothing for results that do not say it.

    >>> shares = {"predicted": [0.9, 0.1], "aim": [0.5, 0.5], "agreement": 0.9, "imbalance": 0.21}
    >>> target_remarks({"shares": shares})[0]
    'the target looks imbalanced (W = .21): equal class sizes may hurt; try --prior estimate'
    """
    return [*share_remarks(result), *_harm_remarks(result), *_expectation(result)]


def share_remarks(result: Mapping[str, Any]) -> list[str]:
    """What the class shares of the target look like, where that calls for a word."""
    shares = result.get("shares") or {}
    if "imbalance" not in shares:
        return []
    imbalance = float(shares["imbalance"])
    if imbalance > IMBALANCED:
        looks = f"the target looks imbalanced (W = {_short(imbalance)})"
        if shares.get("aim") is None or distance_from_equal(shares["aim"]) > 1e-6:
            return [looks]
        return [f"{looks}: equal class sizes may hurt; try --prior estimate"]
    if not shares["agreement"] and distance_from_equal(shares["predicted"]) > SKEWED:
        return [
            "cannot tell whether the target is imbalanced: predicted classes differ in size, but"
            " two estimates of their shares disagree"
        ]
    return []


def distance_from_equal(shares: Sequence[float]) -> float:
    """Half the sum of the distances of shares from equal ones, in [0, 1).

    >>> distance_from_equal([0.75, 0.25])
    0.25
    """
    return 0.5 * sum(abs(share - 1 / len(shares)) for share in shares)


def _harm_remarks(result: Mapping[str, Any]) -> list[str]:
    harm = result.get("harm")
    if not harm:
        return []
    before, after = harm["source_only"], harm["adapted"]
    remarks = []
    if harm["levelled"]:
        remarks.append(
            f"adaptation may have hurt: equity rose from {before['equity']:.2f} (source only) to"
            f" {after['equity']:.2f} on a target that looks imbalanced"
        )
    if harm["collapsed"]:
        remarks.append(
            f"adaptation may have hurt: predictions are sure, but equity fell from"
            f" {before['equity']:.2f} (source only) to {after['equity']:.2f}: classes are left out"
        )
    return remarks


def _expectation(result: Mapping[str, Any]) -> list[str]:
    found = result.get("calibration")
    if not found:
        return []
    return [
        f"confidences, calibrated on the source (temperature {found['temperature']:.2f}), promise"
        f" {100 * found['expected_accuracy']:.0f} % right; under a shift that is optimistic"
    ]


def _short(value: float) -> str:
    return f"{value:.2f}".lstrip("0")
