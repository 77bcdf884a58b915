"""Agreement of predictions with the labels that clusters of the input rows suggest."""

from equida.evaluation.predictions import DomainPredictions
from equida.evaluation.validators.base import validator


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
    domains and the source's labels. They are a second opinion, so that the score cannot tell which
    of two networks is right that differ from it equally often.
    """
    assert target.cluster_labels is not None
    return float((target.predicted == target.cluster_labels).double().mean())
