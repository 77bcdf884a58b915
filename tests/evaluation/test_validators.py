"""Each score against its definition, written out in numpy or taken from scikit-learn."""

import dataclasses

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn.metrics import calinski_harabasz_score
from sklearn.neighbors import NearestNeighbors
from torch import Tensor

from equida.errors import InputError
from equida.evaluation.predictions import DomainPredictions, InputRows
from equida.evaluation.validators import VALIDATORS, Need, validator

CLASSES = 5


@pytest.fixture(params=[(30, 5), (4, 9)], ids=["tall", "wide"])
def log_probs(request: pytest.FixtureRequest) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return (3.0 * torch.randn(request.param, generator=generator)).log_softmax(1)


def predictions(samples: int, seed: int) -> DomainPredictions:
    """Predictions of a network that has learned something, with all that a validator may need."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, CLASSES, samples)
    rows = np.eye(CLASSES, 7)[labels] + 0.6 * random.normal(size=(samples, 7))
    logits = 2.0 * rows[:, :CLASSES] + 0.5 * random.normal(size=(samples, CLASSES))
    return DomainPredictions(
        torch.from_numpy(logits).float().log_softmax(1),
        torch.from_numpy(labels),
        torch.from_numpy(rows @ random.normal(size=(7, 4))).float(),
        InputRows(torch.from_numpy(rows).float()),
        torch.from_numpy(rows[:, :CLASSES].argmax(1)),
        linear,
    )


def linear(rows: Tensor) -> Tensor:
    """A network."""
    return (2.0 * rows[:, :CLASSES]).log_softmax(1)


@pytest.fixture(scope="module")
def target() -> DomainPredictions:
    return predictions(60, 1)


@pytest.fixture(scope="module")
def source() -> DomainPredictions:
    return predictions(50, 2)


def score(name: str, log_probs: Tensor) -> float:
    return VALIDATORS[name].score(DomainPredictions(log_probs))


def probs_of(log_probs: Tensor) -> NDArray[np.float64]:
    return log_probs.double().exp().numpy()


def entropy(probs: NDArray[np.float64]) -> float:
    return float(-(probs * np.log(probs)).sum())


def test_entropy(log_probs: Tensor) -> None:
    expected = -np.mean([entropy(row) for row in probs_of(log_probs)])
    assert score("entropy", log_probs) == pytest.approx(expected, rel=1e-5)


def test_information_maximization_is_the_mutual_information(log_probs: Tensor) -> None:
    probs = probs_of(log_probs)
    expected = entropy(probs.mean(0)) - np.mean([entropy(row) for row in probs])
    assert score("information_maximization", log_probs) == pytest.approx(expected, rel=1e-5)


def test_nuclear_norm_is_the_sum_of_singular_values(log_probs: Tensor) -> None:
    probs = probs_of(log_probs)
    most = np.sqrt(len(probs) * min(probs.shape))
    expected = np.linalg.svd(probs, compute_uv=False).sum() / most
    assert score("bnm", log_probs) == pytest.approx(expected, rel=1e-6)


def test_soft_neighbourhood_density(log_probs: Tensor) -> None:
    probs = probs_of(log_probs)
    units = probs / np.linalg.norm(probs, axis=1, keepdims=True)
    entropies = []
    for number, row in enumerate(units):
        weights = np.exp(np.delete(units @ row, number) / 0.05)
        entropies.append(entropy(weights / weights.sum()))
    assert score("snd", log_probs) == pytest.approx(np.mean(entropies), rel=1e-4)


def test_large_sets_are_thinned_evenly() -> None:
    generator = torch.Generator().manual_seed(0)
    many = torch.randn(2500, 4, generator=generator).log_softmax(1)
    assert score("snd", many) == score("snd", many[::3])


def test_source_accuracy_counts_right_predictions(
    target: DomainPredictions, source: DomainPredictions
) -> None:
    assert source.labels is not None
    expected = np.mean(source.log_probs.numpy().argmax(1) == source.labels.numpy())
    scored = VALIDATORS["source_accuracy"].score(target, source)
    assert scored == pytest.approx(expected)
    assert 0.3 < scored < 1


def agreement(target: DomainPredictions) -> float:
    """Mean over samples of the share of their five nearest others with the same prediction."""
    assert target.inputs is not None
    rows, predicted = target.inputs.rows.numpy(), target.log_probs.numpy().argmax(1)
    found = NearestNeighbors(n_neighbors=6, metric="cosine").fit(rows).kneighbors(rows)[1][:, 1:]
    return float(
        np.mean([np.mean(predicted[others] == predicted[i]) for i, others in enumerate(found)])
    )


def test_agreement_with_neighbours(target: DomainPredictions) -> None:
    expected = agreement(target)
    assert 0.3 < expected < 1
    assert VALIDATORS["knn"].score(target) == pytest.approx(expected)


def test_balanced_agreement_is_agreement_times_the_entropy_of_shares(
    target: DomainPredictions,
) -> None:
    shares = np.bincount(target.log_probs.numpy().argmax(1), minlength=CLASSES) / 60
    assert shares.min() > 0
    expected = agreement(target) * entropy(shares) / np.log(CLASSES)
    assert VALIDATORS["knn_balance"].score(target) == pytest.approx(expected)


def test_a_collapse_pleases_agreement_alone(target: DomainPredictions) -> None:
    collapsed = dataclasses.replace(target, log_probs=torch.eye(CLASSES)[[2] * 60].log_softmax(1))
    assert VALIDATORS["knn"].score(collapsed) == 1
    assert VALIDATORS["knn_balance"].score(collapsed) == 0


def test_calinski_harabasz_is_that_of_scikit_learn(target: DomainPredictions) -> None:
    assert target.inputs is not None
    rows = target.inputs.rows.double().numpy()
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    expected = calinski_harabasz_score(units, target.log_probs.numpy().argmax(1))
    assert VALIDATORS["calinski_harabasz"].score(target) == pytest.approx(expected, rel=1e-4)


def test_agreement_with_cluster_labels(target: DomainPredictions) -> None:
    assert target.cluster_labels is not None
    expected = np.mean(target.log_probs.numpy().argmax(1) == target.cluster_labels.numpy())
    assert 0.3 < expected < 1
    assert VALIDATORS["cluster_agreement"].score(target) == pytest.approx(expected)


def weighted_losses(
    target: DomainPredictions, source: DomainPredictions
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Density ratios by Newton's method on the penalised likelihood of the domain, and losses."""
    assert source.features is not None
    assert source.labels is not None
    assert target.features is not None
    rows = np.concatenate([source.features.double(), target.features.double()])
    rows = np.column_stack([(rows - rows.mean(0)) / rows.std(0), np.ones(len(rows))])
    domain = np.repeat([0.0, 1.0], [len(source.features), len(target.features)])
    penalty = np.diag([1.0] * (rows.shape[1] - 1) + [0.0])
    beta = np.zeros(rows.shape[1])
    for _ in range(50):
        probs = 1 / (1 + np.exp(-rows @ beta))
        gradient = rows.T @ (domain - probs) - penalty @ beta
        hessian = rows.T @ (rows * (probs * (1 - probs))[:, None]) + penalty
        beta += np.linalg.solve(hessian, gradient)
    odds = np.exp(rows[: len(source.features)] @ beta)
    losses = -np.log(probs_of(source.log_probs)[np.arange(50), source.labels.numpy()])
    return odds * len(source.features) / len(target.features), losses


