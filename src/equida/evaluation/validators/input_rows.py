"""Scores that compare predictions with the rows that the network was given.

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
    spread = 1.0  # where there is one class, all classes are predicted
    if classes > 1:
        spread = float(torch.special.entr(shares.double()).sum()) / math.log(classes)
    return neighbour_agreement(target) * spread


@validator(
    "calinski_harabasz",
    "Calinski-Harabasz",
    "the step whose predicted classes are the most separate groups in the input features",
    needs=("inputs",),
)
def calinski_harabasz(target: DomainPredictions, source: DomainPredictions | None = None) -> float:
    """Variance between over variance within predicted classes, of the input rows made unit.

    Each is divided by its degrees of freedom: k - 1 and n - k for k predicted classes and n rows
    (Calinski & Harabasz 1974). Where everything is one class, or nothing varies within, it is 0.
    """
    assert target.inputs is not None
    rows, mean, total = target.inputs.units, target.inputs.centre, target.inputs.spread
    predicted = target.predicted[target.inputs.samples]
    sizes = torch.bincount(predicted, minlength=target.log_probs.shape[1]).to(rows.dtype)
    sums = rows.new_zeros(len(sizes), rows.shape[1]).index_add_(0, predicted, rows)
    present = sizes > 0
    groups, count = int(present.sum()), len(rows)
    means = sums[present] / sizes[present][:, None]
    between = float((sizes[present] * (means - mean).square().sum(1)).sum())
    within = total - between
    if groups < 2 or count <= groups or within <= 1e-6 * total:
        return 0.0
    return (between / (groups - 1)) / (within / (count - groups))


@validator(
    "cluster_agreement",
    "agreement with cluster labels",
    "the step whose predictions agree most often with cluster labels of the input features",
    needs=("cluster_labels",),
    costly=True,
)
def cluster_agreement(target: DomainPredictions, source: DomainPredictions | None = None) -> float:
    """Share of samples whose predicted class is that of their cluster label, in [0, 1].

    Cluster labels (`equida.clustering.cluster_labels`) are computed once from the rows of both
    domains and the source's labels. They are a second opinion: of two networks that disagree with
    them equally often, the score cannot tell which one is right.
    """
    assert target.cluster_labels is not None
    return float((target.predicted == target.cluster_labels).double().mean())
