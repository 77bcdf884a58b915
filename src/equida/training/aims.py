"""The class shares that a run's methods aim at: found once before training, then fixed."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from equida.class_shares import is_shares
from equida.clustering import estimate_aim
from equida.data import ArrayDomain, Domain, Task
from equida.data.batches import eval_batches
from equida.data.classes import class_key, match_classes
from equida.data.transforms import Transform
from equida.errors import InputError, enumerated
from equida.evaluation.shares import ShareEstimate, estimate_shares
from equida.methods import Method, configure
from equida.methods.aiming import AimingMethod, prior_title
from equida.methods.compose import Composite
from equida.models.network import Network, evaluating
from equida.training.config import Aim, RunConfig
from equida.training.folder import RunFolder
from equida.training.processes import AnyFabric, on_rank_zero
from equida.training.recipe import Recipe
from equida.training.target_check import (
    MOST_ROWS,
    UnadaptedView,
    evenly_spaced,
    source_view,
    start_view,
)

_ESTIMATES: WeakKeyDictionary[
    Domain, WeakKeyDictionary[Domain, tuple[str, bool, ShareEstimate]]
] = WeakKeyDictionary()
"""Estimates by target and source: what was looked at ("rows", or features by the weights of this
digest), whether to aim at it, and what was estimated."""
DIGITS = 6
"""A recorded share has so many: more would be noise, and differ from machine to machine."""


@dataclass(frozen=True)
class StartingNetwork:
    """The network that training starts from, and what it says of evenly spaced samples."""

    network: Network
    transform: Transform | None
    """How images are prepared for it; None for rows."""
    recipe: Recipe
    device: torch.device
    weights_sha256: str = ""
    """The digest of the backbone's weights; "" for random ones."""
    temperature: float = 1.0
    """The temperature by which the finished run of this network has calibrated its confidences."""
    views: dict[Domain, UnadaptedView] = field(default_factory=dict, repr=False)
    """What was said of the domains that were looked at."""

    def features(self, domain: Domain) -> NDArray[np.float64]:
        """What the backbone computes; rows of features stay as they are."""
        (features,) = self._outputs(domain, lambda x: (self.network.backbone(x),))
        return features

    def view(self, domain: Domain) -> UnadaptedView:
        """What the network says of a domain, calibrated; each domain is looked at once."""
        if domain not in self.views:
            features, logits = self._outputs(domain, self.network)
            probs = torch.from_numpy(logits / self.temperature).softmax(1).numpy()
            self.views[domain] = start_view(len(domain), features, probs)
        return self.views[domain]

    def _outputs(
        self, domain: Domain, compute: Callable[[Tensor], tuple[Tensor, ...]]
    ) -> list[NDArray[np.float64]]:
        chosen = domain if len(domain) <= MOST_ROWS else domain.select(evenly_spaced(len(domain)))
        recipe = self.recipe
        batches = eval_batches(
            chosen, self.transform, recipe.eval_batch_size, workers=recipe.workers
        )
        with torch.no_grad(), evaluating(self.network.to(self.device)):
            outputs = [
                [part.double().cpu() for part in compute(batch.x.to(self.device))]
                for batch in batches
            ]
        return [torch.cat(parts).numpy() for parts in zip(*outputs, strict=True)]


def unequal_priors(config: RunConfig) -> dict[str, Any]:
    """The config of each part of a run's method that aims at other than equal shares."""
    parts = configure(config.method, config.overrides, config.benchmark)
    return {
        name: part for name, part in parts.items() if getattr(part, "prior", "uniform") != "uniform"
    }


def check_priors(config: RunConfig, task: Task) -> None:
    """Raise InputError where the shares that are asked for cannot be had from the data."""
    for name, part in unequal_priors(config).items():
        if part.prior != "estimate":
            _known_shares(f"{name}.prior", part.prior, config, task)


def find_aims(
    config: RunConfig,
    task: Task,
    fabric: AnyFabric,
    start: StartingNetwork,
) -> dict[str, Aim]:
    """For each part of the method that aims at other than equal shares, those shares.

    Where the config has them already, as in a run that is continued or done again, they stay. Rank
    zero finds them, and every process gets the same.
    """
    asked = unequal_priors(config)
    if set(config.aims) == set(asked):
        for name, aim in config.aims.items():
            _check_recorded(name, aim, len(task.classes))
        return dict(config.aims)
    return on_rank_zero(fabric, lambda: _records(asked, config, task, start))


