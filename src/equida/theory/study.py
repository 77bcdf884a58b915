"""All checks in one go, and their record on disk."""

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from equida import __version__
from equida.theory.case_study import case_study_checks
from equida.theory.checks import Budget, Check, Context
from equida.theory.complexity import complexity_checks
from equida.theory.examples import example_checks
from equida.theory.identities import identity_checks
from equida.theory.landscape import landscape_checks
from equida.theory.limits import limit_checks
from equida.theory.prior import prior_checks
from equida.theory.theorems import theorem_checks
from equida.torch_modes import torch_threads

PAPER = (
    "Zhang et al. 2022, On the Equity of Nuclear Norm Maximization in Unsupervised Domain "
    "Adaptation, arXiv 2204.05596"
)

SECTIONS: tuple[Callable[[Context], list[Check]], ...] = (
    example_checks,
    case_study_checks,
    theorem_checks,
    limit_checks,
    landscape_checks,
    identity_checks,
    prior_checks,
    complexity_checks,
)


@dataclass(frozen=True)
class Study:
    """Every check of the paper, with what it took."""

    checks: list[Check]
    budget: Budget
    seed: int
    seconds: float
    figures: list[str] = field(default_factory=list)

    @property
    def as_documented(self) -> bool:
        """Whether nothing came out otherwise than its explanation says."""
        return all(check.as_documented for check in self.checks)

    def of(self, *sections: str) -> list[Check]:
        return [check for check in self.checks if check.section in sections]


def run_study(context: Context, advance: Callable[[], None] = lambda: None) -> Study:
    """Runs all sections on one thread; `advance` is called after each of `SECTIONS`."""
    begin = time.perf_counter()
    checks: list[Check] = []
    # The matrices are tiny, and Table 2 is about work, not about cores.
    with torch_threads(1):
        for section in SECTIONS:
            checks += section(context)
            advance()
    return Study(checks, context.budget, context.seed, time.perf_counter() - begin)


def write_record(study: Study, path: Path) -> None:
    """Writes the study as JSON, whole or not at all."""
    record: dict[str, Any] = {
        "schema": 1,
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
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(record, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    os.replace(partial, path)
