"""The class shares of an unlabelled target, estimated without a target label.

Two estimates are made: the mean prediction of a calibrated classifier, and the sizes of clusters
that start from its predictions. Where they agree, classifier and clusters vote on the class of each
sample, and the shares of the votes are used as far as the two agree. Where the domains are so far
apart that they do not agree at all, the result is uniform. There a third one may help, the shares
of cluster labels (`equida.clustering.estimate_aim`), which takes longer.

Everything here is a deterministic function of arrays.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from equida.errors import InputError

Array = NDArray[np.float64]
Labels = NDArray[np.int64]

REGULARISATION = 0.01
"""C of the logistic regression."""
FOLDS = 5
ROUNDS = 15
MOST_AGREEMENT = 0.99
IMPOSSIBLE = -1e4
"""The logit of a class that a fold has no sample of."""
VOTE_SHARPNESS = 10.0
"""Factor of the cosine to a cluster's mean beside the classifier's log-probability, as that of the
distances in cluster labels."""
LARGEST = 1e18
"""The largest value in a row, as for training: sums of squares of larger ones are not finite in
float32."""
ENOUGH_AGREEMENT = 0.5
"""Where q1 and q2 agree on more than this, a third estimate is not needed."""
TOLERANCE = 1e-4
"""The largest derivative at which a minimum is found. Where held-out rows are nearly separable, the
best temperature is far away: against 1e-6, q2 moves by up to 0.01 there, the aim by 0.02."""


@dataclass(frozen=True)
class ShareEstimate:
    """The estimated class shares of a target, and how far they can be trusted."""

    cluster_shares: Array
    """q1: the sizes of the clusters."""
    predicted_shares: Array
    """q2: the mean of the calibrated probabilities."""
    voted_shares: Array
    """v: the sizes of the classes that clusters and probabilities vote for together."""
    label_shares: Array | None = None
    """q3: the shares of cluster labels, where they were made."""

    @property
    def mean_shares(self) -> Array:
        """(q1 + q2) / 2."""
        return (self.cluster_shares + self.predicted_shares) / 2.0

    @property
    def agreement(self) -> float:
        """a = 1 - |q1 - q2|^2 / |mean - 1/C|^2, kept in [0, 0.99]: how much of the distance from
        uniform shares the two estimates agree on."""
        return _agreement(self.cluster_shares, self.predicted_shares)

    @property
    def trust(self) -> float:
        """How far `shares` are on the way from uniform ones to what is estimated, at most 0.99.

        t = 1 - |q1 - q|^2 / (2 |(q1 + q)/2 - 1/C|^2), not below 0, where q is q3 or, without it,
        q2; for q2, this is (1 + a)/2. It is the share of signal in the mean of two estimates whose
        mistakes are equally large and have a correlation of 1/3. Without q3, t is a where a is a
        half or less: q1 and q2 start from one classifier, which may have been misled.
        """
        if self.label_shares is not None:
            return _agreement(self.cluster_shares, self.label_shares, 2.0)
        if self.agreement <= ENOUGH_AGREEMENT:
            return self.agreement
        return min((1.0 + self.agreement) / 2.0, MOST_AGREEMENT)

    @property
    def shares(self) -> Array:
        """What to aim at: (1 - t)/C + t q3 or, without q3, (1 - t)/C + t v."""
        found = self.voted_shares if self.label_shares is None else self.label_shares
        return (1.0 - self.trust) / len(found) + self.trust * found

    def expected_shares(self, labels: ArrayLike) -> Array:
        """(1 - a) times the shares of the source's labels, plus a (q1 + q2)/2.

        Where the two estimates do not agree, nothing is known, and one would expect the target's
        classes to have the sizes that the source's have.

        Args:
            labels: of the source, from 0.
        """
        counts = np.bincount(np.asarray(labels, np.int64), minlength=len(self.mean_shares))
        known: Array = counts / counts.sum()
        return (1.0 - self.agreement) * known + self.agreement * self.mean_shares

    @property
    def imbalance(self) -> float:
        """W = a/2 sum_c |mean share - 1/C|, in [0, 1): how far the target is from balanced, as far
        as q1 and q2 agree."""
        uniform = 1.0 / len(self.mean_shares)
        return float(self.agreement * 0.5 * np.abs(self.mean_shares - uniform).sum())


def _agreement(first: Array, second: Array, factor: float = 1.0) -> float:
    """1 - |first - second|^2 / (factor |mean - 1/C|^2), kept in [0, 0.99]."""
    distance = np.square((first + second) / 2.0 - 1.0 / len(first)).sum()
    if distance == 0.0:
        return 0.0
    apart = np.square(first - second).sum()
    return float(np.clip(1.0 - apart / (factor * distance), 0.0, MOST_AGREEMENT))


def estimate_shares(
    source: ArrayLike, labels: ArrayLike, target: ArrayLike, classes: int | None = None
) -> ShareEstimate:
    """The class shares of a target, from labelled source features and target features.

    The classifier is a logistic regression (L2, C = 0.01) on features from which the source's mean
    is taken; its temperature and a bias for each class are fitted to predictions for source rows
    that it was not trained on, in five folds.

    Args:
        source: source features, (rows, features).
        labels: the class of each source row, from 0.
        target: target features, (rows, features).
        classes: number of classes C; the largest label and 1 by default. A class without a source
            row is estimated as absent.

    >>> rng = np.random.default_rng(0)
    >>> source, target = (np.repeat([[0.0, 9], [9, 0]], n, 0) for n in ([50, 50], [90, 10]))
    >>> source, target = (x + rng.normal(size=x.shape) for x in (source, target))
    >>> estimate_shares(source, [0] * 50 + [1] * 50, target).shares.round(2)
    array([0.9, 0.1])
    """
    probs = source_predictions(source, labels, target, classes)
    return shares_from_predictions(_centred(target, source), probs)


def source_predictions(
    source: ArrayLike, labels: ArrayLike, target: ArrayLike, classes: int | None = None
) -> Array:
    """What a classifier that knows the source alone predicts for the target, (rows, classes).

    It is the calibrated logistic regression of `estimate_shares`, whose arguments are the same.
    """
    labels, classes = check_rows(source, labels, target, classes)
    # The classes that the classifier knows; the others can be neither learned nor predicted.
    present, indices = np.unique(labels, return_inverse=True)
    rows = _centred(source, source)
    # The optimiser stops at gradients that are small for rows of length 1, and they shrink with
    # the rows: short rows would teach it nothing.
    length = float(np.linalg.norm(rows)) / math.sqrt(len(rows))
    scale = 1.0 / length if 0.0 < length < 1.0 else 1.0
    rows *= scale
    x = torch.from_numpy(rows.astype(np.float32))
    del rows  # the domains are not in memory together: each is many megabytes
    weights = _calibrated_regression(x, indices.astype(np.int64))
    others = _centred(target, source)
    others *= scale
    probs = np.zeros((len(others), classes))
    probs[:, present] = _softmax(_logits(others, weights))
    return probs


def check_rows(
    source: ArrayLike, labels: ArrayLike, target: ArrayLike, classes: int | None = None
) -> tuple[Labels, int]:
    """The labels as integers and the number of classes, or an InputError where arrays do not fit.

    The arguments are those of `estimate_shares`.
    """
    shapes = [np.shape(source), np.shape(target)]
    if (
        not all(len(shape) == 2 and 0 not in shape for shape in shapes)
        or shapes[0][1] != shapes[1][1]
    ):
        raise InputError(
            f"source and target have shapes {shapes[0]} and {shapes[1]}; expected (rows, features)"
            " of each, with the same features and at least one row"
        )
    for name, given in (("source", source), ("target", target)):
        rows = np.asarray(given)
        if rows.dtype.kind not in "fiub":
            raise InputError(f"{name} holds {rows.dtype}; expected real numbers")
        # The sum is finite only if every value is, and needs no memory.
        if not np.isfinite(np.sum(rows, dtype=np.float64)):
            raise InputError(f"{name} has a value that is not finite; leave such rows out")
        largest = max(abs(float(np.min(rows))), abs(float(np.max(rows))))
        if largest > LARGEST:
            raise InputError(
                f"{name} has a value of {largest:g}, whose square is too large for float32; scale"
                " the features"
            )
    known = np.asarray(labels)
    if known.shape != (shapes[0][0],):
        raise InputError(
            f"labels have shape {known.shape}; expected one for each of {shapes[0][0]} source rows"
        )
    if known.dtype.kind not in "iub":
        raise InputError(f"labels are {known.dtype}; expected whole numbers from 0")
    least, most = int(known.min()), int(known.max())
    if least < 0 or (classes is not None and most >= classes):
        wrong = least if least < 0 else most
        end = "" if classes is None else f" to {classes - 1}"
        raise InputError(
            f"labels hold {wrong}; expected numbers from 0{end} (leave rows without a label out)"
        )
    return known.astype(np.int64), most + 1 if classes is None else classes


def _centred(rows: ArrayLike, source: ArrayLike) -> Array:
    """The rows less the source's mean."""
    centre: Array = np.mean(np.asarray(source), axis=0, dtype=np.float64)
    # In place: rows of features are many megabytes, and every copy counts.
    moved: Array = np.array(np.asarray(rows), np.float64)
    moved -= centre
    return moved


