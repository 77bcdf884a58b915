"""Soft cluster labels: selective pseudo-labelling with soft k-means and random views."""

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import normalize, one_hot

from equida.class_shares import TOLERANCE
from equida.clustering.subspace import (
    class_means,
    class_middles,
    class_scatter,
    joint_rows,
    supervised_projection,
    surest,
)
from equida.errors import InputError
from equida.evaluation.predictions import DomainPredictions, InputRows
from equida.evaluation.shares import check_rows, estimate_shares
from equida.evaluation.validators.input_rows import balanced_agreement

SMALLEST_SHARE = 1e-3
"""The least that a class counts, of what it would at equal shares: no class is ruled out."""
FIRST_ROUNDS = 2
"""After so many rounds, clusters are looked at for classes that the target lacks."""
STAYED_WITHIN = 0.95
"""A cluster has stayed with its class if the distance to it is at most so much of the distance to
the nearest other class."""
MANY_LEFT = 0.1
"""Only where a larger share of the clusters has left its class, and more than two, are classes
taken for absent: single clusters leave classes that are there, too."""


class Space(NamedTuple):
    """Unit rows of both domains on their joint principal components."""

    source: Tensor
    target: Tensor
    middles: tuple[Tensor, Tensor]
    """The middle of the classes of each domain."""


@dataclass(frozen=True)
class ClusterRule:
    """The constants of soft cluster labels."""

    components: int = 512
    """The most joint principal components of the features that are used."""
    dimensions: int = 128
    """The most dimensions of the subspace in which target samples are labelled."""
    components_per_class: int = 16
    """The most components for each class. As many components as samples let the subspace fit the
    source by heart: with 7 classes and 512 components, labels are worse than nearest means."""
    dimensions_per_class: int = 4
    """The most dimensions for each class: more of them cannot tell classes apart."""
    views: int = 10
    """How many choices of the components are looked at; their labels are averaged."""
    share: float = 0.8
    """Share of the components in a view; with one view, or fewer components than classes, all. At
    0.8, five views leave each component out once."""
    rounds: int = 10
    """After round t, the surest (t+1)/rounds of the target's samples join the source."""
    means_rounds: int = 10
    """Rounds of soft k-means."""
    assignment_sharpness: float = 20.0
    """Factor of the distances in soft k-means."""
    label_sharpness: float = 10.0
    """Factor of the distances in the labels."""
    weighted: bool | None = None
    """Whether directions count by how well they tell classes apart; None: both are tried, and the
    labels are taken with the larger product of two shares: of pairs of neighbours that agree (times
    the entropy of the class shares), and of source rows that the labels find back."""


