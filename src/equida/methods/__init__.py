"""Methods: what is added to source cross-entropy (losses, alignment, heads); one file each.

method = build_method("nsm", features=256, classes=31, classifier=network.classifier)
terms = method(source, labels, target, progress)
"""

# Importing a method's module registers it; the order here is that of lists and tables.
# isort: off
from equida.methods import (  # noqa: F401
    source_only, dan, dann, jan, cdan, safn, symnets, max_square, bnm, cwsm, nsm,
    entropy, im, mcc, mcd, mdd, fbnm, iw_max_square, spl, clusters,
)  # fmt: skip
# isort: on

from equida.methods.base import (
    METHODS,
    Method,
    Output,
    Range,
    RegisteredMethod,
    TaskRows,
    method_code,
    method_name,
    method_parts,
    register,
    search,
)
from equida.methods.compose import (
    Composite,
    build_method,
    check_overrides,
    configure,
    default_config,
    find_field,
    split_name,
)
from equida.methods.describe import Description, Hyperparameter, describe_method

STANDARD = (
    "source_only", "dan", "dann", "jan", "cdan", "safn", "symnets", "max_square", "bnm", "cwsm",
    "nsm",
)  # fmt: skip
"""The eleven systems of the standard comparison, in the order of tables."""

__all__ = [
    "METHODS",
    "STANDARD",
    "Composite",
    "Description",
    "Hyperparameter",
    "Method",
    "Output",
    "Range",
    "RegisteredMethod",
    "TaskRows",
    "build_method",
    "check_overrides",
    "configure",
    "default_config",
    "describe_method",
    "find_field",
    "method_code",
    "method_name",
    "method_parts",
    "register",
    "search",
    "split_name",
]
