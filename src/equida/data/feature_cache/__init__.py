"""Features of every image, computed once and kept in one memory-mapped file."""

from equida.data.feature_cache.contents import Meter
from equida.data.feature_cache.file import Dtype, Engine, Existing, FeatureSettings
from equida.data.feature_cache.store import FeatureStore
from equida.data.feature_cache.write import Extraction, write_features

__all__ = [
    "Dtype",
    "Engine",
    "Existing",
    "Extraction",
    "FeatureSettings",
    "FeatureStore",
    "Meter",
    "write_features",
]
