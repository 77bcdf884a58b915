import sys

import numpy as np
import pytest
import torch

from equida.errors import InputError
from equida.report.tsne import FEW, embed, fit_square


def clustered(count: int, classes: int, noise: float = 1.0) -> torch.Tensor:
    """Predictions of samples whose classes take turns."""
    generator = torch.Generator().manual_seed(0)
    logits = 4.0 * torch.eye(classes)[torch.arange(count) % classes]
    return (logits + noise * torch.randn(count, classes, generator=generator)).softmax(1)


def test_samples_that_are_predicted_alike_lie_together() -> None:
    probs = clustered(90, 3)
    places = embed(probs)
    assert places.min() == 0.0
    assert places.max() == 1.0
    distances = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    nearest = distances.argmin(1)
    predicted = probs.argmax(1).numpy()
    assert (predicted == predicted[nearest]).mean() > 0.9
    assert np.array_equal(places, embed(probs))


def test_very_few_or_equal_samples_have_places_too() -> None:
    assert embed(torch.full((2, 3), 1 / 3)).shape == (2, 2)
    assert np.isfinite(embed(torch.eye(3)[[0] * 12])).all()


def test_a_tensor_and_an_array_have_the_same_places() -> None:
    probs = clustered(20, 3)
    assert np.array_equal(embed(probs), embed(probs.numpy()))


@pytest.mark.slow(reason="a map of many samples")
def test_many_samples_keep_their_clusters() -> None:
    probs = clustered(FEW + 200, 3, noise=0.5)
    places = embed(probs, iterations=100)
    labels = probs.argmax(1).numpy()
    centres = np.stack([places[labels == c].mean(0) for c in range(3)])
    nearest = np.linalg.norm(places[:, None] - centres[None], axis=2).argmin(1)
    assert (nearest == labels).mean() > 0.95


def test_an_axis_without_extent_stays_at_zero() -> None:
    assert fit_square(np.array([[1.0, 5.0], [3.0, 5.0]])).tolist() == [[0.0, 0.0], [1.0, 0.0]]


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openTSNE", None)
    with pytest.raises(InputError, match=r"openTSNE: pip install 'equida\[report\]'"):
        embed(clustered(8, 2))
