"""Unsupervised domain adaptation by discriminability and equity of target predictions.

>>> import equida
>>> [name for name in dir(equida) if not name.startswith("_")]
['EquidaClassifier', 'adapt', 'bench', 'compare', 'extract_features', 'global_batch',
 'load_run', 'scorers', 'tune']
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from equida import scorers
    from equida.api import adapt, bench, compare, extract_features, load_run, tune
    from equida.distributed import global_batch
    from equida.estimator import EquidaClassifier

__version__ = "0.1.0"
__all__ = [
    "EquidaClassifier",
    "__version__",
    "adapt",
    "bench",
    "compare",
    "extract_features",
    "global_batch",
    "load_run",
    "scorers",
    "tune",
]

# Imported late, so that `import equida` costs nothing and `import equida.losses` only torch.
_MODULES = {
    "adapt": "equida.api",
    "bench": "equida.api",
    "compare": "equida.api",
    "extract_features": "equida.api",
    "load_run": "equida.api",
    "tune": "equida.api",
    "global_batch": "equida.distributed",
    "EquidaClassifier": "equida.estimator",
}


def __getattr__(name: str) -> object:
    if name == "scorers":
        return importlib.import_module("equida.scorers")
    if name in _MODULES:
        return getattr(importlib.import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    dunders = [name for name in globals() if name.startswith("__")]
    return sorted({*dunders, *__all__})
