"""The data that a config names, as the loop sees them."""

from pathlib import Path

import numpy as np
import pytest

from equida.errors import InputError
from equida.training.config import TaskSource
from equida.training.tasks import open_task

CLASSES = ("ant", "bee", "cow")


def rows(folder: Path, classes: tuple[str, ...], labels: list[int]) -> TaskSource:
    """A feature file with one labelled domain, as the target of source-free adaptation."""
    file = folder / "target.npz"
    values = np.arange(3.0 * len(labels), dtype="f4").reshape(-1, 3)
    np.savez(file, b_x=values, b_y=np.array(labels), classes=np.array(classes))
    return TaskSource("", f"{file}:b")


@pytest.mark.parametrize(
    ("classes", "labels", "expected"),
    [
        (("bee", "cow"), [0, 1, 1, 0], [1, 2, 2, 1]),
        (("cow", "bee", "ant"), [0, 1, 2, 2], [2, 1, 0, 0]),
        (("COW", "bee"), [0, 0, 1, 1], [2, 2, 1, 1]),
        (("ant", "bee", "cow", "unused"), [0, 1, 2, 2], [0, 1, 2, 2]),
    ],
)
def test_source_free_labels_are_found_by_class_name(
    classes: tuple[str, ...], labels: list[int], expected: list[int], tmp_path: Path
) -> None:
    task, _ = open_task(rows(tmp_path, classes, labels), CLASSES)
    assert task.classes == task.target.classes == CLASSES
    assert task.target.labels is not None
    assert task.target.labels.tolist() == expected


def test_a_class_that_the_finished_run_does_not_know(tmp_path: Path) -> None:
    where = rows(tmp_path, ("bee", "dog"), [0, 1])
    said = "classes that source of the finished run lacks: 'dog'; rename or remove"
    with pytest.raises(InputError, match=said):
        open_task(where, CLASSES)


def test_an_unlabelled_target_takes_the_runs_classes(tmp_path: Path) -> None:
    file = tmp_path / "target.npz"
    np.savez(file, b_x=np.zeros((4, 3), "f4"))
    task, _ = open_task(TaskSource("", f"{file}:b"), CLASSES)
    assert task.target.labels is None
    assert task.classes == task.target.classes == CLASSES
