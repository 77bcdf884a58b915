"""Search for better points than a theorem allows: ascent on logits from many random starts."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from equida.paper.theory.checks import Budget, Measure

# A start has reached the optimum when its value is this close to it; float64 has room for it.
TOLERANCE = 1e-9


@dataclass(frozen=True)
class SearchResult:
    """The end points of all ascents of one measure at one size."""

    rows: int
    classes: int
    parameters: dict[str, float]
    starts: int
    steps: int
    optimum: float
    """The value that the theorem gives."""
    best: float
    """The highest value of an end point."""
    gap: float
    """optimum - best: how far the best end point stays below."""
    excess: float
    """The highest value at any visited point minus the optimum; above 0 would refute it."""
    reached: int
    """Starts that ended at the optimum; the others are at local maxima or still under way."""
    softness: float
    """The largest 1 - max_c P_ic of any row of a maximiser that was reached."""
    sizes: list[list[int]] = field(default_factory=list)
    """The class sizes of the maximisers that were reached, largest first."""

    @property
    def attained(self) -> bool:
        """The optimum was reached and never exceeded."""
        return self.reached > 0 and self.excess <= TOLERANCE

    @property
    def one_hot(self) -> bool:
        return self.reached > 0 and self.softness <= 1e-5


def random_logits(
    starts: int, rows: int, classes: int, generator: torch.Generator, widest: float = 4.0
) -> Tensor:
    """Normal logits (float64) whose spread rises from 0.1, nearly uniform rows, to `widest`."""
    logits = torch.randn(starts, rows, classes, dtype=torch.float64, generator=generator)
    spread = torch.logspace(-1.0, torch.tensor(widest).log10().item(), starts, dtype=logits.dtype)
    return logits * spread[:, None, None]


def find_maximum(
    measure: Measure,
    optimum: float,
    shape: tuple[int, int],
    budget: Budget,
    generator: torch.Generator,
    parameters: dict[str, float],
) -> SearchResult:
    """Maximise `measure` (of a stack of matrices) over softmax matrices of `shape`.

    All starts go up at once by Adam on their logits. Its second moment forgets quickly: the
    gradient fades exponentially towards a one-hot matrix, and a step by the remembered gradient
    would stop far from it.
    """
    logits = random_logits(budget.starts, *shape, generator).requires_grad_()
    optimizer = torch.optim.Adam([logits], lr=0.5, betas=(0.9, 0.9), eps=1e-60)
    highest = -torch.inf
    for _ in range(budget.steps):
        values = measure(logits.softmax(-1))
        highest = max(highest, float(values.detach().max()))
        optimizer.zero_grad()
        values.sum().neg().backward()
        optimizer.step()
    probs = logits.detach().softmax(-1)
    values = measure(probs)
    best = float(values.max())
    maximisers = probs[values >= optimum - TOLERANCE]
    return SearchResult(
        *shape,
        parameters,
        budget.starts,
        budget.steps,
        optimum=optimum,
        best=best,
        gap=optimum - best,
        excess=max(highest, best) - optimum,
        reached=len(maximisers),
        softness=float((1.0 - maximisers.amax(-1)).max()) if len(maximisers) else 1.0,
        sizes=_sizes(maximisers),
    )


def _sizes(maximisers: Tensor) -> list[list[int]]:
    sizes = {tuple(row) for row in maximisers.sum(1).sort(-1, descending=True)[0].round().tolist()}
    return [[int(size) for size in row] for row in sorted(sizes)]


def shape_list(results: Sequence[SearchResult]) -> str:
    """The sizes B x C that were searched, each once, for a table."""
    return ", ".join(dict.fromkeys(f"{one.rows}x{one.classes}" for one in results))
