"""How long a run will take, from a few timed steps."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from equida.models.backbone import load_backbone
from equida.training.recipe import Recipe

HEAD_SECONDS = 30.0
"""What training a head on features takes, about, whatever the data."""
IMAGES = 4


@dataclass(frozen=True)
class Estimate:
    """Seconds that two ways to do the same task take."""

    fine_tuning: float
    features: float


def estimate(
    backbone: str, weights: Path | None, images: int, recipe: Recipe, extractor: str | None = None
) -> Estimate:
    """What training the whole network takes on this machine, and what its features take.

    Args:
        backbone: the network to train.
        weights: a file with its weights.
        images: of both domains.
        recipe: how it is trained.
        extractor: the network that computes features, where it is another one.
    """
    module, x = _loaded(backbone, weights)
    both = _seconds(lambda: module.train()(x).sum().backward()) / IMAGES
    forward = _forward(module, x)
    steps = 2 * recipe.batch_size * recipe.iterations * recipe.accumulate * both
    evaluations = recipe.iterations / recipe.evaluate_every * images * forward
    if extractor not in (None, backbone):
        forward = _forward(*_loaded(str(extractor), None))
    return Estimate(steps + evaluations, images * forward + HEAD_SECONDS)


def _loaded(backbone: str, weights: Path | None) -> tuple[nn.Module, Tensor]:
    """The network, and images for it."""
    loaded = load_backbone(backbone, weights=weights)
    return loaded.module, torch.rand(IMAGES, *loaded.input_size)


def _forward(module: nn.Module, x: Tensor) -> float:
    """Seconds for one image without gradient."""
    with torch.inference_mode():
        return _seconds(lambda: module.eval()(x)) / IMAGES


def _seconds(call: Callable[[], object]) -> float:
    times = []
    for _ in range(3):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def duration(seconds: float) -> str:
    """The time in the unit that a person would use.

    >>> duration(45), duration(3000), duration(50_000), duration(400_000)
    ('45 s', '50 min', '14 h', '4.6 days')
    """
    if seconds < 100:
        return f"{max(seconds, 1):.0f} s"
    if seconds < 6000:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"
