"""A label-free validator: does every class get its share of the target?"""

from equida.evaluation.predictions import DomainPredictions
from equida.evaluation.validators import validator


@validator("coverage", "coverage", "the step whose rarest class has the largest target share")
def coverage(target: DomainPredictions, source: DomainPredictions | None = None) -> float:
    """The share of target samples that the rarest class gets, times the number of classes."""
    probs = target.log_probs.exp()
    counts = probs.argmax(1).bincount(minlength=probs.shape[1])
    return float(counts.min() * probs.shape[1] / len(probs))
