"""The figures of an evaluation: what is measured of target predictions, and how it is shown.

One entry of `FIGURES` is all that a new figure needs: runs record it, and tables, curves and the
page show it under its title.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cached_property

from torch import Tensor

from equida.evaluation.accuracy import accuracy, mean_class_accuracy
from equida.evaluation.measures import discriminability, equity
from equida.evaluation.predictions import DomainPredictions
from equida.evaluation.validators import VALIDATORS
from equida.registry import Registry


@dataclass(frozen=True)
class Evaluated:
    """What a network predicted, as far as figures need it."""

    target: DomainPredictions
    source: DomainPredictions | None = None
    """Of source samples; None without source data."""

    @property
    def log_probs(self) -> Tensor:
        """Of the target, (samples, classes)."""
        return self.target.log_probs

    @cached_property
    def confusion(self) -> Tensor | None:
        """Of the target; None without target labels."""
        return self.target.confusion

    @cached_property
    def source_confusion(self) -> Tensor | None:
        return None if self.source is None else self.source.confusion


@dataclass(frozen=True)
class Figure:
    """One number of an evaluation."""

    name: str
    """As results and logs call it."""
    title: str
    """As a table heads its column."""
    meaning: str
    compute: Callable[[Evaluated], float | None]
    """None where what it needs is not there, such as target labels."""
    percent: bool = False
    column: bool = False
    """Whether tables show it behind the accuracies."""

    @property
    def digits(self) -> int:
        """How many decimals are printed."""
        return 1 if self.percent else 3


FIGURES: Registry[Figure] = Registry("figure")


def _add(figure: Figure) -> None:
    FIGURES.add(figure.name, figure)


_add(
    Figure(
        "equity",
        "Equity",
        "1 - sum over classes of |share of target samples predicted as the class - 1/C|: 1 where"
        " all classes are predicted equally often",
        lambda e: float(equity(e.log_probs.exp())),
        column=True,
    )
)
_add(
    Figure(
        "equity_soft",
        "Soft equity",
        "equity with sums of probabilities instead of counts",
        lambda e: float(equity(e.log_probs.exp(), "soft")),
    )
)
_add(
    Figure(
        "discriminability",
        "Discriminability",
        "mean over target samples of the sum of squared probabilities: 1 where every prediction is"
        " certain",
        lambda e: float(discriminability(e.log_probs.exp())),
        column=True,
    )
)
_add(
    Figure(
        "accuracy",
        "Accuracy",
        "share of target samples that are predicted right",
        lambda e: None if e.confusion is None else accuracy(e.confusion),
        percent=True,
    )
)
_add(
    Figure(
        "mean_class_accuracy",
        "Mean class accuracy",
        "mean over classes of the share of their target samples that are predicted right",
        lambda e: None if e.confusion is None else mean_class_accuracy(e.confusion),
        percent=True,
    )
)
_add(
    Figure(
        "source_accuracy",
        "Source accuracy",
        "share of source samples that are predicted right",
        lambda e: None if e.source_confusion is None else accuracy(e.source_confusion),
        percent=True,
    )
)


def _score_figure(name: str) -> None:
    validator = VALIDATORS[name]

    def compute(evaluated: Evaluated) -> float | None:
        if validator.lacking(evaluated.target, evaluated.source):
            return None
        return validator.score(evaluated.target, evaluated.source)

    title, meaning = validator.title, f"label-free score; {validator.meaning}"
    _add(Figure(name, title[0].upper() + title[1:], meaning, compute))


for _name in VALIDATORS:
    if _name not in FIGURES:
        _score_figure(_name)


def measure(evaluated: Evaluated, asked: Collection[str] = ()) -> dict[str, float]:
    """Every figure that can be computed, by name.

    Args:
        evaluated: the predictions.
        asked: costly validators to compute, too.

    >>> import torch
    >>> certain = (torch.eye(2) * 50).log_softmax(1)
    >>> figures = measure(Evaluated(DomainPredictions(certain)))
    >>> figures["equity"], "accuracy" in figures
    (1.0, False)
    """
    names = [
        name
        for name in FIGURES
        if name not in VALIDATORS or not VALIDATORS[name].costly or name in asked
    ]
    found = {name: FIGURES[name].compute(evaluated) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def columns() -> list[Figure]:
    """The figures that tables show behind the accuracies."""
    return [FIGURES[name] for name in FIGURES if FIGURES[name].column]
