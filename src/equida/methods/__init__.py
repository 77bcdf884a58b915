"""Methods: source cross-entropy plus losses or alignment plus their own heads; one file each.

method = build("nsm", features=256, classes=31, classifier=network.classifier)
terms = method(source, labels, target, progress)
"""

# Importing a method's module registers it; the order here is that of lists and tables.
# isort: off
from equida.methods import (  # noqa: F401
    source_only, dan, dann, jan, cdan, safn, symnets, max_square, bnm, cwsm, nsm,
    entropy, im, mcc, mcd, mdd, fbnm, iw_max_square,
)  # fmt: skip
# isort: on

from equida.methods.base import METHODS, Entry, Method, Output, Range, register, search
from equida.methods.compose import Composite, build, configure, default_config, parts
from equida.methods.describe import Description, Hyperparameter, describe

__all__ = [
    "METHODS",
    "Composite",
    "Description",
    "Entry",
    "Hyperparameter",
    "Method",
    "Output",
    "Range",
    "build",
    "configure",
    "default_config",
    "describe",
    "parts",
    "register",
    "search",
]
