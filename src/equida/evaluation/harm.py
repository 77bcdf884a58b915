"""Whether adaptation may have hurt, seen without a target label.

The thresholds were chosen on runs whose target labels are known; docs/imbalanced_targets.md says
how often the check is right and wrong. The check itself sees no label.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from equida.evaluation.figures import measure
from equida.evaluation.predictions import DomainPredictions

IMBALANCED = 0.10
"""Above this imbalance W, a target does not look balanced."""
RISE = 0.03
"""By how much equity may rise above that of source only on a target that looks imbalanced."""
FALL, SURE = 0.1, 0.95
"""Where equity falls by more than the first below that of source only while discriminability is
above the second, predictions have collapsed, unless the target looks imbalanced itself."""
SOURCE_ONLY, START = "source only", "the run it started from"
"""What a run is compared with, in words: the second where there are no source data."""


@dataclass(frozen=True)
class HarmCheck:
    """A run beside a classifier that was not adapted, on the same target samples.

    That is one which knows the source alone; where `compared_with` says so, it is the network that
    a source-free run started from, and stands for source only below.
    """

    moved: float
    """The share of samples that are given another class. It is no sign of harm: on hard tasks four
    in ten move, and most of them to the right class."""
    levelled: bool
    """Whether class sizes were made more equal although the target looks imbalanced."""
    collapsed: bool
    """Whether the predictions are sure and leave out classes that source only predicts, on a target
    that does not look imbalanced."""
    source_only: Mapping[str, float]
    """Equity, discriminability and label-free scores of source only."""
    adapted: Mapping[str, float]
    """The same figures of the run."""
    compared_with: str = SOURCE_ONLY


def check_harm(
    source_only: Tensor, adapted: Tensor, imbalance: float, compared_with: str = SOURCE_ONLY
) -> HarmCheck:
    """Compare the predictions of a run with those of source only.

    Args:
        source_only: log-probabilities of target samples, (samples, classes).
        adapted: the same of the run.
        imbalance: W, how imbalanced the target looks.
        compared_with: what remarks call `source_only`, where it is something else.

    >>> import torch
    >>> uneven, even = torch.eye(2)[[0, 0, 0, 1]], torch.eye(2)[[0, 0, 1, 1]]
    >>> before, after = (50 * each.log_softmax(1) for each in (uneven, even))
    >>> check_harm(before, after, imbalance=0.25).levelled
    True
    """
    before, after = (measure(DomainPredictions(each)) for each in (source_only, adapted))
    imbalanced = imbalance > IMBALANCED
    fallen = after["equity"] < before["equity"] - FALL
    return HarmCheck(
        moved=float((source_only.argmax(1) != adapted.argmax(1)).float().mean()),
        levelled=imbalanced and after["equity"] - before["equity"] > RISE,
        collapsed=not imbalanced and fallen and after["discriminability"] > SURE,
        source_only=before,
        adapted=after,
        compared_with=compared_with,
    )