def _check_recorded(name: str, aim: Aim, classes: int) -> None:
    """Raise InputError where shares from a file cannot be those of the run."""
    found = np.array(aim.aim)
    if found.shape != (classes,) or not ((found >= 0).all() and abs(found.sum() - 1) < 1e-3):
        raise InputError(
            f"config.json: aims.{name}.aim has {len(found)} shares that sum to {found.sum():g};"
            f" expected {classes} shares that sum to 1"
        )


def with_recorded_aims(config: RunConfig, folder: Path | None, fabric: AnyFabric) -> RunConfig:
    """The config with the shares that an unfinished run of the same config has recorded."""
    if folder is None or config.aims or not unequal_priors(config):
        return config

    def recorded() -> Mapping[str, Aim]:
        there = RunFolder(folder).read_config()
        return there.aims if there and there.describes_same_run(config) else {}

    return replace(config, aims=on_rank_zero(fabric, recorded))


def apply_aims(method: Method, aims: Mapping[str, Aim]) -> None:
    """Let each part of a method aim at its shares."""
    for name, aim in aims.items():
        part = method.part(name) if isinstance(method, Composite) else method
        assert isinstance(part, AimingMethod), f"{name} has no shares to aim at"
        part.aim_at(aim.aim)


def aim_of(method: Method, aims: Mapping[str, Aim]) -> list[float] | None:
    """The class shares that a method aims at; None where it has none, or its parts have different.

    Parts without an entry in `aims` aim at equal shares.
    """
    parts = method.methods.values() if isinstance(method, Composite) else [method]
    aiming = sum(isinstance(part, AimingMethod) for part in parts)
    found = {tuple(aim.aim) for aim in aims.values()}
    if aiming > len(aims):
        found.add((1.0 / method.classes,) * method.classes)
    return list(found.pop()) if len(found) == 1 else None


def aim_lines(aims: Mapping[str, Aim], classes: Sequence[str]) -> list[str]:
    """For each part of a method that aims at other than equal shares, a line that says at which.

    >>> aim_lines({"nsm": Aim("source", 1.0, [0.7, 0.3], [0.7, 0.3], False)}, ["mug", "pen"])
    ['nsm aims at class shares by source: mug 70.0 % to pen 30.0 %, uniform would be 50.0 %']
    """
    lines = []
    for part, aim in aims.items():
        shares = np.array(aim.aim)
        most, least = int(shares.argmax()), int(shares.argmin())
        by = _given_title(aim.prior, classes) if is_shares(aim.prior) else prior_title(aim.prior)
        if aim.agreement is not None:
            trust = aim.agreement if aim.trust is None else aim.trust
            by += f" (trusted by {100 * trust:.0f} %)"
        elif aim.strength < 1.0:
            by += f", mixed with equal ones by prior_strength {aim.strength:g}"
            by += " (1 takes them as they are)"
        if aim.aim[most] == aim.aim[least]:
            lines.append(f"{part} aims at class shares by {by}: uniform ones")
            continue
        lines.append(
            f"{part} aims at class shares by {by}: {classes[most]} {100 * shares[most]:.1f} % to"
            f" {classes[least]} {100 * shares[least]:.1f} %, uniform would be"
            f" {100 / len(shares):.1f} %"
        )
    return lines


def _given_title(prior: str, classes: Sequence[str]) -> str:
    """Shares that were given, with the classes that they do not name."""
    given, title = json.loads(prior), "the list that was given"
    if isinstance(given, list):
        return title
    named = set(map(class_key, given))
    missing = [name for name in classes if class_key(name) not in named]
    if not missing:
        return title
    return f"{title} (which has none for {enumerated(missing, 4)})"


