"""What runs take, before and after some have ended."""

from pathlib import Path

import pytest

from equida.experiments.cost import expensive_methods, relative_cost, seconds_left
from equida.experiments.grid import Grid, PlannedRun, plan
from equida.methods import METHODS
from equida.runs.entry import Entry
from equida.runs.variant import Variant


def planned(*methods: str, backbone: str = "none") -> dict[str, PlannedRun]:
    variants = tuple(map(Variant, methods))
    recipe = "features" if backbone == "none" else "paper"
    grid = Grid("office31", variants, ("A2W",), (0,), recipe, backbone=backbone)
    return {run.config.method: run for run in plan(grid, Path("runs"))}


def ended(run: PlannedRun, seconds: float) -> Entry:
    return run.entry({"last": {}, "picks": {}, "metric": "accuracy", "seconds": seconds})


def test_heads_with_many_weights_are_known_to_cost_more() -> None:
    runs = planned("source_only", "nsm", "dann", "cdan", "nsm+cdan")
    cost = {method: relative_cost(run.config) for method, run in runs.items()}
    # A discriminator: two hidden layers of 1024 and one output, with biases. CDAN's sees the 1024
    # products of its randomised map, as 256 * 31 would be too many.
    layers = 1024 + 1024 * 1024 + 1024 + 1024 + 1
    steps = runs["nsm"].config.recipe.iterations
    assert cost["dann"] - cost["nsm"] == steps * (256 * 1024 + layers)
    assert cost["cdan"] - cost["nsm"] == steps * (1024 * 1024 + layers)
    assert cost["source_only"] == cost["nsm"]
    assert cost["nsm+cdan"] == cost["cdan"]
    said = expensive_methods(list(runs.values()))
    assert said.startswith("judged by the number of trained weights, some methods take many")
    assert "as long as Source only: DANN about 3 times" in said
    assert "CDAN about 5 times" in said
    assert not expensive_methods(list(planned("nsm", "bnm").values()))
    assert not expensive_methods(list(planned("nsm", "cdan", backbone="resnet50").values()))


def test_every_method_has_a_cost() -> None:
    runs = planned(*METHODS)
    assert all(relative_cost(run.config) > 0 for run in runs.values())


def test_the_time_left_is_by_method_and_by_jobs() -> None:
    runs = planned("source_only", "nsm", "bnm", "cdan")
    first = ended(runs["source_only"], 10.0)
    left = [runs["nsm"], runs["bnm"]]
    assert seconds_left(left, [], 1) is None
    assert seconds_left([], [first], 1) == 0.0
    assert seconds_left(left, [first], 1) == pytest.approx(20.0)
    assert seconds_left(left, [first], 2) == pytest.approx(10.0)
    # Nothing of CDAN has ended, so its weights tell; then its own time does.
    ratio = relative_cost(runs["cdan"].config) / relative_cost(runs["nsm"].config)
    costs = {"source_only": relative_cost(runs["source_only"].config)}
    guess = seconds_left([runs["cdan"]], [first], 1, costs)
    assert guess == pytest.approx(10.0 * ratio)
    slow = ended(runs["cdan"], 33.0)
    assert seconds_left([runs["cdan"]], [first, slow], 2) == 33.0
