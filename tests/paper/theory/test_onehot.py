"""One-hot matrices by class sizes, against counting and against the definition of the measures."""

import itertools
import math

import numpy as np
import pytest
import torch

from equida.paper.theory.onehot import (
    balanced_sizes,
    compositions,
    cws_of,
    ns_of,
    nuclear_norm_of,
    one_hot,
    partitions,
)


@pytest.mark.parametrize(("rows", "classes"), [(1, 1), (5, 3), (4, 4), (3, 6), (0, 2)])
def test_enumerations_are_those_of_all_label_vectors(rows: int, classes: int) -> None:
    vectors = set()
    for labels in itertools.product(range(classes), repeat=rows):
        vectors.add(tuple(labels.count(label) for label in range(classes)))
    assert {tuple(sizes) for sizes in compositions(rows, classes)} == vectors
    assert len(list(compositions(rows, classes))) == math.comb(rows + classes - 1, classes - 1)
    multisets = {tuple(sorted(sizes, reverse=True)) for sizes in vectors}
    found = [tuple(sizes) for sizes in partitions(rows, classes)]
    assert set(found) == multisets
    assert len(found) == len(multisets)


def test_the_number_of_partitions_of_36_is_the_known_one() -> None:
    assert sum(1 for _ in partitions(36, 36)) == 17977


def test_balanced_sizes_at_the_batch_size_of_the_paper() -> None:
    assert balanced_sizes(36, 31) == [2] * 5 + [1] * 26
    assert balanced_sizes(36, 65) == [1] * 36 + [0] * 29
    assert balanced_sizes(36, 12) == [3] * 12


def test_closed_forms_at_the_batch_size_of_the_paper() -> None:
    sizes = torch.tensor(balanced_sizes(36, 31), dtype=torch.float64)
    probs = one_hot(balanced_sizes(36, 31)).numpy()
    assert float(nuclear_norm_of(sizes)) == pytest.approx(np.linalg.norm(probs, "nuc"))
    assert float(nuclear_norm_of(sizes)) == pytest.approx(33.0711, abs=5e-5)
    assert float(cws_of(sizes, 0.5)) == pytest.approx(1.0668, abs=5e-5)
    assert float(ns_of(sizes, 1.0, 0.0)) == pytest.approx(0.78261, abs=5e-6)
    sizes = torch.tensor(balanced_sizes(36, 65), dtype=torch.float64)
    assert float(ns_of(sizes, 2.0, 1e-6)) == pytest.approx(0.500036, abs=5e-7)