def test_importance_weighted_risk(target: DomainPredictions, source: DomainPredictions) -> None:
    weights, losses = weighted_losses(target, source)
    assert weights.std() > 0.1
    expected = -np.mean(weights * losses)
    assert VALIDATORS["iw_risk"].score(target, source) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("name", ["iw_risk", "dev"])
def test_source_samples_of_no_class_do_not_count(
    target: DomainPredictions, source: DomainPredictions, name: str
) -> None:
    """The only samples of a rare class may all be held out."""
    assert source.labels is not None
    labels = source.labels.clone()
    labels[::7] = -1
    unknown = dataclasses.replace(source, labels=labels)
    with_some = VALIDATORS[name].score(target, unknown)
    weights, losses = weighted_losses(target, source)
    weights, losses = weights[labels >= 0], losses[labels >= 0]
    expected = -np.mean(weights * losses)
    if name == "dev":
        covariance = np.cov(weights * losses, weights)
        eta = -covariance[0, 1] / covariance[1, 1]
        expected = -(np.mean(weights * losses) + eta * np.mean(weights) - eta)
    assert with_some == pytest.approx(expected, rel=1e-3)


def test_deep_embedded_validation(target: DomainPredictions, source: DomainPredictions) -> None:
    weights, losses = weighted_losses(target, source)
    covariance = np.cov(weights * losses, weights)
    eta = -covariance[0, 1] / covariance[1, 1]
    expected = -(np.mean(weights * losses) + eta * np.mean(weights) - eta)
    assert VALIDATORS["dev"].score(target, source) == pytest.approx(expected, rel=1e-3)


