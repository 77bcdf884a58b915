"""A check of the paper, and the work that a study may spend on its checks."""

import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor

Measure = Callable[[Tensor], Tensor]
"""The value of each matrix of a stack."""

Axis = Literal["B", "C"]
"""The two sizes of a prediction matrix: rows of the batch, and classes."""
AXES: tuple[Axis, Axis] = ("B", "C")

CheckVerdict = Literal["holds", "paper wrong", "paper silent", "differs"]
"""holds: as the paper says. paper wrong: shown to be false. paper silent: true and not in the
paper. differs: the computed figure is not the printed or the expected one."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """One claim, what was tried, and the result."""

    id: str
    section: str = ""
    """The part of the study that it belongs to; filled in by `run_theory`."""
    claim: str
    reference: str
    """The place in the paper; equations and theorems are counted as its source numbers them."""
    tried: str
    """The matrices, sizes and searches that the verdict rests on."""
    computed: Any
    found: str
    """The result in a few words, for the table."""
    verdict: CheckVerdict
    explanation: str
    printed: Any = None
    deviation: float | None = None
    """The worst distance from what is printed or expected, where that is a number."""
    as_documented: bool = True
    """False where the result is not the one that `explanation` describes."""
    table: int | None = None
    """The table of the paper whose figure is checked, if it is one."""
    row: str = ""
    """The row of that figure."""
    column: str = ""
    """The column of that figure."""


def verdict_fields(as_documented: bool, verdict: CheckVerdict) -> dict[str, Any]:
    """The two fields of a check that say how it came out; a surprise always reads "differs"."""
    return {
        "verdict": verdict if as_documented else "differs",
        "as_documented": as_documented,
    }


@dataclass(frozen=True)
class Budget:
    """How much work the checks may spend."""

    starts: int = 64
    """Random starts of each search."""
    steps: int = 400
    """Steps of each ascent."""
    shapes: int = 4
    """The most sizes B x C of each kind (B below, equal to and above C) that are searched."""
    powers: tuple[float, ...] = (0.25, 0.5, 0.75)
    """Values of r inside (0, 1) that are searched."""
    draws: int = 2000
    """Random matrices for each identity and inequality."""
    grid: int = 201
    """Points along each side of a surface; an odd number, so that the middle is one of them."""
    scale: int = 4
    """A factor on the sizes whose time is measured."""
    repeats: int = 5
    """The fewest timings of each size, of which the shortest counts."""
    seconds: float = 0.5
    """The least time for the timings of each loss and axis."""


QUICK = Budget(
    starts=32, shapes=1, powers=(0.5,), draws=100, grid=41, scale=1, repeats=2, seconds=0.0
)
"""The same checks in some seconds: they try less, and sizes are too small for clean slopes."""


@dataclass(frozen=True)
class Context:
    """The budget, the random numbers and the progress display of all sections."""

    budget: Budget = field(default_factory=Budget)
    seed: int = 0
    note: Callable[[str], None] = lambda _: None
    """Called with what is being done, for a progress display."""

    def generator(self, name: str) -> torch.Generator:
        """A stream of random numbers of its own, so that no check depends on the others."""
        # Torch's generator on the CPU heeds the lower 32 bits of its seed only.
        return torch.Generator().manual_seed(zlib.crc32(f"{self.seed} {name}".encode()))


def rounded(value: float) -> str:
    """The number as a table shows it: four digits, without trailing zeros.

    >>> rounded(2.828427), rounded(2.0), rounded(float("inf"))
    ('2.8284', '2', 'infinite')
    """
    if math.isinf(value):
        return "infinite"
    return f"{value:.4f}".rstrip("0").rstrip(".")
