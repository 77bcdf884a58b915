"""How long a run will take, from a few timed steps."""

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from equida.models.backbone import ALIASES, Backbone, load_backbone
from equida.training.recipe import Recipe

HEAD_SECONDS = 30.0
"""How long training a head on features takes, roughly, whatever the data."""
IMAGES = 4


@dataclass(frozen=True)
class Estimate:
    """Seconds that two ways to do the same task take."""

    fine_tuning: float
    features: float


def estimate(
    backbone: Backbone, images: int, recipe: Recipe, extractor: str | None = None
) -> Estimate:
    """How long training the whole network takes on this machine, and training on its features.

    The backbone is left as it is: what is timed is a copy of it.

    Args:
        images: how many images both domains have.
        extractor: the network that computes features, where it is another one.
    """
    module, x = _copied(backbone)
    both = _seconds(lambda: module.train()(x).sum().backward()) / IMAGES
    forward = _forward(module, x)
    steps = 2 * recipe.batch_size * recipe.iterations * recipe.accumulate * both
    evaluations = recipe.iterations / recipe.evaluate_every * images * forward
    if extractor and ALIASES.get(extractor, extractor) != backbone.name:
        forward = _forward(*_copied(load_backbone(extractor)))
    return Estimate(steps + evaluations, images * forward + HEAD_SECONDS)


def _copied(backbone: Backbone) -> tuple[nn.Module, Tensor]:
    """A copy of the network, and images for it."""
    return copy.deepcopy(backbone.module), torch.rand(IMAGES, *backbone.input_size)


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
