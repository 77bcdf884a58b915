"""Clusters: a head that learns the target's labels from the clusters of its frozen features."""

from dataclasses import dataclass

from torch import Tensor

from equida.clustering import ClusterRule, cluster_labels
from equida.methods.aiming import AimingMethod, prior_field, strength_field
from equida.methods.base import TaskRows, register, search
from equida.methods.spl import Distilled


@dataclass(frozen=True)
class ClustersConfig:
    trade_off: float = search(1.0, 0.3, 3.0, log=True)
    """Weight of the target's cross-entropy against that of the source."""
    components: int = search(512, 64, 1024, minimum=1)
    """The most joint principal components of the features that are used; at most 16 a class."""
    dimensions: int = search(128, 16, 256, minimum=1)
    """The most dimensions of the subspace in which target samples are labelled; at most 4 a
    class."""
    views: int = search(10, 1, 15, minimum=1)
    """How many choices of the components are looked at; their labels are averaged."""
    share: float = search(0.8, 0.5, 1.0, minimum=0.01, maximum=1.0)
    """Share of the components in a view."""
    prior: str = prior_field()
    """Class shares of the target: uniform (all classes count alike), source (those of its labels),
    estimate (of the target, without its labels), a share for each class, a file, or oracle (uses
    target labels)."""
    prior_strength: float = strength_field(0.5)
    fade: bool = True
    """Beside another method (clusters+nsm), let the weight of the labels fall to 0 over the
    training."""


@register(
    "clusters", ClustersConfig, reference="equida, after Wang & Breckon 2020, arXiv 1911.07982"
)
class Clusters(Distilled, AimingMethod):
    """Soft cluster labels: soft k-means in learned subspaces labels the target for a head.

    The soft labels are computed once from the rows that the network is given: frozen features that
    are good make good clusters. Nothing moves the features, so that the first assignment must be
    mostly right; together with a batch loss (clusters+nsm) the labels fade over the training, and
    the network corrects some of what they have wrong.
    """

    config: ClustersConfig

    def prepare(self, rows: TaskRows) -> dict[str, Tensor]:
        config = self.config
        rule = ClusterRule(
            components=config.components,
            dimensions=config.dimensions,
            views=config.views,
            share=config.share,
        )
        shares = None if self.shares is None else self.shares.cpu()
        found = cluster_labels(
            rows.source,
            rows.labels,
            rows.target,
            self.classes,
            rows.seed,
            rule,
            shares,
            rows.expected_shares() if rows.expected_shares else None,
        )
        return {"labels": found}
