"""Labels of an unlabelled target from the clusters of its frozen features: no network, no gradient.

`cluster_labels` is equida's rule, `selective_labels` the published one; both are pure functions of
rows, source labels and a seed.
"""

from equida.clustering.clusters import ClusterRule, cluster_labels
from equida.clustering.selective import SelectiveRule, selective_labels
from equida.clustering.shares import estimate_aim
from equida.clustering.subspace import (
    class_middles,
    class_scatter,
    joint_rows,
    supervised_projection,
)

__all__ = [
    "ClusterRule",
    "SelectiveRule",
    "class_middles",
    "class_scatter",
    "cluster_labels",
    "estimate_aim",
    "joint_rows",
    "selective_labels",
    "supervised_projection",
]
