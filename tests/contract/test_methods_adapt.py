"""Every method beats source-only on a shift where source-only fails.

Five classes lie on a circle in the plane; the target is the same picture turned by 17 degrees and
moved by two thirds of the radius. The clusters stay clusters, but a third of the target lies where
the source has another class.
"""

import math
from functools import cache
from typing import NamedTuple

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from equida.methods import METHODS, Output, TaskRows, build_method

CLASSES, FEATURES, STEPS, BATCH = 5, 16, 120, 40


class Points(NamedTuple):
    x: Tensor
    y: Tensor


def circle(generator: torch.Generator, angle: float, shift: tuple[float, float]) -> Points:
    y = torch.arange(CLASSES).repeat_interleave(60)
    turned = 2 * math.pi * y / CLASSES + angle
    centres = 3.0 * torch.stack([turned.cos(), turned.sin()], 1) + torch.tensor(shift)
    return Points(centres + 0.35 * torch.randn(len(y), 2, generator=generator), y)


class Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        # Normalised features, as in every recipe: SAFN lets norms grow without a limit otherwise.
        self.body = nn.Sequential(
            nn.Linear(2, 32), nn.ReLU(),
            nn.Linear(32, FEATURES), nn.BatchNorm1d(FEATURES), nn.ReLU(),
        )  # fmt: skip
        self.classifier = nn.Linear(FEATURES, CLASSES)

    def forward(self, x: Tensor) -> Output:
        features = self.body(x)
        return Output(features, self.classifier(features))


@cache
def target_accuracy(name: str) -> float:
    """Percent of the target that is right after training with the method's defaults."""
    generator = torch.Generator().manual_seed(1)
    source = circle(generator, 0.0, (0.0, 0.0))
    target = circle(generator, 0.3, (1.8, 1.0))
    torch.manual_seed(0)
    network = Network()
    # The discriminator's width is for real features; it only costs time here.
    overrides = {"width": 64} if name in ("dann", "cdan") else None
    method = build_method(name, FEATURES, CLASSES, network.classifier, overrides)
    method.use_prepared(method.prepare(TaskRows(source.x, source.y, target.x, 0)))
    parameters = [*network.parameters(), *method.parameters()]
    optimizer = torch.optim.SGD(
        parameters, 0.05, momentum=0.9, weight_decay=1e-3, nesterov=True, fused=True
    )
    for step in range(STEPS):
        rows, columns = torch.randint(len(source.x), (2, BATCH))
        of_source, of_target = network(source.x[rows]), network(target.x[columns])
        of_target = of_target._replace(samples=columns)
        terms = method(of_source, source.y[rows], of_target, step / STEPS)
        loss = torch.stack([*terms.values()]).sum() if terms else torch.zeros(())
        if not method.owns_cross_entropy:
            loss = loss + F.cross_entropy(of_source.logits, source.y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    network.eval()
    method.eval()
    with torch.no_grad():
        predicted = method.predict(network(target.x)).argmax(1)
    return 100.0 * float((predicted == target.y).float().mean())


def test_source_only_fails() -> None:
    assert target_accuracy("source_only") < 75.0


@pytest.mark.parametrize("name", [name for name in METHODS if name != "source_only"])
def test_method_beats_source_only(name: str) -> None:
    assert target_accuracy(name) > target_accuracy("source_only") + 5.0