def shares_from_predictions(features: ArrayLike, probs: ArrayLike) -> ShareEstimate:
    """The class shares of a target, from its features and somebody's predictions for them.

    This is the second half of `estimate_shares`, for a finished classifier without source data.

    Args:
        features: target features, (rows, features).
        probs: class probabilities of the same rows, (rows, classes).

    Raises:
        InputError: they do not fit to each other, or are not probabilities.
    """
    rows, predicted = np.asarray(features, np.float64), np.asarray(probs, np.float64)
    if rows.ndim != 2 or predicted.ndim != 2 or len(rows) != len(predicted) or 0 in rows.shape:
        raise InputError(
            f"features and probs have shapes {rows.shape} and {predicted.shape}; expected"
            " (rows, features) and (rows, classes), with at least one row"
        )
    if not np.isfinite(rows).all():
        raise InputError("features has a value that is not finite; leave such rows out")
    if not ((predicted >= 0.0).all() and (np.abs(predicted.sum(1) - 1.0) <= 1e-3).all()):
        raise InputError("probs has a row that is not probabilities, 0 or more with a sum of 1")
    clusters, voted = _clusters(rows, predicted)
    counted = (np.bincount(each, minlength=predicted.shape[1]) for each in (clusters, voted))
    cluster_shares, voted_shares = (counts / len(clusters) for counts in counted)
    return ShareEstimate(cluster_shares, predicted.mean(0), voted_shares)


