"""Losses on the entropy and the confusion of target predictions."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from equida.losses.closed_form import Logits, checked, log_probabilities, positive, relative_prior


def entropy(logits: Logits) -> Tensor:
    """Mean entropy of the rows, in nats: 1/B sum_i sum_c -P_ic log P_ic (Grandvalet & Bengio 2005).

    Every one-hot matrix is a minimum. Value in [0, log C]; lower is better.

    >>> entropy(torch.zeros(3, 4))
    tensor(1.3863)
    """
    return _row_entropy(log_probabilities(checked(logits, per_row=True))).mean()


def information_maximization(
    logits: Logits, prior: Tensor | Sequence[float] | None = None
) -> Tensor:
    """Mean entropy of the rows minus the entropy of the mean row (Liang et al. 2020, SHOT-IM).

    Minus the mutual information of sample and class. The minimum is attained at one-hot rows with
    balanced classes. Value in [-log min(B, C), 0]; lower is better.

    Args:
        logits: target predictions, (batch, classes).
        prior: the shares q of the classes to aim at, instead of equal ones: the entropy of the mean
            row p becomes log C - KL(p || q). The minimum, -log C, is attained at one-hot rows with
            class sizes in proportion to q. A share below 1e-6 / C counts as 1e-6 / C.

    >>> information_maximization(torch.eye(4) * 50)
    tensor(-1.3863)
    """
    logits = checked(logits)
    log_probs = log_probabilities(logits)
    log_mean = log_probs.logsumexp(0, keepdim=True) - math.log(log_probs.shape[0])
    value = _row_entropy(log_probs).mean() - _row_entropy(log_mean).sum()
    if prior is None:
        return value
    return value - (log_mean.exp() * relative_prior(prior, logits).log()).sum()


def mcc(logits: Logits, temperature: float = 2.5) -> Tensor:
    """Minimum class confusion: share of each class's mass that is confused with another class.

    MCC = 1 - 1/C sum_c (sum_i w_i Q_ic^2) / (sum_i w_i Q_ic), Q the softmax of logits / temperature
    and w_i = B (1 + exp(-H_i)) / sum_j (1 + exp(-H_j)), without gradient, from the entropy H_i of
    row i of Q (Jin et al. 2020). An absent class counts as fully confused. Value in [0, 1 - 1/C]
    where no class is absent; lower is better.

    Args:
        logits: target predictions, (batch, classes).
        temperature: above 0; larger values let more of the confusion be seen.

    >>> mcc(torch.zeros(3, 4))
    tensor(0.7500)
    """
    positive("temperature", temperature)
    logits = checked(logits)
    # Softmax does not see the shift, which keeps the quotient from overflowing.
    probs = ((logits - logits.detach().amax(1, keepdim=True)) / temperature).softmax(1)
    fixed = probs.detach()
    # The authors' entropy: with a constant inside the logarithm, which only these weights see.
    certainty = 1.0 + (fixed * (fixed + 1e-5).log()).sum(1).exp()
    weighted = probs * (certainty / certainty.mean())[:, None]
    # The rows of the class correlation Q^T diag(w) Q sum to sum_i w_i Q_ic, so only its diagonal
    # is needed.
    mass = weighted.sum(0).clamp_min(torch.finfo(probs.dtype).tiny)
    return 1.0 - ((weighted * probs).sum(0) / mass).mean()


def _row_entropy(log_probs: Tensor) -> Tensor:
    return -(log_probs.exp() * log_probs).sum(1)
