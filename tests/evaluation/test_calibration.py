"""The temperature against scipy's minimum, and against predictions that were made too sure."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from equida.evaluation.calibration import expected_accuracy, fit_temperature, with_temperature


def sampled(temperature: float, count: int = 4000) -> tuple[torch.Tensor, torch.Tensor]:
    """Predictions that are `temperature` times too sure of labels drawn from the right ones."""
    random = np.random.default_rng(0)
    logits = 2 * random.normal(size=(count, 5))
    probs = np.exp(log_softmax(logits, axis=1))
    labels = np.array([random.choice(5, p=row) for row in probs])
    return torch.from_numpy(log_softmax(temperature * logits, axis=1)), torch.from_numpy(labels)


@pytest.mark.parametrize("sure", [0.4, 1.0, 3.0])
def test_predictions_that_are_too_sure_or_not_sure_enough(sure: float) -> None:
    log_probs, labels = sampled(sure)
    found = fit_temperature(log_probs, labels)
    assert found == pytest.approx(sure, rel=0.06)

    def cross_entropy(temperature: float) -> float:
        rows = log_softmax(log_probs.numpy() / temperature, axis=1)
        return -float(rows[np.arange(len(rows)), labels].mean())

    best = minimize_scalar(
        cross_entropy, bounds=(0.05, 20), method="bounded", options={"xatol": 1e-9}
    )
    assert found == pytest.approx(best.x, rel=1e-5)
    calibrated = with_temperature(log_probs, found)
    right = (calibrated.argmax(1) == labels).double().mean()
    assert expected_accuracy(calibrated) == pytest.approx(float(right), abs=0.02)


def test_extremes_stay_finite() -> None:
    sure = torch.tensor([[0.0, -200.0], [-200.0, 0.0]])
    assert fit_temperature(sure, torch.tensor([0, 1])) == pytest.approx(0.05)
    assert fit_temperature(sure, torch.tensor([1, 0])) == pytest.approx(20.0)
    assert bool(with_temperature(sure, 0.05).isfinite().all())
