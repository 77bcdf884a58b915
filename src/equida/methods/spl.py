"""SPL: a head that learns the target's labels from selective pseudo-labelling of its features."""

from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from equida.clustering import SelectiveRule, selective_labels
from equida.methods.base import Method, Output, TaskRows, register, search


class Distilled(Method):
    """Target cross-entropy with soft labels that were computed once, before the first step.

    In a composition the labels are where the training starts from: their weight falls to 0 over it
    (`fade`), so that the other method, which sees the network's own predictions, corrects what they
    have wrong.
    """

    prepares = True

    def forward(
        self, source: Output, labels: Tensor, target: Output, progress: float
    ) -> dict[str, Tensor]:
        assert target.samples is not None, "the loop knows which samples a batch holds"
        soft = self.prepared["labels"][target.samples].to(target.logits.dtype)
        fade = 1.0 - progress if self.config.fade and not self.alone else 1.0
        return {"distill": self.config.trade_off * fade * F.cross_entropy(target.logits, soft)}


@dataclass(frozen=True)
class SPLConfig:
    trade_off: float = search(1.0, 0.3, 3.0, log=True)
    """Weight of the target's cross-entropy against that of the source."""
    components: int = search(512, 64, 1024, minimum=1)
    """Joint principal components of the features that are used."""
    dimensions: int = search(128, 16, 256, minimum=1)
    """Dimensions of the subspace in which target samples are labelled."""
    fade: bool = True
    """Beside another method (spl+nsm), let the weight of the labels fall to 0 over the training."""


@register("spl", SPLConfig, reference="Wang & Breckon 2020, arXiv 1911.07982")
class SPL(Distilled):
    """Selective pseudo-labelling: clusters in a learned subspace label the target for a head.

    The labels are computed once from the rows that the network is given, by the authors' rule. The
    head is ours: the authors label the target only, and this predicts new samples, too. Labels are
    those of the largest score, because the authors' scores are too flat to learn from.
    """

    config: SPLConfig

    def prepare(self, rows: TaskRows) -> dict[str, Tensor]:
        rule = SelectiveRule(self.config.components, self.config.dimensions)
        scores = selective_labels(rows.source, rows.labels, rows.target, self.classes, rule)
        return {"labels": F.one_hot(scores.argmax(1), self.classes).float()}
