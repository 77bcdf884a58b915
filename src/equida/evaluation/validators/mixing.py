"""A score that probes the network with mixtures of two target samples."""

import torch
from torch import Tensor

from equida.evaluation.predictions import DomainPredictions
from equida.evaluation.validators.base import validator

LARGER_PART = 0.55
"""Share of a sample in the mixture whose class must be the sample's."""


@validator(
    "mixval",
    "agreement on mixtures",
    "the step whose predictions for mixtures of two target samples agree most often with those for"
    " the larger part",
    needs=("inputs", "network"),
    costly=True,
)
def mixture_agreement(target: DomainPredictions, source: DomainPredictions | None = None) -> float:
    """MixVal (Hu et al. 2023, "Mixed Samples as Probes"), in [0, 1].

    Each sample is mixed with a random one of the same predicted class, which looks for classes that
    hold together, and with a random one of another class, which looks for boundaries that lie
    between them: 0.55 of the sample and 0.45 of the other. The score is the share of mixtures that
    are given the sample's class, the mean of both kinds; the authors average ranks, for which one
    model alone has none. Where all samples have one class, the second kind counts as 0. The pairs
    are the same in every call for the same predictions.
    """
    assert target.inputs is not None
    rows, classes = target.inputs.rows, target.predicted[target.inputs.samples]
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))
    alike = _within_classes(order, classes)
    own = torch.arange(len(rows))
    other = torch.empty_like(order)
    other[order] = order.roll(1)
    kinds = ((alike, alike != own), (other, classes[other] != classes))
    return sum(_agreement(target, rows, classes, *kind) for kind in kinds) / 2


def _within_classes(order: Tensor, classes: Tensor) -> Tensor:
    """For each row another one of its class; the row itself where there is no other.

    >>> _within_classes(torch.arange(5), torch.tensor([0, 1, 0, 2, 1])).tolist()
    [2, 4, 0, 3, 1]
    """
    partner = torch.empty_like(order)
    for number in classes.unique():
        mine = order[classes[order] == number]
        partner[mine] = mine.roll(1)
    return partner


def _agreement(
    target: DomainPredictions, rows: Tensor, classes: Tensor, partner: Tensor, chosen: Tensor
) -> float:
    """Share of the chosen rows whose mixture with their partner is given their class."""
    assert target.network is not None
    if not bool(chosen.any()):
        return 0.0
    mixed = LARGER_PART * rows[chosen] + (1 - LARGER_PART) * rows[partner[chosen]]
    return float((target.network(mixed).argmax(1) == classes[chosen]).double().mean())
