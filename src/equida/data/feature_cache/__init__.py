"""Features of every image, computed once and kept in one memory-mapped file."""

from equida.data.feature_cache.contents import Meter
from equida.data.feature_cache.file import (
    Dtype,
    Engine,
    Existing,
    ExtractionOptions,
    FeatureSettings,
)
from equida.data.feature_cache.store import FeatureStore
from equida.data.feature_cache.write import (
    ComputedBatch,
    Extraction,
    FeatureBatches,
    ListedImages,
    ShardRunner,
    check_feature_file,
    write_features,
)

__all__ = [
    "ComputedBatch",
    "Dtype",
    "Engine",
    "Existing",
    "Extraction",
    "ExtractionOptions",
    "FeatureBatches",
    "FeatureSettings",
    "FeatureStore",
    "ListedImages",
    "Meter",
    "ShardRunner",
    "check_feature_file",
    "write_features",
]
