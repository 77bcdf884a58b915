"""Measures of predictions: what the paper defines on a matrix of probabilities."""

from equida.evaluation.measures import (
    class_weighted_squares,
    discriminability,
    equity,
    mean_squares,
    normalized_squares,
    nuclear_norm,
)

__all__ = [
    "class_weighted_squares",
    "discriminability",
    "equity",
    "mean_squares",
    "normalized_squares",
    "nuclear_norm",
]
