"""The paper's theorems, example tables and surfaces, recomputed.

`run_theory` does all of it; `equida theory` prints and writes what it returns.
"""

from equida.paper.theory.checks import QUICK, Budget, Check, Context
from equida.paper.theory.prior import cws_sizes, ns_sizes
from equida.paper.theory.study import TheoryStudy, run_theory, write_record

__all__ = [
    "QUICK",
    "Budget",
    "Check",
    "Context",
    "TheoryStudy",
    "cws_sizes",
    "ns_sizes",
    "run_theory",
    "write_record",
]