def cluster_labels(
    source: Tensor,
    labels: Tensor,
    target: Tensor,
    classes: int,
    seed: int = 0,
    rule: ClusterRule | None = None,
    shares: Tensor | None = None,
    expected: Tensor | None = None,
) -> Tensor:
    """The probability of each class for each target row, (samples, classes).

    Rows are the features (their roots where none is negative) without the middle of the classes of
    their domain (`class_middles`), on joint principal components.
    In each round and view: the subspace of supervised locality preserving projection, learned on
    the source and on the target rows that were chosen in the round before; rows without the middle
    of the classes of their domain, made unit; soft k-means of the target on the sphere, started at
    the class means of the source; as a row's label, the mean of two softmaxes: of minus its
    distances to the class means, and of minus those to the cluster means. The views' labels are
    averaged in every round, so that a class that one view mistakes for another does not stay
    mistaken.
    Classes that the target seems to lack (`classes_found`) get no cluster.

    Args:
        source: (samples, features).
        labels: of the source.
        target: (samples, features).
        classes: how many classes there are.
        seed: the views are drawn from it.
        rule: the constants.
        shares: of the classes in the target, where they are known or estimated: each class counts
            in proportion to its share where a row is assigned to clusters or given its label. None:
            all count alike, which does not force them to equal sizes.
        expected: the class shares of the target by which the middle of its classes is found; by
            default `expected_shares` of what `equida.evaluation.shares.estimate_shares` returns.
            They are as near to the truth as can be had, where `shares` are what to aim at, and
            mostly mixed with equal ones.
    """
    rule = rule or ClusterRule()
    source, labels, target = map(torch.as_tensor, (source, labels, target))
    rows, others = (values.detach().float().cpu().numpy() for values in (source, target))
    counted, _ = check_rows(rows, labels.cpu().numpy(), others, classes)
    labels = labels.long()
    if classes == 1:
        return torch.ones(len(target), 1)
    if expected is None:
        estimate = estimate_shares(rows, counted, others, classes)
        expected = torch.from_numpy(estimate.expected_shares(counted))
    expected = _checked_shares("expected", expected, classes)
    bias = None
    if shares is not None:
        shares = _checked_shares("shares", shares, classes)
        bias = (shares.float() * classes).clamp_min(SMALLEST_SHARE).log()
    space = _space(source, labels, target, expected, rule)
    present = torch.arange(classes)
    if shares is None:  # or else they say which classes there are
        present = classes_found(space, labels, classes, seed, rule)
    if len(present) < classes:
        there = torch.zeros(classes).index_fill_(0, present, 1.0)
        space = _space(source, labels, target, expected * there, rule)
    if rule.weighted is not None:
        return _last(_rounds(space, labels, classes, present, seed, rule, bias)).probs
    found = [
        _last(_rounds(space, labels, classes, present, seed, weighing, bias)).probs
        for weighing in (replace(rule, weighted=False), replace(rule, weighted=True))
    ]
    inputs = InputRows(target)
    scores = [
        balanced_agreement(DomainPredictions(each.log(), inputs=inputs))
        * found_back(space.source, space.target, labels, each.argmax(1), classes)
        for each in found
    ]
    return found[scores[1] > scores[0]]


def _checked_shares(name: str, shares: Tensor, classes: int) -> Tensor:
    shares = torch.as_tensor(shares)
    if shares.shape != (classes,):
        raise InputError(
            f"{name} have shape {tuple(shares.shape)}; expected one for each of {classes} classes"
        )
    total, least = float(shares.sum()), float(shares.min())
    if not (least >= 0.0 and abs(total - 1.0) <= TOLERANCE):
        raise InputError(
            f"{name} sum to {total:g} and the least is {least:g}; expected a sum of 1, and 0 or"
            " more for each class"
        )
    return shares


def classes_found(
    space: Space, labels: Tensor, classes: int, seed: int, rule: ClusterRule
) -> Tensor:
    """The classes that the target seems to have, in order; no target label is needed.

    k-means makes a cluster for every class, also for one that the target lacks. Such a cluster
    takes rows of other classes and comes to lie as near to one of these. Where many clusters have
    left their class like that, these classes are taken for absent, and the clusters of the others
    are looked at again, until all stay.

    Args:
        space: the rows.
        labels: of the source.
        classes: how many classes there are.
        seed: the views are drawn from it.
        rule: the constants.
    """
    rule = replace(rule, weighted=False)
    # A class without a source row would be a cluster around nothing.
    present: Tensor = labels.unique()
    most = max(2, MANY_LEFT * len(present))
    while True:
        rounds = _rounds(space, labels, classes, present, seed, rule, None)
        distances = _last(islice(rounds, FIRST_ROUNDS)).distances
        elsewhere = distances + torch.full((len(present),), math.inf).diag()
        stayed = distances.diagonal() <= STAYED_WITHIN * elsewhere.amin(1)
        if (~stayed).sum() <= most or stayed.sum() < 2:
            return present
        present, most = present[stayed], 0


def found_back(
    source: Tensor, target: Tensor, labels: Tensor, predicted: Tensor, classes: int
) -> float:
    """How well labels of the target tell the source's classes, the mean over classes, in [0, 1].

    A source row is found back where the target's class mean that is nearest to it is that of its
    own class. Agreement with neighbours cannot see two clusters that have each other's class; this
    can.

    Args:
        source: unit rows, (samples, features).
        target: unit rows, (samples, features).
        labels: of the source.
        predicted: of the target.
        classes: how many classes there are.
    """
    means = class_means(target, one_hot(predicted, classes).to(target.dtype))
    nearest = (source @ means.mT).argmax(1)
    sizes = torch.bincount(labels, minlength=classes)
    right = torch.bincount(labels[nearest == labels], minlength=classes)
    present = sizes > 0
    return float((right[present] / sizes[present]).mean())


