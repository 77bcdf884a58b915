"""Accuracy on the source: what is known of the labels, though not of the target."""

from equida.evaluation.accuracy import accuracy
from equida.evaluation.predictions import DomainPredictions
from equida.evaluation.validators.base import validator


@validator(
    "source_accuracy",
    "source accuracy",
    "the step with the best accuracy on source samples",
    needs=("source",),
)
def source_accuracy(target: DomainPredictions, source: DomainPredictions | None) -> float:
    """Share of source samples that are predicted right, in [0, 1]."""
    confusion = source.confusion() if source else None
    assert confusion is not None
    return accuracy(confusion)
