"""The estimated class shares of a target, against scikit-learn and plain loops."""

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from tests.small_data import blobs

from equida.clustering import cluster_labels
from equida.errors import InputError
from equida.evaluation import shares as module
from equida.evaluation.shares import (
    ShareEstimate,
    estimate_shares,
    shares_from_predictions,
)

Floats = NDArray[np.float64]


def toy(sizes: tuple[int, ...], shift: float, seed: int) -> tuple[Floats, NDArray[np.int64]]:
    """Gaussian classes around unit vectors of 8 dimensions, all moved along one direction."""
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    rows = 2.0 * np.eye(8)[labels] + rng.normal(size=(len(labels), 8))
    rows[:, 6] += shift
    return rows, labels


@pytest.fixture(scope="module")
def reference() -> tuple[Floats, NDArray[np.int64], Floats, Floats, Floats]:
    """Source, labels, target, and q1 and q2 by other means than those of the module."""
    source, labels = toy((40, 30, 30, 20), 0.0, 0)
    target, _ = toy((90, 20, 10, 5), 1.5, 1)
    mean = source.mean(0)

    def fitted(rows: Floats, known: NDArray[np.int64]) -> LogisticRegression:
        return LogisticRegression(C=0.01, tol=1e-10, max_iter=5000).fit(rows - mean, known)

    # Class by class, the first row goes to fold 0, the next one to fold 1, and so on.
    fold = np.arange(len(labels)) % 5
    held_out = np.zeros((len(labels), 4))
    for k in range(5):
        model = fitted(source[fold != k], labels[fold != k])
        held_out[fold == k] = model.decision_function(source[fold == k] - mean)
    z, y = torch.from_numpy(held_out), torch.from_numpy(labels)
    factor = torch.ones((), dtype=torch.float64, requires_grad=True)
    bias = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([factor, bias], max_iter=500, tolerance_grad=1e-12)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(factor * z + bias, y)
        loss.backward()
        return loss

    for _ in range(10):
        optimizer.step(closure)
    logits = torch.from_numpy(fitted(source, labels).decision_function(target - mean))
    probs = (factor * logits + bias).softmax(1).detach().numpy()

    centred = target - mean
    means = [sum(p * row for p, row in zip(probs[:, c], centred, strict=True)) for c in range(4)]
    nearest = [0] * len(centred)
    for _ in range(15):
        for i, row in enumerate(centred):
            cosines = [row @ m / (np.linalg.norm(row) * np.linalg.norm(m)) for m in means]
            nearest[i] = int(np.argmax(cosines))
        for c in range(4):
            members = [row for row, n in zip(centred, nearest, strict=True) if n == c]
            if members:
                means[c] = np.mean(members, axis=0)
    counts = np.array([nearest.count(c) / len(nearest) for c in range(4)])
    return source, labels, target, counts, probs.mean(0)


