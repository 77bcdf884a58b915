"""What the loop works on, made from a config and a task: network, method, optimiser, transforms."""

import dataclasses
import typing
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from equida.data import ArrayDomain, Domain, Task
from equida.data.transforms import Transform, evaluation_transform, train_transform
from equida.errors import InputError
from equida.evaluation.shares import ShareEstimate
from equida.files import file_sha256
from equida.methods import build_method
from equida.models.backbone import Backbone, check_trainable, load_backbone
from equida.models.network import Network
from equida.models.sync_batchnorm import with_shared_statistics
from equida.training.aims import (
    StartingNetwork,
    apply_aims,
    estimate_of,
    find_aims,
    unequal_priors,
)
from equida.training.config import Aim, RunConfig
from equida.training.folder import RunFolder
from equida.training.objective import Objective
from equida.training.optimizer import freeze, sgd
from equida.training.processes import AnyFabric, on_rank_zero
from equida.training.target_check import UnadaptedView

SOURCE_SAMPLES = 500
"""How many training samples source accuracy is measured on where none are held out."""


@dataclass(frozen=True)
class SeededBackbone:
    """A backbone that was loaded before the run it is for, as the run itself would have loaded it.

    Random layers depend on the seed, and the head is initialised with the random numbers that
    follow: handing the backbone over must not change either.
    """

    backbone: Backbone
    rng_state: Tensor
    """The state of torch's generator, once the backbone was loaded."""

    @classmethod
    def load(cls, name: str, weights: Path | None, seed: int) -> "SeededBackbone":
        """Load a backbone with the seed of the run that will train it."""
        torch.manual_seed(seed)
        backbone = load_backbone(name, weights=weights)
        check_trainable(backbone)
        return cls(backbone, torch.get_rng_state())


@dataclass
class Built:
    """Everything the loop works on."""

    config: RunConfig
    """With the hash of the weights that were used, and the class shares that are aimed at."""
    objective: Objective
    optimizer: torch.optim.SGD
    source: Domain | None
    """What is trained on; None in source-free adaptation."""
    held_out: Domain | None
    """What source accuracy is measured on."""
    source_transform: Transform | None
    """How source images are prepared for training; None for rows."""
    target_transform: Transform | None
    """How target images are prepared for training; None for rows."""
    eval_transform: Transform | None
    """How images are prepared for evaluation; None for rows."""
    dtype: torch.dtype
    start_view: UnadaptedView | None = None
    """In source-free adaptation, what the network says of the target before it is trained."""
    estimated: Aim | ShareEstimate | None = None
    """The class shares of the target, where they were estimated before training: recorded as an
    aim, or by a look at the features that training starts from."""


def build_run(
    config: RunConfig,
    task: Task,
    fabric: AnyFabric,
    loaded: SeededBackbone | None = None,
    *,
    look_at_target: bool = False,
    announce: Callable[[str], None] = lambda what: None,
) -> Built:
    """Network, method, optimiser and transforms of a run.

    Args:
        loaded: the config's backbone, where it has been loaded already.
        look_at_target: let the network look at the target before it is trained: in source-free
            adaptation, and where one process fine-tunes a backbone on images.
        announce: told what is done before training, where that takes long.
    """
    recipe = config.recipe
    objective, backbone = make_objective(
        config,
        len(task.classes),
        row_shape(task.target),
        pretrained=not config.from_run,
        loaded=loaded,
    )
    objective.processes = fabric.world_size
    network = objective.network
    sha256 = backbone.weights_sha256 if backbone else ""
    if config.from_run:
        sha256 = _start_from(Path(config.from_run), objective)
    freeze(network.backbone, recipe.freeze)
    objective.train()
    if recipe.channels_last:
        objective.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    plain = _eval_transform(backbone, task.target, ten_crop=False)
    temperature = RunFolder(Path(config.from_run)).temperature() if config.from_run else 1.0
    start = StartingNetwork(network, plain, recipe, fabric.device, sha256, temperature)
    priors = {part.prior for part in unequal_priors(config).values()}
    if not config.aims and "estimate" in priors:
        announce("estimating the target's class shares")
    aims = find_aims(config, task, fabric, start)
    view: UnadaptedView | None = None
    estimated: Aim | ShareEstimate | None = next(
        (aim for aim in aims.values() if aim.agreement is not None), None
    )
    if look_at_target and config.from_run:
        view = on_rank_zero(fabric, lambda: start.view(task.judged))
    # Several processes would wait for the one that looks, longer than they may.
    elif look_at_target and estimated is None and sha256 and fabric.world_size == 1:
        announce("estimating the target's class shares from the features before training")
        judged = dataclasses.replace(task, target=task.judged, test=None)
        estimated = estimate_of(config, judged, start)
    apply_aims(objective.method, aims)
    if fabric.device.type == "cuda" and fabric.world_size > 1:
        objective = typing.cast(Objective, with_shared_statistics(objective))
    if recipe.compile:
        network.compile()
    source, held_out = (None, None) if config.from_run else split(task.source, config)
    if held_out is not None and not len(held_out):
        raise InputError(
            f"holdout is {recipe.holdout}, which keeps no sample of {task.source.name} apart: every"
            " class has one; set it to 0"
        )
    return Built(
        dataclasses.replace(config, weights_sha256=sha256, aims=aims),
        objective,
        sgd(
            network.backbone,
            (network.bottleneck, network.classifier, objective.method),
            recipe,
        ),
        source,
        held_out,
        _train_transform(backbone, task.source),
        _train_transform(backbone, task.target),
        _eval_transform(backbone, task.target, recipe.ten_crop),
        torch.float64 if recipe.precision == "64-true" else torch.float32,
        view,
        estimated,
    )


