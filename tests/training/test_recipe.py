import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from equida.errors import InputError
from equida.training.optimizer import schedule, sgd
from equida.training.recipe import (
    RECIPES,
    Recipe,
    default_recipe,
    hyperparameter_flag,
    recipe,
)

STEPS = (0, 1, 100, 1000, 6000)
# Learning rates that the BNM authors' lr_schedule.py (2d23c61) sets, by initial rate and multiple.
GOLDEN = {
    (0.001, 1): (0.001, 0.000999250655649, 0.000931012444622, 0.000594603557501, 0.000232368080243),
    (0.001, 10): (0.01, 0.00999250655649, 0.00931012444622, 0.00594603557501, 0.00232368080243),
    (0.0003, 1): (
        *(0.0003, 0.000299775196695, 0.000279303733387),
        *(0.00017838106725, 6.97104240728e-05),
    ),
    (0.0003, 10): (
        *(0.003, 0.00299775196695, 0.00279303733387),
        *(0.0017838106725, 0.000697104240728),
    ),
}


@pytest.mark.parametrize(("task", "rate"), [("A2W", 0.001), ("A2D", 0.0003)])
def test_the_paper_recipe_has_the_authors_learning_rates(task: str, rate: float) -> None:
    chosen = recipe("paper", benchmark="office31", task=task)
    optimizer = sgd(nn.Linear(2, 2), [nn.Linear(2, 2)], chosen)
    for number, step in enumerate(STEPS):
        schedule(optimizer, chosen, step)
        for group, multiple in zip(optimizer.param_groups, (1, 10), strict=True):
            assert group["lr"] == pytest.approx(GOLDEN[rate, multiple][number], rel=1e-11)


def test_the_paper_recipe_is_the_protocol() -> None:
    paper = RECIPES["paper"].recipe
    assert (paper.iterations, paper.batch_size, paper.momentum) == (6004, 36, 0.9)
    assert (paper.bottleneck, paper.dropout, paper.init) == (0, 0.0, "kaiming")
    assert (paper.weight_decay, paper.evaluate_every, paper.ten_crop) == (1e-3, 500, False)
    slow = {"A2D", "D2W", "W2D"}
    for task in ("A2D", "A2W", "D2A", "D2W", "W2A", "W2D"):
        rate = recipe("paper", benchmark="office31", task=task).learning_rate
        assert rate == (3e-4 if task in slow else 1e-3)
    assert recipe("paper", benchmark="office_home", task="Ar2Cl").learning_rate == 1e-3


def test_both_groups_have_momentum_and_decay_on_every_parameter() -> None:
    optimizer = sgd(nn.Linear(2, 2), [nn.Linear(2, 3)], RECIPES["paper"].recipe)
    for group in optimizer.param_groups:
        assert (group["momentum"], group["nesterov"], group["weight_decay"]) == (0.9, True, 1e-3)
        assert len(group["params"]) == 2


def test_three_steps_are_those_of_the_formula() -> None:
    """Nesterov momentum and weight decay as their formula reads, with the schedule."""
    chosen = Recipe(learning_rate=0.1, head_multiplier=10.0, weight_decay=0.01)
    layer = nn.Linear(1, 1, bias=False).double()
    weight, momentum = 0.5, 0.0
    with torch.no_grad():
        layer.weight.fill_(weight)
    optimizer = sgd(nn.Identity(), [layer], chosen)
    for step in range(3):
        schedule(optimizer, chosen, step)
        (layer.weight**2).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        gradient = 2 * weight + 0.01 * weight
        momentum = 0.9 * momentum + gradient if step else gradient
        weight -= 1.0 * (1 + 0.001 * step) ** -0.75 * (gradient + 0.9 * momentum)
        assert layer.weight.item() == pytest.approx(weight, rel=1e-12)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_the_optimiser_is_torchs_and_continues_its_state(momentum: float) -> None:
    """Bit for bit, one parameter without a gradient included, also from a stored state."""
    torch.manual_seed(0)
    ours, theirs = (nn.Sequential(nn.Linear(4, 3), nn.Linear(2, 2)) for _ in range(2))
    theirs.load_state_dict(ours.state_dict())
    chosen = Recipe(momentum=momentum)
    mine = sgd(nn.Identity(), [ours], chosen)
    reference = torch.optim.SGD(
        theirs.parameters(), 0.01, momentum, weight_decay=1e-3, nesterov=momentum > 0, fused=True
    )
    for step in range(4):
        if step == 2:
            stored = mine.state_dict()
            mine = sgd(nn.Identity(), [ours], chosen)
            mine.load_state_dict(stored)
        schedule(mine, chosen, step)
        reference.param_groups[0]["lr"] = mine.param_groups[0]["lr"]
        x = torch.randn(5, 4)
        for model, optimizer in ((ours, mine), (theirs, reference)):
            model[0](x).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        assert all(p.equal(q) for p, q in zip(ours.parameters(), theirs.parameters(), strict=True))
        assert all(parameter.grad is None for parameter in ours.parameters())


def test_every_backbone_has_a_default_recipe() -> None:
    assert default_recipe("none") == "features"
    assert default_recipe("lenet") == "digits"
    assert default_recipe("resnet50") == default_recipe("package:net") == "paper"
    for name in RECIPES:
        assert RECIPES[name].name == name
        assert RECIPES[name].idea.endswith(".")


def test_numbers_have_the_type_of_their_field() -> None:
    """So that a learning rate of 1 and one of 1.0 are the same run."""
    made = Recipe(learning_rate=1, iterations=np.int64(5), compile=np.bool_(True))  # type: ignore[arg-type]
    assert made == Recipe(learning_rate=1.0, iterations=5, compile=True)
    assert [type(v) for v in (made.learning_rate, made.iterations, made.compile)] == [
        float, int, bool,
    ]  # fmt: skip


def test_a_hyper_parameter_has_its_method_in_front_where_a_recipe_has_the_name_too() -> None:
    assert hyperparameter_flag(["nsm"], "nsm", "trade_off") == "trade_off"
    assert hyperparameter_flag(["dann"], "dann", "dropout") == "dann_dropout"
    assert hyperparameter_flag(["dann", "nsm"], "nsm", "trade_off") == "nsm_trade_off"


def test_overrides_come_last_and_unknown_ones_are_named() -> None:
    changed = recipe("paper", {"learning_rate": 0.5}, benchmark="office31", task="A2D")
    assert changed.learning_rate == 0.5
    with pytest.raises(InputError, match="no field 'lr'"):
        recipe("paper", {"lr": 1})
    with pytest.raises(InputError, match="did you mean 'paper'"):
        recipe("papper")


@pytest.mark.parametrize(
    "field",
    [
        {"iterations": 0},
        {"iterations": 1.5},
        {"dropout": 1.0},
        {"learning_rate": float("nan")},
        {"clip": -1.0},
        {"gamma": "a"},
        {"init": "foo"},
        {"precision": "16"},
        {"compile": 1},
    ],
)
def test_impossible_values_are_named(field: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"{next(iter(field))} is "):
        dataclasses.replace(RECIPES["features"].recipe, **field)