def _records(
    asked: Mapping[str, Any], config: RunConfig, task: Task, start: StartingNetwork
) -> dict[str, Aim]:
    estimated: Aim | None = None
    records = {}
    for name, part in asked.items():
        if part.prior == "estimate":
            estimated = estimated or _estimated_aim(
                estimate_of(config, task, start, to_aim_at=True)
            )
            records[name] = estimated
            continue
        shares = _known_shares(f"{name}.prior", part.prior, config, task)
        strength = part.prior_strength
        aim = (1.0 - strength) / len(shares) + strength * shares
        records[name] = Aim(
            part.prior,
            strength,
            shares.round(DIGITS).tolist(),
            aim.round(DIGITS).tolist(),
            uses_target_labels=part.prior == "oracle",
        )
    return records


def _estimated_aim(estimate: ShareEstimate) -> Aim:
    shares = estimate.shares.round(DIGITS).tolist()
    return Aim(
        "estimate",
        1.0,
        shares,
        shares,
        uses_target_labels=False,
        agreement=round(estimate.agreement, DIGITS),
        imbalance=round(estimate.imbalance, DIGITS),
        mean_shares=estimate.mean_shares.round(DIGITS).tolist(),
        trust=round(estimate.trust, DIGITS),
    )


def estimate_of(
    config: RunConfig, task: Task, start: StartingNetwork, *, to_aim_at: bool = False
) -> ShareEstimate:
    """The class shares of the target, estimated from what training starts with.

    Runs on the same rows, or from the same weights on the same images, share it in one process.

    Args:
        to_aim_at: with the shares of cluster labels where they are needed, which takes longer.
            Without source data there are none.
    """
    if config.from_run:
        return start.view(task.target).estimate
    view = source_view(task)
    seen = "rows" if view else start.weights_sha256
    if view and not to_aim_at:
        return view.estimate
    known = _ESTIMATES.setdefault(task.target, WeakKeyDictionary())
    looked_at, to_aim, found = known.get(task.source, ("", False, None))
    if found is None or looked_at != seen or to_aim_at > to_aim:
        found = _estimate(task, start, view, to_aim_at=to_aim_at)
        if seen:
            known[task.source] = (seen, to_aim_at, found)
    return found


def _estimate(
    task: Task, start: StartingNetwork, view: UnadaptedView | None, *, to_aim_at: bool
) -> ShareEstimate:
    source, target = (
        domain.rows(evenly_spaced(len(domain))).flatten(1).numpy()
        if view and isinstance(domain, ArrayDomain)
        else start.features(domain)
        for domain in (task.source, task.target)
    )
    assert task.source.labels is not None, "a source has labels"
    labels, classes = task.source.labels[evenly_spaced(len(task.source))], len(task.classes)
    found = view.estimate if view else estimate_shares(source, labels, target, classes)
    return estimate_aim(source, labels, target, classes, found) if to_aim_at else found


def _known_shares(name: str, prior: str, config: RunConfig, task: Task) -> NDArray[np.float64]:
    """The shares that need no estimate."""
    if is_shares(prior):
        return given_shares(name, prior, task.classes)
    if prior == "source" and config.from_run:
        raise InputError(f"{name} is 'source', but there are no source data; use estimate")
    domain = task.source if prior == "source" else task.target
    if domain.labels is None or not (domain.labels >= 0).any():
        raise InputError(
            f"{name} is {prior_title(prior)!r}, but {domain.name} has no labels; use estimate"
        )
    known = domain.labels[domain.labels >= 0]
    return np.bincount(known, minlength=len(task.classes)) / len(known)


def given_shares(name: str, prior: str, classes: Sequence[str]) -> NDArray[np.float64]:
    """The share of each class, of shares that somebody gave.

    Args:
        name: what error messages call them.
        prior: in the spelling of `shares_text`.
        classes: the names of the classes.

    Raises:
        InputError: there are more or fewer, or they name a class that is not there.

    >>> given_shares("prior", '{"pen": 1.0}', ["mug", "pen"])
    array([0., 1.])
    """
    given = json.loads(prior)
    if isinstance(given, list):
        if len(given) != len(classes):
            raise InputError(
                f"{name} has {len(given)} shares; expected {len(classes)}, one for each class"
            )
        return np.array(given)
    shares = np.zeros(len(classes))
    shares[match_classes(list(given), classes, name)] = list(given.values())
    return shares
