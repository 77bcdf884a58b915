"""Unsupervised domain adaptation by discriminability and equity of target predictions."""

__version__ = "0.1.0"