def _clusters(features: Array, probs: Array) -> tuple[Labels, Labels]:
    """The cluster of each row, and the class of the largest log p + 10 cos.

    Clusters start from means by probabilities, which rounds of assignment by cosine refine; cos is
    the cosine to the mean of the cluster.
    """
    means = probs.T @ features
    absent = probs.sum(0) == 0.0
    directions = _normalised(features)
    for _ in range(ROUNDS):
        cosines = directions @ _normalised(means).T
        cosines[:, absent] = -np.inf
        nearest = cosines.argmax(1)
        members = np.eye(probs.shape[1])[nearest]
        sums = members.T @ features
        # An empty class keeps its mean; only the direction of a mean counts.
        means = np.where(members.any(0)[:, None], sums, means)
    votes = VOTE_SHARPNESS * (directions @ _normalised(means).T)
    votes += np.log(np.maximum(probs, np.finfo(np.float64).tiny))
    votes[:, absent] = -np.inf
    return nearest, votes.argmax(1)


def _normalised(rows: Array) -> Array:
    lengths: Array = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.maximum(lengths, np.finfo(np.float64).tiny)


def _calibrated_regression(rows: Tensor, labels: Labels) -> Array:
    """Weights of a logistic regression on all rows, calibrated on rows held out in folds."""
    classes = int(labels.max()) + 1
    weights = _logistic_regression(rows, labels, np.zeros((classes, rows.shape[1] + 1)))
    logits = np.empty((len(rows), classes))
    for held_out in _folds(labels):
        rest = ~held_out
        # The solution on all rows is near that on most of them, so that little work is left.
        fitted = _logistic_regression(rows[torch.from_numpy(rest)], labels[rest], weights)
        logits[held_out] = _logits(rows[torch.from_numpy(held_out)].double().numpy(), fitted)
        unseen = np.bincount(labels[rest], minlength=classes) == 0
        logits[np.ix_(held_out, unseen)] = IMPOSSIBLE
    # A row of a class that its fold has not seen says nothing about calibration.
    usable = logits[np.arange(len(labels)), labels] > IMPOSSIBLE
    if usable.any():
        temperature, bias = _calibration(logits[usable], labels[usable])
        weights *= temperature
        weights[:, -1] += bias
    return weights


