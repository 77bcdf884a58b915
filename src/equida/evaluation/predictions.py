"""What a network says of a domain: all that figures and validators look at."""

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from equida.errors import InputError
from equida.evaluation.accuracy import confusion_matrix

NEIGHBOURS = 5
"""How many nearest neighbours of a sample are looked at."""
QUERIES = 2000
"""Neighbours are looked up for so many samples at most, evenly spaced."""
QUERIES_AT_ONCE = 256


class InputRows:
    """The rows that a network was given, such as frozen features: what training does not move.

    What is computed of them is computed once, however often the network is evaluated.

    Args:
        rows: (rows, width).
        samples: the positions in the domain of these rows, where only some of them are here; None:
            the rows are all samples in order.
    """

    def __init__(self, rows: Tensor, samples: Tensor | None = None) -> None:
        self.rows = rows
        self.samples = torch.arange(len(rows)) if samples is None else samples

    @cached_property
    def units(self) -> Tensor:
        """The rows, each scaled to unit length."""
        return torch.nn.functional.normalize(self.rows.float(), dim=1)

    @cached_property
    def centre(self) -> Tensor:
        """The mean of the unit rows."""
        return self.units.mean(0)

    @cached_property
    def spread(self) -> float:
        """The sum over the unit rows of their squared distance from the centre."""
        # In parts: all differences together would be a third copy of the rows.
        parts = self.units.split(QUERIES)
        return sum(float((part - self.centre).square().sum()) for part in parts)

    @cached_property
    def neighbours(self) -> tuple[Tensor, Tensor]:
        """Samples, (queries,), and the nearest others of each, (queries, k), by cosine similarity.

        Above 2000 samples, evenly spaced ones are looked up, among all rows.

        >>> rows = InputRows(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1], [0.1, 1.0]]))
        >>> rows.neighbours[1][:, 0].tolist()
        [2, 3, 0, 1]
        """
        units = self.units
        queries = torch.arange(0, len(units), max(1, math.ceil(len(units) / QUERIES)))
        k = min(NEIGHBOURS, len(units) - 1)
        found = []
        for block in queries.split(QUERIES_AT_ONCE):
            similarity = units[block] @ units.mT
            similarity[torch.arange(len(block)), block] = -math.inf
            found.append(similarity.topk(k).indices)
        return self.samples[queries], self.samples[torch.cat(found)]


@dataclass(frozen=True)
class DomainPredictions:
    """What a network predicts for every sample of a domain, in order."""

    log_probs: Tensor
    """(samples, classes)."""
    labels: Tensor | None = None
    """(samples,), -1 where unknown. Validators see those of the source only."""
    features: Tensor | None = None
    """What the classifier is given, after the bottleneck: (samples, features)."""
    inputs: InputRows | None = None
    """What the network is given, where that is rows of numbers."""
    cluster_labels: Tensor | None = None
    """The classes that clusters of the inputs suggest for the samples of a target, (samples,)."""
    network: Callable[[Tensor], Tensor] | None = None
    """The network itself: log-probabilities of rows like those of `inputs`."""

    def __post_init__(self) -> None:
        if self.log_probs.ndim != 2 or 0 in self.log_probs.shape:
            raise InputError(
                f"log_probs have shape {tuple(self.log_probs.shape)}; expected (samples, classes),"
                " at least one of each"
            )

    @cached_property
    def predicted(self) -> Tensor:
        """The most likely class of each sample."""
        return self.log_probs.argmax(1)

    @cached_property
    def confusion(self) -> Tensor | None:
        """Counts by true and predicted class, or None without labels."""
        if self.labels is None or not bool((self.labels >= 0).any()):
            return None
        return confusion_matrix(self.predicted, self.labels, self.log_probs.shape[1])

    @cached_property
    def without_labels(self) -> "DomainPredictions":
        """The same predictions, as a validator may see those of a target."""
        return dataclasses.replace(self, labels=None)
