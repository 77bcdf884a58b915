"""The one training loop: every method, on images and on features, on one process and on many."""

import functools
import operator
from collections.abc import Mapping
from pathlib import Path

import torch
from lightning_fabric import Fabric
from torch import Tensor

from equida.data import Task
from equida.distributed import whole_batches
from equida.errors import InputError
from equida.methods import METHODS
from equida.methods.compose import split_name
from equida.training.aims import with_recorded_aims
from equida.training.build import SeededBackbone, build
from equida.training.config import RunConfig
from equida.training.feed import Feed
from equida.training.optimizer import schedule
from equida.training.prepare import prepare_method
from equida.training.processes import make_fabric, prepare, without_exchange
from equida.training.recorder import Observer, Recorder, Stepped, Trained

__all__ = ["Observer", "Stepped", "Trained", "train"]


@whole_batches()
def train(
    config: RunConfig,
    task: Task,
    *,
    folder: Path | None = None,
    fabric: Fabric | None = None,
    observers: tuple[Observer, ...] = (),
    backbone: SeededBackbone | None = None,
) -> Trained:
    """Adapt a network from the task's source to its target.

    Args:
        config: the method and how it is trained.
        task: the data.
        folder: where the run is written; an unfinished run there is continued. None: nothing is
            written.
        fabric: device, precision and processes; None: one process on the best device.
        observers: told of losses and evaluations as they come.
        backbone: the config's backbone, where it has been loaded already; it is trained in place.

    Raises:
        InputError: the config and the task do not fit, the loss is no longer finite, or the folder
            cannot be written or holds another run.
    """
    config.check()
    recipe = config.recipe
    fabric = fabric or make_fabric(precision=recipe.precision)
    _check(config, fabric)
    config = with_recorded_aims(config, folder, fabric)
    torch.manual_seed(config.seed)
    built = build(config, task, fabric, backbone)
    objective, optimizer = prepare(fabric, built.objective, built.optimizer)
    torch.manual_seed(config.seed + fabric.global_rank)
    feed = Feed(built.config, fabric, built.dtype)
    recorder = Recorder(task, built, fabric, feed, folder, observers)
    start = recorder.resume()
    prepares = prepare_method(built, task, fabric, recorder.folder, resumed=start > 0)
    draws = start * recipe.accumulate
    sources = (
        None
        if built.source is None
        else feed.stream("source", built.source, built.source_transform, draws)
    )
    targets = feed.stream("target", task.target, built.target_transform, draws)

    for step in range(start, recipe.iterations):
        schedule(optimizer, recipe, step)
        for part in range(recipe.accumulate):
            source, target = None if sources is None else next(sources), next(targets)
            more = part < recipe.accumulate - 1
            with without_exchange(fabric, objective, more):
                samples = feed.positions(target) if prepares else None
                inputs = feed.inputs(source, target)
                terms = objective(*inputs, step / recipe.iterations, samples)
                fabric.backward(_sum(terms, recipe.accumulate))
            recorder.note(step * recipe.accumulate + part, terms)
        if recipe.clip:
            # A gradient that is not finite shows in the next loss; a look here would wait for it.
            fabric.clip_gradients(
                objective, optimizer, max_norm=recipe.clip, error_if_nonfinite=False
            )
        optimizer.step()
        optimizer.zero_grad()
        recorder.after(step + 1)
    return recorder.finish()


def _check(config: RunConfig, fabric: Fabric) -> None:
    """Raise InputError where the run would differ from what its config.json says."""
    recipe, used = config.recipe, fabric.strategy.precision.precision
    if used != recipe.precision:
        raise InputError(
            f"precision is {recipe.precision!r}, which is {used!r} on this {fabric.device.type}; "
            f"choose {used!r} (--precision {used}), or another device"
        )
    own = [part for part in split_name(config.method) if METHODS[part].method.owns_cross_entropy]
    if recipe.label_smoothing and own:
        raise InputError(
            f"label_smoothing is {recipe.label_smoothing}, but {own[0]} has a source "
            "cross-entropy of its own, which does not use it; set it to 0"
        )


def _sum(terms: Mapping[str, Tensor], batches: int) -> Tensor:
    """The step's loss: the mean over its batches of the sum of the terms."""
    total = functools.reduce(operator.add, terms.values())
    return total if batches == 1 else total / batches