def _folds(labels: Labels) -> list[NDArray[np.bool_]]:
    """The rows that each fold holds out; each class is spread evenly over the folds."""
    fold = np.empty(len(labels), np.int64)
    fold[np.argsort(labels, kind="stable")] = np.arange(len(labels)) % FOLDS
    return [fold == number for number in range(FOLDS) if (fold == number).any()]


def _logits(rows: Array, weights: Array) -> Array:
    logits: Array = rows @ weights[:, :-1].T + weights[:, -1]
    return logits


def _softmax(logits: Array) -> Array:
    powers = np.exp(logits - logits.max(1, keepdims=True))
    probs: Array = powers / powers.sum(1, keepdims=True)
    return probs


def _logistic_regression(x: Tensor, labels: Labels, start: Array) -> Array:
    """Minimise mean cross-entropy + |W|^2 / (2 C n) over weights and, in the last column, a bias.

    The products are those of torch in float32, which are several times as fast, and have the few
    classes first, which halves their time.
    """
    y, each = torch.from_numpy(labels), torch.arange(len(labels))
    decay = 1.0 / (REGULARISATION * len(y))

    def objective(flat: Array) -> tuple[float, Array]:
        weights = flat.reshape(start.shape)
        moved = torch.from_numpy(weights).float()
        log_probs = torch.addmm(moved[:, -1:], moved[:, :-1], x.mT).log_softmax(0)
        value = -float(log_probs[y, each].double().mean())
        value += 0.5 * decay * float(np.square(weights[:, :-1]).sum())
        error = log_probs.exp_()
        error[y, each] -= 1.0
        error /= len(y)
        by_weights = decay * weights
        by_weights[:, :-1] += (error @ x).numpy()
        by_weights[:, -1] = error.double().sum(1).numpy()
        return value, by_weights.ravel()

    return _minimum(objective, start.ravel()).reshape(start.shape)


def _calibration(logits: Array, labels: Labels) -> tuple[float, Array]:
    """The factor and the bias of each class that make the cross-entropy of the logits least.

    The factor is never negative, which would reverse what was learned. Where the least lies there,
    the logits say nothing of held-out rows, and the frequencies of the classes are all that is
    known.
    """
    each, count, classes = np.arange(len(labels)), len(labels), logits.shape[1]

    def objective(moved: Array) -> tuple[float, Array]:
        probs = _softmax(moved[0] * logits + moved[1:])
        value = -float(np.log(np.maximum(probs[each, labels], 1e-300)).mean())
        error = probs
        error[each, labels] -= 1.0
        gradient = np.concatenate([[(error * logits).sum()], error.sum(0)]) / count
        return value, gradient

    found = _minimum(objective, np.concatenate([[1.0], np.zeros(classes)]))
    if found[0] < 0.0:
        frequencies = np.bincount(labels, minlength=classes) / count
        return 0.0, np.log(np.maximum(frequencies, 1e-300))
    return float(found[0]), found[1:]


def _minimum(objective: Callable[[Array], tuple[float, Array]], start: Array) -> Array:
    from scipy.optimize import minimize

    options = {"maxiter": 200, "gtol": TOLERANCE, "ftol": 1e-12}
    found = minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    at: Array = found.x
    return at
