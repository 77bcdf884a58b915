"""What is minimised on target predictions: logits `(batch, classes)` in, a scalar out.

    loss = F.cross_entropy(source_logits, labels) + 2.0 * nsm(target_logits)

Every loss is computed in float32 or better whatever the dtype of the logits, also under autocast,
and has a finite gradient wherever the logits are finite.
"""

from equida.losses.entropy import entropy, information_maximization, mcc
from equida.losses.nuclear import bnm, fbnm
from equida.losses.squares import cwsm, iw_max_square, max_square, nsm

__all__ = [
    "bnm",
    "cwsm",
    "entropy",
    "fbnm",
    "information_maximization",
    "iw_max_square",
    "max_square",
    "mcc",
    "nsm",
]
