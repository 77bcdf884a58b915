"""Domains and tasks: data of any kind, as samples that are read when they are needed.

Data in memory need no files:

>>> import numpy as np
>>> from equida.data import array_domain, make_task
>>> x, y = np.random.default_rng(0).normal(size=(6, 4)), ["mug", "pen"] * 3
>>> make_task(array_domain(x, y, name="shop"), array_domain(x + 1, name="desk")).name
'shop2desk'

`open_domain` opens a folder, an image list or a feature file; `load_domain` and `load_task` open
the data sets in `BENCHMARKS`:

>>> from equida.data import BENCHMARKS, load_task
>>> "office31" in BENCHMARKS
True
>>> load_task("digits", "U2M").source
ArrayDomain('U', 1797 samples, 10 classes)
"""

from equida.data.arrays import array_domain
from equida.data.benchmarks import BENCHMARKS, Benchmark, BenchmarkDomain, benchmark
from equida.data.checks import check_readable, drop_samples, find_unreadable
from equida.data.doctor import DataCheck, check_data
from equida.data.domain import ArrayDomain, Domain, ImageDomain
from equida.data.feature_file import FeatureOrigin, feature_domain, feature_domains, feature_origin
from equida.data.folders import image_folder
from equida.data.images import UnreadableImage, read_image
from equida.data.join import join_features
from equida.data.lists import image_list
from equida.data.open import load_domain, load_task, open_domain
from equida.data.task import Task, make_task

__all__ = [
    "BENCHMARKS",
    "ArrayDomain",
    "Benchmark",
    "BenchmarkDomain",
    "DataCheck",
    "Domain",
    "FeatureOrigin",
    "ImageDomain",
    "Task",
    "UnreadableImage",
    "array_domain",
    "benchmark",
    "check_data",
    "check_readable",
    "drop_samples",
    "feature_domain",
    "feature_domains",
    "feature_origin",
    "find_unreadable",
    "image_folder",
    "image_list",
    "join_features",
    "load_domain",
    "load_task",
    "make_task",
    "open_domain",
    "read_image",
]