def test_both_estimates_against_other_implementations(
    reference: tuple[Floats, NDArray[np.int64], Floats, Floats, Floats],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source, labels, target, q1, q2 = reference
    found = estimate_shares(source, labels, target)
    np.testing.assert_allclose(found.predicted_shares, q2, atol=2e-3)
    np.testing.assert_allclose(found.cluster_shares, q1, atol=1e-12)
    monkeypatch.setattr(module, "TOLERANCE", 1e-7)
    np.testing.assert_allclose(
        estimate_shares(source, labels, target).predicted_shares, q2, atol=2e-5
    )
    true = np.array([90, 20, 10, 5]) / 125
    assert np.abs(found.shares - true).sum() < 0.6 * np.abs(true - 0.25).sum()


def estimate(q1: list[float], q2: list[float], voted: list[float] | None = None) -> ShareEstimate:
    return ShareEstimate(*(np.array(q) for q in (q1, q2, voted or q1)))


def test_what_the_estimates_agree_on_is_used() -> None:
    """By hand: q1 = (.5, .3, .2), q2 = (.6, .2, .2) have the mean (.55, .25, .2)."""
    found = estimate([0.5, 0.3, 0.2], [0.6, 0.2, 0.2], [0.55, 0.3, 0.15])
    distance = (0.55 - 1 / 3) ** 2 + (0.25 - 1 / 3) ** 2 + (0.2 - 1 / 3) ** 2
    agreement = 1 - (0.1**2 + 0.1**2) / distance
    assert found.agreement == pytest.approx(agreement)
    assert found.imbalance == pytest.approx(agreement * (0.55 - 1 / 3))
    trust = 1 - (0.1**2 + 0.1**2) / (2 * distance)
    assert found.trust == pytest.approx(trust)
    expected = [(1 - trust) / 3 + trust * share for share in (0.55, 0.3, 0.15)]
    assert found.shares == pytest.approx(expected)


def test_estimates_that_agree_on_half_or_less_are_trusted_no_further() -> None:
    """By hand: q1 = (.58, .42) and q2 = (.7, .3) have the mean (.64, .36)."""
    found = estimate([0.58, 0.42], [0.7, 0.3])
    agreement = 1 - 2 * 0.12**2 / (2 * 0.14**2)
    assert 0.0 < agreement < 0.5
    assert found.trust == found.agreement == pytest.approx(agreement)


def test_clusters_and_probabilities_vote_together() -> None:
    """By hand: ten rows lie along each axis, and three more are in the first cluster although the
    classifier takes them for class 1. Of (5, 0), log(.9/.1) = 2.2 is less than ten times the
    difference of the cosines, which is nearly 1: it stays. Of the two rows (5, 4), whose cosines
    are about .8 and .6, log(.99/.01) = 4.6 is more: they go."""
    rows = np.array([[5.0, 0]] * 10 + [[0, 5]] * 10 + [[5, 0]] + [[5, 4]] * 2)
    probs = np.array([[0.9, 0.1]] * 10 + [[0.1, 0.9]] * 10 + [[0.1, 0.9]] + [[0.01, 0.99]] * 2)
    for found, order in (
        (shares_from_predictions(rows, probs), [0, 1]),
        (shares_from_predictions(rows, probs[:, ::-1]), [1, 0]),
    ):
        assert (23 * found.cluster_shares[order]).round(9).tolist() == [13, 10]
        assert (23 * found.voted_shares[order]).round(9).tolist() == [11, 12]
        assert found.predicted_shares[order] == pytest.approx([10.12 / 23, 12.88 / 23])


def test_estimates_that_disagree_leave_the_uniform_shares() -> None:
    found = estimate([0.8, 0.1, 0.1], [0.1, 0.1, 0.8])
    assert found.agreement == 0.0
    assert found.imbalance == 0.0
    assert found.shares == pytest.approx([1 / 3] * 3)


def test_where_nothing_is_known_the_target_is_expected_to_have_the_shares_of_the_source() -> None:
    labels = [0, 0, 0, 1]
    apart = estimate([0.9, 0.1], [0.1, 0.9])
    assert apart.expected_shares(labels) == pytest.approx([0.75, 0.25])
    alike = estimate([0.3, 0.7], [0.2, 0.8])
    agreed = 1 - 2 * 0.1**2 / (2 * 0.25**2)
    assert alike.expected_shares(labels) == pytest.approx(
        [(1 - agreed) * 0.75 + agreed * 0.25, (1 - agreed) * 0.25 + agreed * 0.75]
    )
    absent = estimate([0.5, 0.5, 0.0], [0.5, 0.5, 0.0])
    assert absent.expected_shares(labels) == pytest.approx([0.5025, 0.4975, 0.0])


def test_perfect_agreement_is_not_trusted_completely() -> None:
    one, even = [0.9, 0.1, 0.0], [1 / 3] * 3
    assert estimate(one, one).agreement == estimate(one, one).trust == 0.99
    assert estimate(even, even).shares == pytest.approx(even)


def test_the_estimate_is_the_same_each_time_and_in_any_order_of_target_rows() -> None:
    source, labels = toy((15, 15, 10), 0.0, 2)
    target, _ = toy((30, 10, 5), 0.5, 3)
    first, again = (estimate_shares(source, labels, target) for _ in range(2))
    assert np.array_equal(first.shares, again.shares)
    turned = estimate_shares(source, labels, target[::-1])
    np.testing.assert_allclose(turned.shares, first.shares, atol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 1e-2, 1e-5])
def test_short_rows_are_estimated_as_long_ones_are(scale: float) -> None:
    """Before: rows of length 0.01 taught the classifier nothing, and all shares were equal."""
    source, labels = toy((40, 40), 0.0, 0)
    target, _ = toy((90, 10), 1.0, 1)
    found = estimate_shares(scale * source, labels, scale * target)
    # The classes overlap: a classifier that knew both domains would confuse some rows, too.
    np.testing.assert_allclose(found.shares, [0.9, 0.1], atol=0.12)


def test_a_classifier_that_knows_nothing_is_not_reversed() -> None:
    """Labels drawn by lot: held-out rows contradict what was learned more often than not."""
    rows = np.random.default_rng(0).normal(size=(20, 10))
    probs = module.source_predictions(rows, np.arange(20) % 2, rows)
    np.testing.assert_allclose(probs, 0.5, atol=1e-6)


def test_a_class_without_a_source_row_is_estimated_as_absent() -> None:
    source, labels = toy((20, 0, 20), 0.0, 4)
    target, _ = toy((10, 5, 20), 0.0, 5)
    found = estimate_shares(source, labels, target, classes=4)
    assert found.cluster_shares[[1, 3]].tolist() == [0.0, 0.0]
    assert found.predicted_shares[[1, 3]].tolist() == [0.0, 0.0]
    assert found.shares.sum() == pytest.approx(1.0)


