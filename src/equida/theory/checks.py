"""What a check of the paper is, and how much work a study may spend on its checks."""

import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import torch

Verdict = Literal["holds", "paper wrong", "paper silent", "differs"]
"""holds: as the paper says. paper wrong: shown to be false. paper silent: true and not in the
paper. differs: the computed figure is not the printed or the expected one."""


@dataclass(frozen=True)
class Check:
    """One claim, what was tried, and what came out."""

    id: str
    section: str
    claim: str
    reference: str
    """Where in the paper; equations and theorems are counted as its source numbers them."""
    tried: str
    computed: Any
    found: str
    """`computed` in a few words, for the table."""
    verdict: Verdict
    explanation: str
    printed: Any = None
    deviation: float | None = None
    """The worst distance from what is printed or expected, where that is a number."""
    as_documented: bool = True
    """False where the result is not the one that `explanation` describes."""


def judged(as_documented: bool, verdict: Verdict) -> dict[str, Any]:
    """The two fields of a check that say how it came out; a surprise always reads "differs"."""
    return {
        "verdict": verdict if as_documented else "differs",
        "as_documented": as_documented,
    }


@dataclass(frozen=True)
class Budget:
    """How much is tried."""

    starts: int = 64
    """Random starts of each search."""
    steps: int = 400
    """Steps of each ascent."""
    shapes: int = 4
    """Sizes B x C of each kind (B below, equal to and above C) that are searched, at most."""
    powers: tuple[float, ...] = (0.25, 0.5, 0.75)
    """Values of r inside (0, 1) that are searched."""
    draws: int = 2000
    """Random matrices for each identity and inequality."""
    grid: int = 201
    """Points along each side of a surface; odd, so that the middle is one of them."""
    scale: int = 4
    """Factor on the sizes of which the time is measured."""
    repeats: int = 5
    """Timings of each size at least, of which the shortest counts."""
    seconds: float = 0.5
    """Time for the timings of each loss and axis at least."""


QUICK = Budget(
    starts=32, shapes=1, powers=(0.5,), draws=100, grid=41, scale=1, repeats=2, seconds=0.0
)
"""Some seconds: the same checks with less tried, and sizes too small for clean slopes."""


@dataclass(frozen=True)
class Context:
    """What every section is given."""

    budget: Budget = field(default_factory=Budget)
    seed: int = 0
    note: Callable[[str], None] = lambda _: None
    """Called with what is being done, for a progress display."""

    def generator(self, name: str) -> torch.Generator:
        """A stream of random numbers of its own, so that no check depends on the others."""
        # Torch's generator on the CPU heeds the lower 32 bits of its seed only.
        return torch.Generator().manual_seed(zlib.crc32(f"{self.seed} {name}".encode()))


def rounded(value: float, digits: int = 4) -> str:
    """The number as a table shows it: fixed digits, without trailing zeros.

    >>> rounded(2.828427), rounded(2.0), rounded(float("inf"))
    ('2.8284', '2', 'infinite')
    """
    if math.isinf(value):
        return "infinite"
    return f"{value:.{digits}f}".rstrip("0").rstrip(".")
