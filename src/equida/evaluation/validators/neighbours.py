"""Agreement of predictions with the neighbourhoods of the rows that the network was given.

Samples that lie close together in good frozen features mostly share a class. Training does not move
these features, so that a network cannot please the score by moving its own.
"""

import math

import torch

from equida.evaluation.predictions import DomainPredictions
from equida.evaluation.validators.base import validator


@validator(
    "knn",
    "agreement with neighbours",
    "the step whose predictions agree most often with those for the 5 nearest samples in the input"
    " features",
    needs=("inputs",),
)
def neighbour_agreement(
    target: DomainPredictions, source: DomainPredictions | None = None
) -> float:
    """Share of pairs of a sample and one of its 5 nearest neighbours with one class, in [0, 1].

    Nearest is by cosine similarity in the rows that the network is given, such as frozen features.
    A network that predicts one class for everything has the best score: see `balanced_agreement`.
    """
    assert target.inputs is not None
    samples, neighbours = target.inputs.neighbours
    agree = target.predicted[samples][:, None] == target.predicted[neighbours]
    return float(agree.double().mean())


@validator(
    "knn_balance",
    "agreement with neighbours, balanced",
    "the step whose predictions agree with those for the 5 nearest samples in the input features"
    " while all classes are predicted",
    needs=("inputs",),
)
def balanced_agreement(target: DomainPredictions, source: DomainPredictions | None = None) -> float:
    """Agreement with neighbours times the entropy of the predicted class shares, in [0, 1].

    The entropy is that of the shares of hard predictions over log C, its maximum. The first factor
    asks for structure, the second for all classes: together they see a collapse to few classes,
    which agreement alone prefers.
    """
    classes = target.log_probs.shape[1]
    shares = torch.bincount(target.predicted, minlength=classes) / len(target.predicted)
    spread = float(torch.special.entr(shares.double()).sum()) / math.log(classes)
    return neighbour_agreement(target) * spread
