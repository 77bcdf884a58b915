"""The class shares that prior="estimate" aims at."""

import numpy as np
import pytest
import torch

from equida.clustering import cluster_labels, estimate_aim
from equida.clustering import shares as module
from equida.evaluation.shares import ShareEstimate, estimate_shares

CENTRES = 3.0 * np.random.default_rng(7).normal(size=(5, 12))


def blobs(counts: list[int], seed: int, shift: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    labels = np.repeat(np.arange(len(counts)), counts)
    noise = np.random.default_rng(seed).normal(size=(len(labels), 12))
    return CENTRES[labels] + noise + shift, labels


def counted(
    source: np.ndarray, labels: np.ndarray, target: np.ndarray, expected: np.ndarray | None = None
) -> np.ndarray:
    """The shares of the classes in cluster labels."""
    x, y, others = (torch.from_numpy(a) for a in (source, labels, target))
    classes = int(labels.max()) + 1
    given = None if expected is None else torch.from_numpy(expected)
    found = cluster_labels(x, y, others, classes, expected=given).argmax(1).numpy()
    return np.array([np.mean(found == c) for c in range(classes)])


def test_trust_by_hand() -> None:
    """q1 = (.5, .3, .2) and q3 = (.6, .2, .2) have the mean (.55, .25, .2); q2 does not count."""
    q1, q3 = np.array([0.5, 0.3, 0.2]), np.array([0.6, 0.2, 0.2])
    found = ShareEstimate(q1, np.array([0.1, 0.1, 0.8]), q1, q3)
    distance = (0.55 - 1 / 3) ** 2 + (0.25 - 1 / 3) ** 2 + (0.2 - 1 / 3) ** 2
    trust = 1 - (0.1**2 + 0.1**2) / (2 * distance)
    assert found.trust == pytest.approx(trust)
    assert found.shares == pytest.approx([(1 - trust) / 3 + trust * q for q in q3])
    assert found.agreement == 0.0, "that of the other two, which the look at a target uses"
    assert found.imbalance == 0.0


def test_estimates_that_disagree_leave_equal_shares() -> None:
    q1, q2, q3 = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    assert ShareEstimate(q1, q2, q2, q3).trust == 0.0
    assert ShareEstimate(q1, q2, q2, q3).shares == pytest.approx([1 / 3] * 3)
    assert ShareEstimate(q1, q2, q2, q1).trust == 0.99, "never completely"
    even = np.full(3, 1 / 3)
    assert ShareEstimate(even, even, even, even).shares == pytest.approx(even)


def test_cluster_labels_are_not_asked_where_the_first_two_agree() -> None:
    source, labels = blobs([30, 30, 30, 30, 30], 1)
    target, _ = blobs([150, 10, 10, 10, 10], 2, 0.3)
    found = estimate_aim(source, labels, target)
    assert found.label_shares is None
    assert found.agreement > 0.5
    true = np.array([150, 10, 10, 10, 10]) / 190
    assert np.abs(found.shares - true).sum() < 0.15


@pytest.mark.parametrize("counts", [[150, 10, 10, 10, 10], [150, 80, 0, 10, 10]])
def test_cluster_labels_find_few_classes_of_very_different_size(counts: list[int]) -> None:
    """They divided the largest class when their rows lost the target's mean, which lies in it."""
    source, labels = blobs([30, 30, 30, 30, 30], 1)
    target, _ = blobs(counts, 2, 0.3)
    true = np.array(counts) / sum(counts)
    assert np.abs(counted(source, labels, target) - true).sum() < 0.1


def test_where_source_and_target_have_other_sizes_cluster_labels_say_which() -> None:
    """Sizes are reversed and the target has moved: the classifier's mistakes go the source's way,
    the first two estimates disagree, and the aim by them is nearly uniform."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(8, 32))
    move = rng.normal(size=(8, 32)) * 0.9 + rng.normal(size=32) * 2.5
    sizes = np.array([160, 90, 60, 40, 25, 15, 10, 8])
    y, t = np.repeat(np.arange(8), sizes), np.repeat(np.arange(8), sizes[::-1])
    source = centres[y] + rng.normal(size=(len(y), 32))
    target = (centres + move)[t] + rng.normal(size=(len(t), 32))
    looked = estimate_shares(source, y, target)
    assert looked.agreement <= 0.5
    found = estimate_aim(source, y, target)
    assert np.array_equal(found.cluster_shares, looked.cluster_shares)
    assert np.array_equal(found.predicted_shares, looked.predicted_shares)
    by_source = counted(source, y, target, sizes / sizes.sum())
    assert found.label_shares == pytest.approx(by_source, abs=1e-6)
    assert np.array_equal(estimate_aim(source, y, target, estimate=looked).shares, found.shares)
    true = sizes[::-1] / sizes.sum()
    before, now = (np.abs(q - true).sum() for q in (looked.shares, found.shares))
    assert now < 0.5 * np.abs(true - 1 / 8).sum()
    assert now < before


def test_a_class_without_a_source_row_is_absent() -> None:
    source, labels = blobs([20, 0, 20], 4)
    target, _ = blobs([10, 5, 20], 5)
    q1, q2 = np.array([[0.7, 0, 0.3, 0], [0.3, 0, 0.7, 0]])
    apart = ShareEstimate(q1, q2, q1)
    found = estimate_aim(source, labels, target, estimate=apart)
    assert found.label_shares is not None
    assert found.label_shares[[1, 3]].tolist() == [0.0, 0.0]
    assert found.shares.sum() == pytest.approx(1.0)


def test_single_rows_and_constant_features_give_finite_shares(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "ENOUGH_AGREEMENT", 1.0)
    rows = np.array([[0.0, 1.0], [1.0, 0.0], [0.0, -1.0]])
    constant = np.ones((6, 2))
    for found in (
        estimate_aim(rows, [0, 1, 2], rows),
        estimate_aim(constant, [0, 0, 0, 1, 1, 1], constant[:4]),
        estimate_aim(rows, [0, 0, 0], rows[:1]),
        estimate_aim(np.zeros((2, 1)), [0, 1], np.zeros((1, 1))),
    ):
        assert np.isfinite(found.shares).all()
        assert found.shares.sum() == pytest.approx(1.0)


def test_rows_that_are_all_the_same_say_nothing() -> None:
    labels = np.arange(40) % 4
    shares = estimate_aim(np.zeros((40, 3)), labels, np.zeros((20, 3))).shares
    assert shares == pytest.approx(np.full(4, 0.25))
