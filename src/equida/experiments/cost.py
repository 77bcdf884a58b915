"""What runs take: guessed before by the weights that they train, and known once some have ended."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

import torch
from torch import nn

from equida.errors import InputError
from equida.experiments.grid import PlannedRun
from equida.methods.compose import build_method
from equida.runs.entry import Entry
from equida.runs.variant import method_title
from equida.training.config import RunConfig

FEATURES, CLASSES = 2048, 30
"""What is assumed of the data until they are opened in the workers."""
FAR_MORE = 3.0


def relative_cost(config: RunConfig) -> float:
    """What a run costs beside others of its grid, in any unit.

    On rows it is the number of trained weights times the number of steps: the discriminators of
    DANN and CDAN have more weights than the rest. With images the backbone outweighs them all. It
    serves the first guess only; times that were measured take its place.
    """
    if config.backbone != "none":
        return 1.0
    width = config.recipe.bottleneck or FEATURES
    classes = len(config.data_set.classes) if config.data_set else CLASSES
    network = FEATURES * width + width * classes
    own = _own_weights(config.method, config.benchmark, width, classes)
    return float(config.recipe.iterations * (network + own))


@cache
def _own_weights(method: str, benchmark: str | None, width: int, classes: int) -> int:
    """The weights of a method's own heads."""
    try:
        with torch.device("meta"):
            made = build_method(method, width, classes, nn.Linear(width, classes), {}, benchmark)
    except (InputError, NotImplementedError, RuntimeError):  # a plug-in that needs real tensors
        return 0
    return sum(weight.numel() for weight in made.parameters())


def expensive_methods(planned: Sequence[PlannedRun]) -> str:
    """In one line, which methods cost far more than the cheapest; "" where none does."""
    costs: dict[str, float] = {}
    for run in planned:
        costs.setdefault(run.config.method, relative_cost(run.config))
    least = min(costs.values(), default=0.0)
    said = [
        f"{method_title(method)} about {cost / least:.0f} times"
        for method, cost in costs.items()
        if cost > FAR_MORE * least
    ]
    cheapest = next((method for method, cost in costs.items() if cost == least), "")
    if not said:
        return ""
    return (
        "judged by the number of trained weights, some methods take many times as long as"
        f" {method_title(cheapest)}: {', '.join(said)}"
    )


def seconds_left(
    left: Iterable[PlannedRun],
    ended: Iterable[Entry],
    jobs: int,
    costs: Mapping[str, float] | None = None,
) -> float | None:
    """How long the runs that are left will take; None before any has ended.

    A run takes as long as those of its method that have ended. Where none of its method has, its
    time is scaled from the methods that have, by the ratio of their costs.

    Args:
        left: the runs that have not ended.
        ended: runs that have, in this call or an earlier one.
        jobs: how many are done at once.
        costs: of methods that have ended, beside those of the runs that are left.
    """
    times: dict[str, list[float]] = {}
    for entry in ended:
        if entry.result is not None and entry.result.get("seconds"):
            times.setdefault(entry.variant.method, []).append(float(entry.result["seconds"]))
    waiting = list(left)
    if not times or not waiting:
        return None if waiting else 0.0
    cost = {**(costs or {}), **{r.config.method: relative_cost(r.config) for r in waiting}}
    known = {method: statistics.fmean(each) for method, each in times.items()}
    bases = [seconds / cost[method] for method, seconds in known.items() if method in cost]
    # Where all that has ended is of other methods, those count as cheap ones.
    unit = statistics.fmean(bases) if bases else max(known.values()) / min(cost.values())
    each = [known.get(run.config.method, unit * cost[run.config.method]) for run in waiting]
    return max(sum(each) / max(1, min(jobs, len(waiting))), max(each))
