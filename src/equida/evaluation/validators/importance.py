"""Source risk with the weights that the source would need to look like the target.

A classifier that tells the domains apart by the network's features gives each source sample the
ratio of both densities. The loss is cross-entropy. Samples that were trained on have too small a
risk: hold some out (`--holdout 0.1`) where one of these scores is to choose.
"""

import numpy as np
from numpy.typing import NDArray

from equida.evaluation.predictions import DomainPredictions
from equida.evaluation.validators.base import validator

SAMPLES = 2000
"""How many target samples, evenly spaced, the densities are estimated on."""
Array = NDArray[np.float64]


@validator(
    "iw_risk",
    "importance-weighted risk",
    "the step with the lowest source risk, weighted towards the target",
    needs=("source", "features"),
    costly=True,
)
def importance_weighted_risk(
    target: DomainPredictions, source: DomainPredictions | None = None
) -> float:
    """Minus the mean over source samples of density ratio times loss (Sugiyama et al. 2007)."""
    weights, losses = _weighted_losses(target, source)
    return -float(np.mean(weights * losses))


@validator(
    "dev",
    "deep embedded validation",
    "the step with the lowest source risk, weighted towards the target with less variance",
    needs=("source", "features"),
    costly=True,
)
def deep_embedded_validation(
    target: DomainPredictions, source: DomainPredictions | None = None
) -> float:
    """Minus the weighted risk with a control variate (You et al. 2019).

    The risk is mean(w l) + eta mean(w) - eta with eta = -cov(w l, w) / var(w).
    """
    weights, losses = _weighted_losses(target, source)
    weighted = weights * losses
    variance = float(np.var(weights))
    covariance = float(np.mean((weighted - weighted.mean()) * (weights - weights.mean())))
    eta = -covariance / variance if variance > 0 else 0.0
    return -float(weighted.mean() + eta * weights.mean() - eta)


def _weighted_losses(
    target: DomainPredictions, source: DomainPredictions | None
) -> tuple[Array, Array]:
    """The density ratio of the target to the source, and the loss, of each source sample."""
    from sklearn.linear_model import LogisticRegression

    assert source is not None
    assert source.features is not None
    assert source.labels is not None
    assert target.features is not None
    step = max(1, -(-len(target.features) // SAMPLES))
    seen, unseen = source.features.double().numpy(), target.features[::step].double().numpy()
    rows = np.concatenate([seen, unseen])
    spread = rows.std(0)
    rows = (rows - rows.mean(0)) / np.where(spread > 0, spread, 1.0)
    domains = np.repeat([0, 1], [len(seen), len(unseen)])
    model = LogisticRegression(max_iter=1000, tol=1e-6).fit(rows, domains)
    odds = np.exp(np.clip(model.decision_function(rows[: len(seen)]), -30, 30))
    known = source.labels >= 0  # a fold may hold out the only samples of a class
    losses = -source.log_probs[known].gather(1, source.labels[known][:, None])[:, 0]
    ratio = odds * len(seen) / len(unseen)
    return ratio[known.numpy()], losses.double().numpy()
