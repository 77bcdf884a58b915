"""The one training loop: every method, on images and on features, on one process and on many."""

import dataclasses
import functools
import operator
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from equida.data import Task
from equida.distributed import whole_batches
from equida.errors import InputError
from equida.evaluation.predictions import DomainPredictions
from equida.methods import METHODS
from equida.methods.compose import split_name
from equida.training.aims import aim_of, with_recorded_aims
from equida.training.build import SeededBackbone, build_run, split
from equida.training.config import RunConfig
from equida.training.evaluate import predict
from equida.training.feed import Feed
from equida.training.optimizer import schedule
from equida.training.prepare import prepare_method
from equida.training.processes import (
    AnyFabric,
    backward,
    clip_gradient,
    make_fabric,
    on_rank_zero,
    precision_of,
    prepare,
    without_exchange,
)
from equida.training.recorder import Announced, Observer, Recorder, Trained
from equida.training.target_check import (
    FEWEST_HELD_OUT,
    Uncalibrated,
    calibrate,
    describe_target,
    source_view,
)


@whole_batches()
def train(
    config: RunConfig,
    task: Task,
    *,
    folder: Path | None = None,
    fabric: AnyFabric | None = None,
    observers: tuple[Observer, ...] = (),
    validators: tuple[str, ...] = (),
    backbone: SeededBackbone | None = None,
    look_at_target: bool = False,
    calibrate_confidences: bool = False,
) -> Trained:
    """Adapt a network from the task's source to its target.

    Args:
        config: the method and how it is trained.
        task: the data.
        folder: where the run is written; an unfinished run there is continued. None: nothing is
            written.
        fabric: device, precision and processes; None: one process on the best device.
        observers: told of losses and evaluations as they come.
        validators: costly ones that each evaluation computes, besides the one that `keep` names.
        backbone: the config's backbone, where it has been loaded already; it is trained in place.
        look_at_target: say in the result how large the target's classes look and, on rows of
            features and without source data, whether adaptation may have hurt. For rows that takes
            seconds, once for each task; without source data one pass over the target; on images
            that one process fine-tunes one pass over both domains (10,000 samples of each at most).
        calibrate_confidences: fit a temperature to held-out source samples; on rows of features,
            where none are held out, another run is done for it, with some held out.

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

    def announce(what: str) -> None:
        for observer in observers:
            if isinstance(observer, Announced):
                observer.announced(what)

    built = build_run(
        config, task, fabric, backbone, look_at_target=look_at_target, announce=announce
    )
    objective, optimizer = prepare(fabric, built.objective, built.optimizer)
    torch.manual_seed(config.seed + fabric.global_rank)
    feed = Feed(built.config, fabric, built.dtype)
    recorder = Recorder(task, built, fabric, feed, folder, observers, validators)
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
                backward(fabric, _sum(terms, recipe.accumulate))
            recorder.add_terms(step * recipe.accumulate + part, terms)
        if recipe.clip:
            clip_gradient(fabric, objective, optimizer, recipe.clip)
        optimizer.step()
        optimizer.zero_grad()
        recorder.after_step(step + 1)

    def describe(predictions: DomainPredictions) -> dict[str, Any]:
        view = built.start_view
        if look_at_target and not config.from_run:
            judged = dataclasses.replace(task, target=task.judged, test=None)
            view = on_rank_zero(fabric, lambda: source_view(judged))
        aim = aim_of(built.objective.method, built.config.aims)
        found = describe_target(predictions, view, aim, built.estimated)
        if calibrate_confidences:
            held_out = recorder.predict_held_out()
            refit = partial(_held_out_again, task, fabric)
            found |= calibrate(built.config, predictions, held_out, refit)
        return found

    return recorder.finish(describe)


def _held_out_again(
    task: Task, fabric: AnyFabric, config: RunConfig
) -> DomainPredictions | Uncalibrated:
    """The predictions for held-out source samples of a run that keeps some apart; the reason where
    such a run would take long, or where the source is too small for it."""
    if config.from_run:
        return Uncalibrated("no source")
    if config.backbone != "none" or fabric.world_size > 1:
        return Uncalibrated("none held out")
    kept, held_out = split(task.source, config)
    recipe = config.recipe
    if len(held_out) < FEWEST_HELD_OUT:
        return Uncalibrated("few held out", len(held_out), FEWEST_HELD_OUT)
    if len(kept) < recipe.batch_size:
        return Uncalibrated("few left", len(kept), recipe.batch_size)
    if recipe.keep == "last":  # what is evaluated on the way chooses nothing
        recipe = dataclasses.replace(recipe, evaluate_every=recipe.iterations)
        config = dataclasses.replace(config, recipe=recipe)
    again = train(config, task, fabric=fabric).built
    return predict(again.objective, held_out, None, batch_size=recipe.eval_batch_size)


def _check(config: RunConfig, fabric: AnyFabric) -> None:
    """Raise InputError where the run would differ from what its config.json says."""
    recipe, used = config.recipe, precision_of(fabric)
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
