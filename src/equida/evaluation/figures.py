"""The figures of an evaluation: what is measured of target predictions, and how it is shown.

One entry of `FIGURES` is all that a new figure needs: runs record it, and tables, curves and the
page show it under its title.
"""

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass

from torch import Tensor

from equida.evaluation.accuracy import accuracy, mean_class_accuracy
from equida.evaluation.measures import discriminability, equity
from equida.evaluation.predictions import DomainPredictions
from equida.evaluation.validators import VALIDATORS
from equida.registry import Registry


@dataclass(frozen=True)
class Figure:
    """One number of an evaluation."""

    name: str
    """As results and logs call it."""
    title: str
    """As a table heads its column."""
    meaning: str
    compute: Callable[[DomainPredictions, DomainPredictions | None], float | None]
    """From the predictions for the target and for source samples, which are None without source
    data; None where what it needs is not there, such as target labels."""
    percent: bool = False
    column: bool = False
    """Whether tables show it behind the accuracies."""

    @property
    def digits(self) -> int:
        """How many decimals are printed."""
        return 1 if self.percent else 3


FIGURES: Registry[Figure] = Registry("figure")


def _of_labels(
    measure: Callable[[Tensor], float], predictions: DomainPredictions | None
) -> float | None:
    """A measure of the confusion matrix; None without labels."""
    confusion = predictions.confusion if predictions else None
    return None if confusion is None else measure(confusion)


def _score_figure(name: str) -> Figure:
    validator = VALIDATORS[name]

    def compute(target: DomainPredictions, source: DomainPredictions | None) -> float | None:
        if validator.lacking(target, source):
            return None
        return validator.score(target, source)

    title, meaning = validator.title, f"label-free score; {validator.meaning}"
    return Figure(name, title[0].upper() + title[1:], meaning, compute)


for _figure in (
    Figure(
        "equity",
        "Equity",
        "1 - sum over classes of |share of target samples predicted as the class - 1/C|: 1 where"
        " all classes are predicted equally often",
        lambda target, _: float(equity(target.log_probs.exp())),
        column=True,
    ),
    Figure(
        "equity_soft",
        "Soft equity",
        "equity with sums of probabilities instead of counts",
        lambda target, _: float(equity(target.log_probs.exp(), "soft")),
    ),
    Figure(
        "discriminability",
        "Discriminability",
        "mean over target samples of the sum of squared probabilities: 1 where every prediction is"
        " certain",
        lambda target, _: float(discriminability(target.log_probs.exp())),
        column=True,
    ),
    Figure(
        "accuracy",
        "Accuracy",
        "share of target samples that are predicted right",
        lambda target, _: _of_labels(accuracy, target),
        percent=True,
    ),
    Figure(
        "mean_class_accuracy",
        "Mean class accuracy",
        "mean over classes of the share of their target samples that are predicted right",
        lambda target, _: _of_labels(mean_class_accuracy, target),
        percent=True,
    ),
    Figure(
        "source_accuracy",
        "Source accuracy",
        "share of source samples that are predicted right",
        lambda _, source: _of_labels(accuracy, source),
        percent=True,
    ),
):
    FIGURES.add(_figure.name, _figure)


def _with_validators() -> Registry[Figure]:
    """The figures, of which every validator is one, also one that was made known just now."""
    for name in VALIDATORS:
        if name not in FIGURES:
            FIGURES.add(name, _score_figure(name))
    return FIGURES


_with_validators()


def measure(
    target: DomainPredictions,
    source: DomainPredictions | None = None,
    asked: Collection[str] = (),
) -> dict[str, float]:
    """Every figure that can be computed, by name; costly validators where they are asked for.

    One that is not finite cannot be: a target of one sample has no neighbours to agree with.

    >>> import torch
    >>> certain = (torch.eye(2) * 50).log_softmax(1)
    >>> figures = measure(DomainPredictions(certain))
    >>> figures["equity"], "accuracy" in figures
    (1.0, False)
    """
    names = [
        name
        for name in _with_validators()
        if name not in VALIDATORS or not VALIDATORS[name].costly or name in asked
    ]
    found = {name: FIGURES[name].compute(target, source) for name in names}
    return {
        name: value for name, value in found.items() if value is not None and math.isfinite(value)
    }


def columns() -> list[Figure]:
    """The figures that tables show behind the accuracies."""
    return [FIGURES[name] for name in FIGURES if FIGURES[name].column]
