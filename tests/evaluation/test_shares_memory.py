"""The estimate of class shares makes few copies of its rows."""

import tracemalloc

import numpy as np

from equida.evaluation.shares import source_predictions


def test_the_classifier_of_the_source_needs_few_copies_of_the_rows() -> None:
    random = np.random.default_rng(0)
    source, target = (random.normal(size=(600, 1000)).astype(np.float32) for _ in range(2))
    labels = np.arange(600) % 3
    source_predictions(source[:30], labels[:30], target[:30])
    tracemalloc.start()
    source_predictions(source, labels, target)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # In units of the given rows, in float32: two of each domain in float64; torch's are not traced.
    assert peak < 5.2 * source.nbytes