def _space(
    source: Tensor, labels: Tensor, target: Tensor, expected: Tensor, rule: ClusterRule
) -> Space:
    width = min(rule.components, rule.components_per_class * len(expected))
    find_middles = partial(class_middles, labels=labels, shares=expected)
    joint = joint_rows(source, target, width, root=True, find_middles=find_middles)
    return Space(*joint, find_middles(*joint))


class Round(NamedTuple):
    """What a round of clustering finds."""

    probs: Tensor
    """The probability of each class for each target row, (samples, classes)."""
    distances: Tensor
    """From the cluster of each class (row) to the mean of each class of the source (column), the
    mean over views."""


def _last(rounds: Iterator[Round]) -> Round:
    return deque(rounds, maxlen=1)[0]


def _rounds(
    space: Space,
    labels: Tensor,
    classes: int,
    present: Tensor,
    seed: int,
    rule: ClusterRule,
    bias: Tensor | None,
) -> Iterator[Round]:
    """The rounds of cluster labels, with clusters for the classes that are `present`."""
    source, target, middles = space
    known = one_hot(labels, classes).to(source.dtype)
    chosen = torch.zeros(len(target), dtype=torch.bool)
    probs = target.new_zeros(len(target), classes)
    dimensions = min(rule.dimensions, rule.dimensions_per_class * classes)
    views, weighted = _views(source.shape[1], classes, rule, seed), bool(rule.weighted)
    centred_source, centred_target = source - middles[0], target - middles[1]
    if bias is not None:
        bias = bias[present]
    for number in range(rule.rounds + 1):
        learned = torch.cat([labels, probs.argmax(1)[chosen]])
        scatter = class_scatter(torch.cat([source, target[chosen]]), learned, classes)
        found, distances = [], []
        for columns in views:
            some = supervised_projection(scatter.of(columns), dimensions, weighted=weighted)
            # Zeros for the components that are left out: cheaper than copies of the others.
            projection = source.new_zeros(source.shape[1], some.shape[1])
            projection[columns] = some.to(source.dtype)
            seen = normalize(centred_source @ projection, dim=1)
            unseen = normalize(centred_target @ projection, dim=1)
            means = class_means(seen, known)[present]
            clusters = _soft_k_means(unseen, means, rule, bias)
            found += [
                _nearness(unseen, centres, rule.label_sharpness, bias)
                for centres in (means, clusters)
            ]
            distances.append(torch.cdist(clusters, means))
        probs = target.new_zeros(len(target), classes)
        probs[:, present] = torch.stack(found).mean(0)
        yield Round(probs, torch.stack(distances).mean(0))
        chosen = surest(probs, min(1.0, (number + 1) / rule.rounds))


def _views(width: int, classes: int, rule: ClusterRule, seed: int) -> list[Tensor]:
    """The components that each view has: views leave out parts of a random order, one after the
    other, so that each component is left out about as often as any other."""
    # Fewer components than classes could not tell the classes apart.
    count = width if rule.views == 1 else max(round(rule.share * width), min(width, classes))
    generator = torch.Generator().manual_seed(seed)
    left_out = width - count
    parts = width // left_out if left_out else 1
    views = []
    for number in range(rule.views):
        if number % parts == 0:
            order = torch.randperm(width, generator=generator)
        start = number % parts * left_out
        kept = torch.ones(width, dtype=torch.bool)
        kept[order[start : start + left_out]] = False
        views.append(kept.nonzero()[:, 0])
    return views


def _soft_k_means(rows: Tensor, centres: Tensor, rule: ClusterRule, bias: Tensor | None) -> Tensor:
    """Unit cluster means, started at `centres`."""
    for _ in range(rule.means_rounds):
        weights = _nearness(rows, centres, rule.assignment_sharpness, bias)
        centres = class_means(rows, weights)
    return centres


def _nearness(rows: Tensor, centres: Tensor, sharpness: float, bias: Tensor | None) -> Tensor:
    """How near each row is to each centre, as shares of 1."""
    scores = -sharpness * torch.cdist(rows, centres)
    return (scores if bias is None else scores + bias).softmax(1)
