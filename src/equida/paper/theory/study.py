"""All checks in one go, and their record on disk."""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from equida import __version__
from equida.files import write_atomic
from equida.paper.theory.case_study import case_study_checks
from equida.paper.theory.checks import Budget, Check, Context
from equida.paper.theory.complexity import complexity_checks
from equida.paper.theory.examples import example_checks
from equida.paper.theory.identities import identity_checks
from equida.paper.theory.landscape import landscape_checks
from equida.paper.theory.limits import limit_checks
from equida.paper.theory.prior import prior_checks
from equida.paper.theory.theorems import theorem_checks
from equida.torch_modes import torch_threads

PAPER = (
    "Zhang et al. 2022, On the Equity of Nuclear Norm Maximization in Unsupervised Domain "
    "Adaptation, arXiv 2204.05596"
)

RECORD = "theory.json"
SURFACES = "surfaces"
"""The name of Figure 1, without its ending."""

SECTIONS: dict[Callable[[Context], list[Check]], str] = {
    example_checks: "examples",
    case_study_checks: "case study",
    theorem_checks: "theorems",
    limit_checks: "limits",
    landscape_checks: "limits",
    identity_checks: "identities",
    prior_checks: "prior",
    complexity_checks: "complexity",
}
"""What makes the checks, and the section that they belong to."""


@dataclass(frozen=True)
class TheoryStudy:
    """Every check of the paper, with the budget, the seed and the time that it took."""

    checks: list[Check]
    budget: Budget
    seed: int
    seconds: float
    figures: list[str] = field(default_factory=list)

    @property
    def as_documented(self) -> bool:
        """Whether every result is the one that its explanation describes."""
        return all(check.as_documented for check in self.checks)

    def checks_of(self, section: str) -> list[Check]:
        return [check for check in self.checks if check.section == section]


def run_theory(context: Context, advance: Callable[[], None] = lambda: None) -> TheoryStudy:
    """Run all sections on one thread; `advance` is called after each of `SECTIONS`."""
    begin = time.perf_counter()
    checks: list[Check] = []
    # The matrices are tiny, and Table 2 is about work, not about cores.
    with torch_threads(1):
        for make, section in SECTIONS.items():
            checks += [replace(check, section=section) for check in make(context)]
            advance()
    return TheoryStudy(checks, context.budget, context.seed, time.perf_counter() - begin)


def write_record(study: TheoryStudy, path: Path) -> None:
    """Write the study as JSON, whole or not at all."""
    record: dict[str, Any] = {
        "schema": 2,
        "equida": __version__,
        "torch": torch.__version__,
        "paper": PAPER,
        "seed": study.seed,
        "budget": asdict(study.budget),
        "seconds": round(study.seconds, 3),
        "as_documented": study.as_documented,
        "figures": study.figures,
        "checks": [asdict(check) for check in study.checks],
    }
    write_atomic(path, json.dumps(record, indent=1, allow_nan=False) + "\n")
