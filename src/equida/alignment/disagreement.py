"""Losses on what two classifiers say of the same samples: MCD and MDD."""

import torch.nn.functional as F
from torch import Tensor

from equida.alignment.precision import full_precision, same_width


@full_precision
def classifier_discrepancy(logits: Tensor, other_logits: Tensor) -> Tensor:
    """Mean over samples and classes of |P - Q|, the softmax of both (Saito et al. 2018, MCD).

    Value in [0, 2/C]. The classifiers maximise it on the target, the features minimise it.

    >>> import torch
    >>> classifier_discrepancy(torch.tensor([[50.0, 0.0]]), torch.tensor([[0.0, 50.0]]))
    tensor(1.)
    """
    same_width(logits, other_logits)
    return (logits.softmax(1) - other_logits.softmax(1)).abs().mean()


@full_precision
def class_balance(logits: Tensor) -> Tensor:
    """Minus the mean over classes of the log of the mean probability; log C at its minimum.

    1e-6 is added inside the logarithm, as in tllib's MCD: an absent class costs at most 13.8 / C.

    >>> import torch
    >>> class_balance(torch.eye(2) * 50)
    tensor(0.6931)
    """
    return -(logits.softmax(1).mean(0) + 1e-6).log().mean()


@full_precision
def margin_disparity(
    source_logits: Tensor,
    source_adversary: Tensor,
    target_logits: Tensor,
    target_adversary: Tensor,
    margin: float = 4.0,
) -> Tensor:
    """How much more an adversary agrees with the classifier on the source than on the target.

    margin * mean CE(adversary(s), y_s) - mean log(1 - P(y_t | adversary(t))), with y_s and y_t the
    classes that the classifier predicts, without gradient (Zhang et al. 2019, MDD). The adversary
    minimises it, the features maximise it. Value >= 0 up to 1e-6, which guards the logarithm.

    Args:
        source_logits: the classifier on source samples, (batch, classes).
        source_adversary: the adversary on the same samples.
        target_logits: the classifier on target samples.
        target_adversary: the adversary on the same samples.
        margin: exp of the margin rho of the paper.

    >>> import torch
    >>> agree, differ = torch.tensor([[9.0, 0.0]]), torch.tensor([[0.0, 9.0]])
    >>> margin_disparity(agree, agree, agree, differ) < margin_disparity(agree, agree, agree, agree)
    tensor(True)
    """
    on_source = F.cross_entropy(source_adversary, source_logits.argmax(1))
    predicted = target_logits.argmax(1, keepdim=True)
    agreement = target_adversary.softmax(1).gather(1, predicted)
    on_target = (1.0 - agreement + 1e-6).clamp_max(1.0).log().mean()
    return margin * on_source - on_target
