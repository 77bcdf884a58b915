"""The data sets of the field: one file each, with everything that is known of the data set.

>>> [domain.title for domain in benchmark("office31").task("A2W")]
['Amazon', 'Webcam']
"""

# Importing a module registers its data set; the order here is that of lists and tables.
# isort: off
from equida.data.benchmarks import office31, office_home, office_home_rsut, visda2017, digits  # noqa: F401
# isort: on

from equida.data.benchmarks.base import BENCHMARKS, Benchmark, BenchmarkDomain, benchmark

__all__ = [
    "BENCHMARKS",
    "Benchmark",
    "BenchmarkDomain",
    "benchmark",
]
