import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, balanced_accuracy_score, confusion_matrix

from equida.evaluation import accuracy as measured


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40))
def test_the_same_as_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    true, said = np.array(pairs).T
    counts = measured.confusion_matrix(torch.from_numpy(said), torch.from_numpy(true), 4)
    assert counts.tolist() == confusion_matrix(true, said, labels=range(4)).tolist()
    assert np.isclose(measured.accuracy(counts), accuracy_score(true, said))
    present = [label for label in range(4) if (true == label).any()]
    recalls = [np.mean(said[true == label] == label) for label in present]
    assert np.isclose(measured.mean_class_accuracy(counts), np.mean(recalls))
    if set(said) <= set(present):
        balanced = balanced_accuracy_score(true, said)
        assert np.isclose(measured.mean_class_accuracy(counts), balanced)


def test_unknown_labels_do_not_count() -> None:
    counts = measured.confusion_matrix(torch.tensor([0, 1]), torch.tensor([-1, 1]), 2)
    assert counts.tolist() == [[0, 0], [0, 1]]