def test_classes_with_a_single_source_row_and_constant_features() -> None:
    """Every row is held out alone, or nothing can be learned: still finite shares."""
    rows = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, -1.0]])
    found = estimate_shares(rows, [0, 1, 2], rows)
    assert np.isfinite(found.shares).all()
    assert found.shares.sum() == pytest.approx(1.0)
    constant = estimate_shares(np.ones((6, 2)), [0, 0, 0, 1, 1, 1], np.ones((4, 2)))
    assert np.isfinite(constant.shares).all()


def test_shares_from_somebody_s_predictions() -> None:
    """Two clear clusters and confident predictions: the counts themselves."""
    features = np.array([[5.0, 0.0]] * 7 + [[0.0, 5.0]] * 3)
    probs = np.array([[0.9, 0.1]] * 7 + [[0.2, 0.8]] * 3)
    found = shares_from_predictions(features, probs)
    assert found.cluster_shares.tolist() == [0.7, 0.3]
    assert found.predicted_shares == pytest.approx([0.69, 0.31])


@pytest.mark.parametrize(
    ("rows", "probs", "message"),
    [
        (np.ones((3, 2)), np.full((2, 2), 0.5), "have shapes"),
        (np.ones((3, 2)), np.full(3, 0.5), "have shapes"),
        (np.ones((2, 2)), np.full((2, 2), np.nan), "not probabilities"),
        (np.ones((2, 2)), np.array([[3.0, -1.0], [2.0, 5.0]]), "not probabilities"),
        (np.full((2, 2), np.nan), np.full((2, 2), 0.5), "not finite"),
    ],
)
def test_what_are_no_predictions_for_the_rows_is_refused(
    rows: Floats, probs: Floats, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        shares_from_predictions(rows, probs)


def test_values_whose_squares_overflow_are_refused() -> None:
    rows, labels = 2e18 * np.eye(2)[np.arange(8) % 2], np.arange(8) % 2
    with pytest.raises(InputError, match=r"2e\+18, whose square is too large"):
        estimate_shares(rows, labels, rows)


ROWS = np.random.default_rng(0).normal(size=(20, 4))
LABELS = np.arange(20) % 3
BROKEN = np.where(np.eye(20, 4) > 0, np.nan, ROWS)
WRONG: list[tuple[Any, Any, Any, Any, str]] = [
    (ROWS, LABELS - 1, ROWS, None, "labels hold -1; expected numbers from 0 "),
    (ROWS, LABELS, ROWS, 2, "labels hold 2; expected numbers from 0 to 1"),
    (ROWS, LABELS + 0.7, ROWS, None, "labels are float64; expected whole numbers"),
    (ROWS, LABELS.astype(str), ROWS, None, "labels are <U21; expected whole numbers"),
    (ROWS, LABELS[:5], ROWS, None, r"labels have shape \(5,\); expected one for each of 20"),
    (ROWS, LABELS, ROWS[:, :3], None, r"have shapes \(20, 4\) and \(20, 3\); expected"),
    (ROWS, LABELS, ROWS[:0], None, r"have shapes \(20, 4\) and \(0, 4\); expected"),
    (ROWS, LABELS, BROKEN, None, "target has a value that is not finite"),
    (BROKEN, LABELS, ROWS, None, "source has a value that is not finite"),
]


@pytest.mark.parametrize(("source", "labels", "target", "classes", "said"), WRONG)
def test_estimates_and_cluster_labels_say_what_does_not_fit(
    source: Any, labels: Any, target: Any, classes: int | None, said: str
) -> None:
    """Before: shares that sum to a half for labels of -1, NaN, and errors from deep inside."""
    with pytest.raises(InputError, match=said):
        estimate_shares(source, labels, target, classes)
    if labels.dtype.kind != "U":  # no tensor
        with pytest.raises(InputError, match=said.replace("float64", "float64|float32")):
            cluster_labels(source, torch.as_tensor(labels), target, classes or 3)


def test_shares_of_tensors_and_of_truth_values() -> None:
    """Before: TypeError, and a refusal of labels that are 0 and 1."""
    data = blobs()
    labels = data.labels % 2
    expected = estimate_shares(data.source, labels, data.target).shares
    source, known, target = map(torch.from_numpy, (data.source, labels, data.target))
    np.testing.assert_array_equal(estimate_shares(source, known, target).shares, expected)
    found = estimate_shares(data.source, labels == 1, data.target).shares
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(InputError, match="target holds <U1; expected real numbers"):
        estimate_shares(data.source, labels, np.full((3, 8), "a"))