def make_objective(
    config: RunConfig,
    classes: int,
    shape: tuple[int, ...] | None,
    *,
    pretrained: bool = True,
    loaded: SeededBackbone | None = None,
) -> tuple[Objective, Backbone | None]:
    """Network and method, freshly initialised.

    Args:
        shape: of a row; None for images.
        pretrained: False where the backbone's weights will be replaced anyway.
        loaded: the config's backbone, where it has been loaded already.
    """
    recipe, backbone = config.recipe, None
    if config.backbone == "none":
        if shape is None or len(shape) != 1:
            raise InputError(
                "images need a backbone to turn them into features; "
                "choose one, such as --backbone tf_efficientnet_lite0"
            )
        module: nn.Module = nn.Identity()
        width = shape[0]
    else:
        if shape is not None and len(shape) == 1:
            raise InputError(
                f"rows are features already; backbone {config.backbone!r} is for images"
            )
        backbone = _backbone(config, pretrained, loaded)
        module, width = backbone.module, backbone.width
        if shape is not None:
            _check_fit(backbone, shape)
    network = Network(
        module,
        width,
        classes,
        bottleneck=recipe.bottleneck,
        normalize=recipe.bottleneck_norm,
        relu=recipe.bottleneck_relu,
        dropout=recipe.dropout,
        init=recipe.init,
    )
    method = build_method(
        config.method,
        network.features,
        classes,
        network.classifier,
        config.overrides,
        config.benchmark,
    )
    return Objective(network, method, recipe.label_smoothing, recipe.warm_up), backbone


def _backbone(config: RunConfig, pretrained: bool, loaded: SeededBackbone | None) -> Backbone:
    if loaded is not None:
        torch.set_rng_state(loaded.rng_state)
        return loaded.backbone
    weights = Path(config.weights) if config.weights and pretrained else None
    backbone = load_backbone(config.backbone, weights=weights, pretrained=pretrained)
    check_trainable(backbone)
    return backbone


def _check_fit(backbone: Backbone, shape: tuple[int, ...]) -> None:
    """Raise InputError where arrays of images do not fit the backbone."""
    if not backbone.takes(shape):
        raise InputError(
            f"samples are of shape {shape}, and backbone {backbone.name!r} takes "
            f"{backbone.input_size}; choose another --backbone"
        )


def row_shape(domain: Domain) -> tuple[int, ...] | None:
    """The shape of one row, or None for images."""
    if not isinstance(domain, ArrayDomain):
        return None
    shape = tuple(int(n) for n in domain.values.shape[1:])
    return shape[1:] if len(shape) == 2 else shape


def _train_transform(backbone: Backbone | None, domain: Domain) -> Transform | None:
    """The protocol's training transform for images of that domain; None for rows."""
    if backbone is None or isinstance(domain, ArrayDomain):
        return None
    return train_transform(domain.train_crop, backbone.mean, backbone.std, backbone.input_size[1])


def _eval_transform(backbone: Backbone | None, domain: Domain, ten_crop: bool) -> Transform | None:
    """The protocol's evaluation transform; None for rows."""
    if backbone is None or isinstance(domain, ArrayDomain):
        return None
    size = backbone.input_size[1]
    return evaluation_transform(backbone.mean, backbone.std, size, ten_crop=ten_crop)


def split(source: Domain, config: RunConfig) -> tuple[Domain, Domain]:
    """What is trained on and what source accuracy is measured on.

    With `holdout`, that share of each class (at least one sample of a class with two or more) is
    kept apart; without it, the second is an evenly spaced choice from the first.
    """
    labels = source.labels
    if labels is None:
        raise InputError(
            f"{source.named_as('source')} has no labels; expected class folders or labels"
        )
    share = config.recipe.holdout
    if not share:
        return source, source.select(np.arange(0, len(source), -(-len(source) // SOURCE_SAMPLES)))
    generator = np.random.default_rng(config.seed)
    kept: list[int] = []
    for label in np.unique(labels):
        members = generator.permutation(np.flatnonzero(labels == label))
        count = max(1, round(share * len(members))) if len(members) > 1 else 0
        kept += members[:count].tolist()
    held = np.zeros(len(source), bool)
    held[kept] = True
    if held.all():
        raise InputError(
            f"holdout is {share}, which leaves nothing of {source.name} to train on; lower it"
        )
    return source.select(np.flatnonzero(~held)), source.select(np.flatnonzero(held))


def _start_from(run: Path, objective: Objective) -> str:
    """Load the network of a finished run and freeze its classifier; returns its weights' hash."""
    prefix = "network."
    stored = RunFolder(run).load_tensors("model.safetensors")
    state = {name.removeprefix(prefix): v for name, v in stored.items() if name.startswith(prefix)}
    try:
        objective.network.load_state_dict(state)
    except RuntimeError:
        here = objective.network.state_dict()
        other = [n for n in state if n not in here or here[n].shape != state[n].shape]
        shapes = [tuple(v[other[0]].shape) for v in (state, here) if other and other[0] in v]
        seen = f" ({other[0]}: {' there, '.join(map(str, shapes))} here)" if other else ""
        raise InputError(
            f"the network of {run} does not fit what it would be here{seen}; give it features of"
            " the same width, and leave bottleneck, bottleneck_norm and bottleneck_relu as they"
            " were"
        ) from None
    objective.network.classifier.requires_grad_(False)
    return file_sha256(run / "model.safetensors")
