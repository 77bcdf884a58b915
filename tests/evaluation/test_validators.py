"""Each score against its definition, written out in numpy."""

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from equida.evaluation import validators


@pytest.fixture(params=[(30, 5), (4, 9)], ids=["tall", "wide"])
def log_probs(request: pytest.FixtureRequest) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return (3.0 * torch.randn(request.param, generator=generator)).log_softmax(1)


def probs_of(log_probs: Tensor) -> NDArray[np.float64]:
    return log_probs.double().exp().numpy()


def entropy(probs: NDArray[np.float64]) -> float:
    return float(-(probs * np.log(probs)).sum())


def test_entropy(log_probs: Tensor) -> None:
    expected = -np.mean([entropy(row) for row in probs_of(log_probs)])
    assert validators.negative_entropy(log_probs) == pytest.approx(expected, rel=1e-5)


def test_information_maximization_is_the_mutual_information(log_probs: Tensor) -> None:
    probs = probs_of(log_probs)
    expected = entropy(probs.mean(0)) - np.mean([entropy(row) for row in probs])
    assert validators.information_maximization(log_probs) == pytest.approx(expected, rel=1e-5)


def test_nuclear_norm_is_the_sum_of_singular_values(log_probs: Tensor) -> None:
    probs = probs_of(log_probs)
    most = np.sqrt(len(probs) * min(probs.shape))
    expected = np.linalg.svd(probs, compute_uv=False).sum() / most
    assert validators.nuclear_norm(log_probs) == pytest.approx(expected, rel=1e-6)


def test_soft_neighbourhood_density(log_probs: Tensor) -> None:
    probs = probs_of(log_probs)
    units = probs / np.linalg.norm(probs, axis=1, keepdims=True)
    entropies = []
    for number, row in enumerate(units):
        weights = np.exp(np.delete(units @ row, number) / 0.05)
        entropies.append(entropy(weights / weights.sum()))
    scored = validators.soft_neighbourhood_density(log_probs)
    assert scored == pytest.approx(np.mean(entropies), rel=1e-4)


def test_large_sets_are_thinned_evenly() -> None:
    generator = torch.Generator().manual_seed(0)
    many = torch.randn(2500, 4, generator=generator).log_softmax(1)
    expected = validators.soft_neighbourhood_density(many[::3])
    assert validators.soft_neighbourhood_density(many) == expected


def test_certain_predictions_have_finite_scores() -> None:
    certain = (200.0 * torch.eye(3).repeat(4, 1)).log_softmax(1)
    known = [validators.VALIDATORS[name].score for name in validators.VALIDATORS]
    scores = [score(certain) for score in known if score is not None]
    assert len(scores) == len(known) - 1
    assert np.isfinite(scores).all()
