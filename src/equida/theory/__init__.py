"""The paper's theorems, example tables and surfaces, recomputed.

`run_study` does all of it; `equida theory` prints and writes what it returns.
"""

from equida.theory.checks import QUICK, Budget, Check, Context
from equida.theory.prior import cws_sizes, ns_sizes
from equida.theory.study import Study, run_study, write_record

__all__ = [
    "QUICK",
    "Budget",
    "Check",
    "Context",
    "Study",
    "cws_sizes",
    "ns_sizes",
    "run_study",
    "write_record",
]