def test_neighbours_of_some_rows_are_those_rows() -> None:
    """Of a thinned domain, positions are those in the whole domain."""
    rows = torch.randn(40, 6, generator=torch.Generator().manual_seed(0))
    samples, others = InputRows(rows[::4], torch.arange(0, 40, 4)).neighbours
    assert samples.tolist() == list(range(0, 40, 4))
    expected, _ = InputRows(rows[::4]).neighbours
    assert (others % 4 == 0).all()
    assert torch.equal(others // 4, InputRows(rows[::4]).neighbours[1])
    assert torch.equal(samples // 4, expected)


@pytest.mark.parametrize(("threshold", "expected"), [(0.5, 1.0), (0.4, 0.75), (0.6, 0.75)])
def test_mixtures_of_two_points(threshold: float, expected: float) -> None:
    """Of 0 and 1, mixtures are at 0.45 and 0.55: each threshold that is not between them gives one
    of the two the other's class. Mixtures of equal points are always right."""

    def network(rows: Tensor) -> Tensor:
        return torch.cat([threshold - rows, rows - threshold], 1).log_softmax(1)

    rows = torch.arange(20).float().remainder(2)[:, None]
    seen = DomainPredictions(network(rows), inputs=InputRows(rows), network=network)
    # A random pair is of two kinds or of one; both points occur equally often among the former.
    assert VALIDATORS["mixval"].score(seen) == pytest.approx(expected)


def test_mixtures_agree_as_often_as_over_all_pairs() -> None:
    """The random pairs estimate the mean over all pairs, which is computed here in numpy."""
    random = np.random.default_rng(0)
    labels = random.integers(0, 3, 1500)
    weights = random.normal(size=(3, 2))
    rows = 2.0 * np.array([[0.0, 1.0], [1.0, -0.5], [-1.0, -0.5]])[labels]
    rows += random.normal(size=rows.shape)
    centres = torch.from_numpy(weights)

    def network(given: Tensor) -> Tensor:
        return -torch.cdist(given.double(), centres)

    inputs = torch.from_numpy(rows)
    seen = DomainPredictions(network(inputs), inputs=InputRows(inputs), network=network)
    hard = np.linalg.norm(rows[:, None] - weights, axis=2).argmin(1)
    right = np.empty((1500, 1500), bool)
    for number, row in enumerate(rows):
        mixed = 0.55 * row + 0.45 * rows
        distances = np.linalg.norm(mixed[:, None] - weights, axis=2)
        right[number] = distances.argmin(1) == hard[number]
    alike = hard[:, None] == hard
    others = alike & ~np.eye(1500, dtype=bool)
    within = np.mean([right[i][others[i]].mean() for i in range(1500) if others[i].any()])
    expected = (within + right[~alike].mean()) / 2
    assert 0.6 < expected < 0.95
    assert VALIDATORS["mixval"].score(seen) == pytest.approx(expected, abs=0.03)


def test_one_class_for_everything_has_no_boundary_to_probe() -> None:
    rows = torch.randn(30, 2, generator=torch.Generator().manual_seed(0))

    def network(given: Tensor) -> Tensor:
        return torch.tensor([[0.0, -5.0]]).repeat(len(given), 1)

    seen = DomainPredictions(network(rows), inputs=InputRows(rows), network=network)
    assert VALIDATORS["mixval"].score(seen) == 0.5


def test_many_queries_are_thinned_evenly() -> None:
    rows = torch.randn(2101, 3, generator=torch.Generator().manual_seed(0))
    samples, others = InputRows(rows).neighbours
    assert samples.tolist() == list(range(0, 2101, 2))
    found = NearestNeighbors(n_neighbors=6, metric="cosine").fit(rows).kneighbors(rows[samples])
    assert np.mean(np.sort(found[1][:, 1:]) == np.sort(others.numpy())) > 0.999


@pytest.mark.parametrize("name", VALIDATORS)
def test_target_labels_are_never_seen(
    name: str, target: DomainPredictions, source: DomainPredictions
) -> None:
    nonsense = torch.randint(CLASSES, (60,), generator=torch.Generator().manual_seed(3))
    other = dataclasses.replace(target, labels=nonsense)
    check = VALIDATORS[name]
    assert check.score(target, source) == check.score(other, source)
    assert check.score(target, source) == check.score(target.without_labels, source)


@pytest.mark.parametrize("name", VALIDATORS)
def test_a_validator_names_what_it_lacks(name: str, target: DomainPredictions) -> None:
    check = VALIDATORS[name]
    bare = DomainPredictions(target.log_probs)
    assert check.lacking(bare) == list(check.needs)
    if check.needs:
        with pytest.raises(InputError, match=f"validator '{name}' needs "):
            check.score(bare)


@pytest.mark.parametrize("name", VALIDATORS)
def test_certain_predictions_have_finite_scores(name: str, source: DomainPredictions) -> None:
    certain = DomainPredictions(
        (200.0 * torch.eye(3).repeat(4, 1)).log_softmax(1),
        features=torch.eye(3).repeat(4, 2)[:, :4],
        inputs=InputRows(torch.eye(3).repeat(4, 1)),
        cluster_labels=torch.arange(12) % 3,
        network=linear,
    )
    assert np.isfinite(VALIDATORS[name].score(certain, source))


def test_a_new_validator_is_one_function(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(VALIDATORS, "_entries", dict(VALIDATORS._entries))
    seen: list[DomainPredictions | None] = []

    @validator("mine", "mine", "the step that I like")
    def mine(target: DomainPredictions, source: DomainPredictions | None) -> float:
        seen.extend((target, source))
        return 1.0

    whole = predictions(9, 0)
    assert VALIDATORS["mine"].score(whole, whole) == 1.0
    assert seen[0] is not None
    assert seen[0].labels is None
    assert seen[1] is None, "it has not asked for the source"
    wrong: Need = "labels"  # type: ignore[assignment]
    with pytest.raises(ValueError, match="needs 'labels'; it may need source, features, inputs, "):
        validator("wrong", "wrong", "nothing", needs=(wrong,))
