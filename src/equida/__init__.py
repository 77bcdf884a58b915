"""Unsupervised domain adaptation by discriminability and equity of target predictions."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from equida.estimator import EquidaClassifier

__version__ = "0.1.0"
__all__ = ["EquidaClassifier", "__version__"]


def __getattr__(name: str) -> object:
    # Late, so that `import equida.losses` costs torch and nothing else.
    if name == "EquidaClassifier":
        from equida.estimator import EquidaClassifier

        return EquidaClassifier
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
