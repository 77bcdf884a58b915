"""Scores that guess, without target labels, how well a model does on the target.

Every score is one number of the whole target set, and higher is better. They are computed side by
side at each evaluation, so that a run can say what each of them would have picked. To add one,
write a function with `@validator` above it in a file here, and name the file below: runs, tables
and the page then show it.
"""

# Importing a module registers its validators; the order here is that of lists and tables.
# isort: off
from equida.evaluation.validators import (  # noqa: F401
    certainty, input_rows, importance, mixing,
)  # fmt: skip
# isort: on

from equida.evaluation.validators.base import (
    DEFAULT_VALIDATOR,
    VALIDATORS,
    Need,
    Score,
    Validator,
    add_plugins,
    own_validators,
    validator,
)

add_plugins()

__all__ = [
    "DEFAULT_VALIDATOR", "VALIDATORS", "Need", "Score", "Validator", "own_validators", "validator",
]  # fmt: skip
