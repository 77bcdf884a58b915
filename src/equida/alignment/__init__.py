"""What is minimised between two domains: features and logits of both in, a scalar out.

Every loss is computed in float32 or better whatever the dtype of its inputs, also under autocast,
and without waiting for the device.
"""

from equida.alignment.adversarial import Discriminator, domain_loss, ramp, reverse_gradient
from equida.alignment.conditional import RandomizedMap, certainty_weights, multilinear_map
from equida.alignment.disagreement import (
    class_balance,
    classifier_discrepancy,
    margin_disparity,
)
from equida.alignment.mmd import joint_mmd, mmd
from equida.alignment.norms import hard_norm, stepwise_norm
from equida.alignment.symmetric import symmetric_classifier_loss, symmetric_feature_loss

__all__ = [
    "Discriminator",
    "RandomizedMap",
    "certainty_weights",
    "class_balance",
    "classifier_discrepancy",
    "domain_loss",
    "hard_norm",
    "joint_mmd",
    "margin_disparity",
    "mmd",
    "multilinear_map",
    "ramp",
    "reverse_gradient",
    "stepwise_norm",
    "symmetric_classifier_loss",
    "symmetric_feature_loss",
]
