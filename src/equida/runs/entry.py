"""A run's place in a table, and the figures that a selection takes from its result."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from equida.errors import InputError
from equida.evaluation.validators import VALIDATORS
from equida.methods.aiming import MARKED_ORACLE
from equida.runs.read import Run
from equida.runs.variant import Variant


def selection_titles() -> dict[str, str]:
    """The steps of a run that can be shown, by the name that its result uses, with their titles.

    Whoever registers a validator of their own adds one.
    """
    picked = {name: VALIDATORS[name].title for name in VALIDATORS}
    return {"last": "last step", **picked, "oracle": MARKED_ORACLE}


def check_selection(select: str) -> str:
    """`select`, or an InputError that names what there is."""
    if select not in ("last", "oracle") and select not in VALIDATORS:
        known = ", ".join(selection_titles())
        raise InputError(f"--select is {select!r}; expected one of {known}")
    return select


def cheap_validators() -> str:
    """The validators that every run computes, as a message names them."""
    return ", ".join(name for name in VALIDATORS if not VALIDATORS[name].costly)


def check_labelled(select: str, labelled: bool, target: str) -> None:
    """Raise InputError where the step with the best accuracy is asked for without target labels."""
    if select == "oracle" and not labelled:
        raise InputError(
            f"--select oracle needs target labels, and {target} has none; choose last or one of"
            f" {cheap_validators()}"
        )


def selection_phrase(select: str) -> str:
    """What a caption says of a selection.

    >>> selection_phrase("last")
    'the last step'
    """
    if select == "last":
        return "the last step"
    if select == "oracle":
        return "the step with the best target accuracy (the oracle: it uses target labels)"
    return f"the step that {selection_titles()[select]} (label-free) picks"


@dataclass(frozen=True)
class Entry:
    """A run, or a run that is planned, with its row, its column and its seed."""

    variant: Variant
    task: str
    seed: int
    result: Mapping[str, Any] | None = None
    """The content of result.json; None while the run is unfinished or where it failed."""
    failure: str | None = None
    run: Run | None = None
    """Where the result was read; None for a plan."""

    @property
    def name(self) -> str:
        """As lists and messages call it."""
        return f"{self.variant.title} {self.task} seed {self.seed}"

    def figures(self, select: str) -> Mapping[str, float] | None:
        """The evaluation that a selection picks; None where the run does not have it."""
        check_selection(select)
        if self.result is None:
            return None
        found: Mapping[str, float] | None = (
            self.result["last"] if select == "last" else self.result["picks"].get(select)
        )
        return found

    def figure(self, name: str, select: str) -> float | None:
        """One figure of the evaluation that a selection picks; None where it is not finite."""
        value = (self.figures(select) or {}).get(name)
        return value if value is not None and math.isfinite(value) else None

    def accuracy(self, select: str) -> float | None:
        """The accuracy that the task is judged by, in percent; None without target labels."""
        if self.result is None:
            return None
        value = self.figure(self.result["metric"], select)
        return None if value is None else 100.0 * value

    def class_accuracies(self, select: str) -> list[float] | None:
        """The accuracy of each class in percent; known for the weights that were kept only.

        A class without target samples has none, and a mean would leave it out: then it is None for
        all of them.
        """
        if self.result is None or self.result.get("kept") != select:
            return None
        rows = self.result.get("confusion")
        if rows is None or any(sum(row) == 0 for row in rows):
            return None
        return [100.0 * row[number] / sum(row) for number, row in enumerate(rows)]
