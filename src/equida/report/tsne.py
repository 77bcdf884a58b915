"""t-SNE of predictions: the one place where samples are put on a plane by what is predicted."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from equida.errors import require

NEIGHBOURS = 30.0
"""About how many neighbours a sample has; lowered where there are few samples."""
FEW = 1000
"""Up to as many samples, the neighbours are searched exactly, which is then the quick way."""


def embed(probs: ArrayLike, *, iterations: int = 350) -> NDArray[np.float64]:
    """Places in the plane, (samples, 2), in [0, 1]; the same for the same predictions.

    The distance of two samples is that of the square roots of their probabilities (Hellinger's).

    Args:
        probs: predictions, (samples, classes), as a tensor or an array.
        iterations: steps of the optimizer after the early ones.

    Raises:
        InputError: openTSNE is not installed.
    """
    values = np.nan_to_num(np.asarray(probs, np.float64))
    if len(values) < 4:
        return np.linspace(0.0, 1.0, 2 * len(values)).reshape(-1, 2)
    tsne = import_tsne()(
        perplexity=min(NEIGHBOURS, (len(values) - 1) / 3),
        n_iter=iterations,
        initialization=_initialization(values),
        neighbors="exact" if len(values) <= FEW else "auto",
        # Interpolation pays off far above this number; Barnes and Hut's way is quick below it.
        negative_gradient_method="bh" if len(values) <= FEW else "auto",
        n_jobs=1,
        random_state=0,
    )
    return fit_square(np.asarray(tsne.fit(np.sqrt(values.clip(0.0))), np.float64))


def _initialization(values: NDArray[np.float64]) -> str:
    """Principal components keep the large distances; equal samples, or one class, have none."""
    return "pca" if values.shape[1] > 1 and np.ptp(values, 0).any() else "random"


def fit_square(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """The places, each axis scaled to [0, 1]; an axis without extent stays at 0."""
    low, high = places.min(0), places.max(0)
    scaled: NDArray[np.float64] = (places - low) / np.where(high > low, high - low, 1.0)
    return scaled


def import_tsne() -> Any:
    """The class `openTSNE.TSNE`, or an error that names the extra."""
    return require("openTSNE", "t-SNE needs openTSNE", "equida[report]").TSNE
