"""Calinski-Harabasz: whether the predicted classes are separate groups of the input rows."""

import torch
from torch.nn.functional import normalize

from equida.evaluation.predictions import DomainPredictions
from equida.evaluation.validators.base import validator


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
    rows = normalize(target.inputs.rows.float(), dim=1)
    predicted = target.predicted[target.inputs.samples]
    sizes = torch.bincount(predicted, minlength=target.log_probs.shape[1]).to(rows.dtype)
    sums = rows.new_zeros(len(sizes), rows.shape[1]).index_add_(0, predicted, rows)
    mean, groups, count = rows.mean(0), int((sizes > 0).sum()), len(rows)
    total = float((rows - mean).square().sum())
    present = sizes > 0
    means = sums[present] / sizes[present][:, None]
    between = float((sizes[present] * (means - mean).square().sum(1)).sum())
    within = total - between
    if groups < 2 or count <= groups or within <= 1e-6 * total:
        return 0.0
    return (between / (groups - 1)) / (within / (count - groups))
