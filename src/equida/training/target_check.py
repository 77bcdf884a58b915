"""What a run learns of its target without a label: class shares, harm, and what to expect.

Target labels are used nowhere here.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from equida.data import ArrayDomain, Domain, Task
from equida.evaluation.calibration import expected_accuracy, fit_temperature, with_temperature
from equida.evaluation.harm import IMBALANCED, SOURCE_ONLY, START, check_harm
from equida.evaluation.predictions import DomainPredictions
from equida.evaluation.shares import ShareEstimate, shares_from_predictions, source_predictions
from equida.training.config import Aim, RunConfig

MOST_ROWS = 10_000
"""The most samples of a domain that an estimate looks at, evenly spaced."""
FEWEST_HELD_OUT = 20
"""Fewer held-out samples say nothing about confidences."""
HELD_OUT = 0.2
"""The share of the source that the run which fits the temperature keeps apart."""


@dataclass(frozen=True)
class UnadaptedView:
    """What a classifier that was not adapted to the target says of it: one that knows the source
    alone or, without source data, the network that the run started from."""

    samples: NDArray[np.int64]
    """The target samples that were looked at."""
    log_probs: Tensor
    """Its calibrated predictions for them, (samples, classes)."""
    estimate: ShareEstimate
    by: str = SOURCE_ONLY
    """Whose view it is, as remarks call it."""


_VIEWS: WeakKeyDictionary[Domain, WeakKeyDictionary[Domain, UnadaptedView]] = WeakKeyDictionary()


def source_view(task: Task) -> UnadaptedView | None:
    """The source's view of the target, where both are rows of features; None otherwise.

    It takes seconds, and all runs on a task share it: a grid computes it once for each task (and
    worker).
    """
    if not (_is_table(task.source) and _is_table(task.target)) or task.source.labels is None:
        return None
    if task.source is task.target:  # a source-free run
        return None
    views = _VIEWS.setdefault(task.target, WeakKeyDictionary())
    if task.source not in views:
        views[task.source] = _make_view(task)
    return views[task.source]


def looks_imbalanced(task: Task) -> bool:
    """Whether two estimates agree that the target's classes differ in size (W > 0.10).

    Where nothing can be estimated without training, as on images, it is False.
    """
    view = source_view(task)
    return view is not None and view.estimate.imbalance > IMBALANCED


def _make_view(task: Task) -> UnadaptedView:
    source, target = task.source, task.target
    assert isinstance(source, ArrayDomain)
    assert isinstance(target, ArrayDomain)
    assert source.labels is not None
    chosen, samples = evenly_spaced(len(source)), evenly_spaced(len(target))
    rows, others = source.rows(chosen).numpy(), target.rows(samples).numpy()
    probs = source_predictions(rows, source.labels[chosen], others, len(task.classes))
    others -= rows.mean(0)
    del rows  # so that the copies below take their place
    estimate = shares_from_predictions(others, probs)
    return UnadaptedView(samples, _log(probs), estimate)


def start_view(count: int, features: NDArray[Any], probs: NDArray[Any]) -> UnadaptedView:
    """The view of the network that a source-free run starts from.

    Args:
        count: how many samples the target has, of which evenly spaced ones were looked at.
        features: what the network makes of those, (samples, features).
        probs: its calibrated predictions for them, (samples, classes).
    """
    estimate = shares_from_predictions(features, probs)
    return UnadaptedView(evenly_spaced(count), _log(probs), estimate, by=START)


def _log(probs: NDArray[Any]) -> Tensor:
    return torch.from_numpy(probs).clamp_min(1e-30).log().float()


def _is_table(domain: Domain) -> bool:
    return isinstance(domain, ArrayDomain) and len(domain.values.shape) in (2, 3)


def evenly_spaced(count: int) -> NDArray[np.int64]:
    """Indices of at most `MOST_ROWS` of so many samples, evenly spaced."""
    return np.linspace(0, count - 1, min(count, MOST_ROWS)).round().astype(np.int64)


def describe_target(
    predictions: DomainPredictions,
    view: UnadaptedView | None,
    aim: list[float] | None,
    estimated: Aim | ShareEstimate | None = None,
) -> dict[str, Any]:
    """What result.json says of the target's class shares, and whether adaptation may have hurt.

    Args:
        predictions: the run's, for every target sample.
        view: what a classifier that was not adapted says; None where that is not known.
        aim: the class shares that the run was asked to aim at; None for a method without equity,
            and where its parts aim at different ones.
        estimated: an estimate from before training, which stands in where there is no view.
    """
    classes = predictions.log_probs.shape[1]
    counts = torch.bincount(predictions.predicted, minlength=classes)
    shares: dict[str, Any] = {"predicted": _rounded((counts / counts.sum()).tolist()), "aim": aim}
    if view is None:
        if estimated:
            shares |= {"agreement": estimated.agreement, "imbalance": estimated.imbalance}
            if estimated.mean_shares is not None:
                shares["estimated"] = _rounded(list(map(float, estimated.mean_shares)))
        return {"shares": shares}
    estimate = view.estimate
    shares |= {
        "estimated": _rounded(estimate.mean_shares.tolist()),
        "agreement": round(estimate.agreement, 4),
        "imbalance": round(estimate.imbalance, 4),
    }
    mine = predictions.log_probs[torch.from_numpy(view.samples)]
    harm = check_harm(view.log_probs, mine, estimate.imbalance, view.by)
    return {"shares": shares, "harm": dataclasses.asdict(harm)}


@dataclass(frozen=True)
class Uncalibrated:
    """Why confidences are not calibrated; `runs.target` has it in words."""

    reason: Literal["no source", "none held out", "few held out", "few left"]
    seen: int = 0
    """How many samples are held out, or left to train on."""
    needed: int = 0
    """How many of them it takes."""


def calibrate(
    config: RunConfig,
    target: DomainPredictions,
    held_out: DomainPredictions | None,
    refit: Callable[[RunConfig], DomainPredictions | Uncalibrated],
) -> dict[str, Any]:
    """What result.json says of confidences: how they are calibrated, or why they are not.

    Args:
        config: the run.
        target: its predictions for the target.
        held_out: its predictions for source samples that it was not trained on; None where it was
            trained on all of them.
        refit: does the run again with samples held out, and returns the predictions for them, or
            why it does not.
    """
    found: DomainPredictions | Uncalibrated
    if held_out is not None:
        found = held_out
    else:
        recipe = dataclasses.replace(config.recipe, holdout=HELD_OUT)
        found = refit(dataclasses.replace(config, recipe=recipe))
    if isinstance(found, DomainPredictions) and len(found.log_probs) < FEWEST_HELD_OUT:
        found = Uncalibrated("few held out", len(found.log_probs), FEWEST_HELD_OUT)
    if isinstance(found, Uncalibrated):
        return {"calibration": None, "uncalibrated": dataclasses.asdict(found)}
    assert found.labels is not None, "samples of the source have labels"
    temperature = fit_temperature(found.log_probs, found.labels)
    scaled = with_temperature(target.log_probs, temperature)
    calibration = {
        "temperature": round(temperature, 4),
        "held_out": len(found.log_probs),
        "trained_again": held_out is None,
        "confidence": round(expected_accuracy(target.log_probs), 4),
        "expected_accuracy": round(expected_accuracy(scaled), 4),
    }
    return {"calibration": calibration}


def _rounded(shares: list[float]) -> list[float]:
    return [round(share, 5) for share in shares]
