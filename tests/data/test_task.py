"""Source and target meet under one class list, by name."""

from pathlib import Path

import numpy as np
import pytest
from tests.small_data import CALL, blobs

import equida
from equida.data import ArrayDomain, ImageDomain, array_domain, image_folder, make_task
from equida.errors import InputError


def test_the_targets_labels_are_looked_up_by_name() -> None:
    source = array_domain(np.zeros((3, 2)), ["ant", "bee", "cat"], name="A")
    target = array_domain(np.zeros((3, 2)), [2, 1, 2], classes=["x", "Ant", "cat"], name="W")
    task = make_task(source, target)
    assert (task.name, task.classes) == ("A2W", ("ant", "bee", "cat"))
    assert task.target.classes == task.classes
    assert task.target.labels is not None
    assert task.target.labels.tolist() == [2, 0, 2]
    assert target.classes == ("x", "Ant", "cat")


def test_an_unlabelled_target_takes_the_sources_classes() -> None:
    source = array_domain(np.zeros((2, 2)), ["ant", "bee"], name="A")
    task = make_task(source, array_domain(np.zeros((1, 2)), name="W"), name="mine")
    assert (task.name, task.target.labels, task.target.classes) == ("mine", None, ("ant", "bee"))


def test_a_source_without_class_names() -> None:
    source = ArrayDomain(np.zeros((2, 2)), name="A", labels=[0, 1])
    with pytest.raises(InputError, match="source A has no class names; expected at least two"):
        make_task(source, array_domain(np.zeros((1, 2)), name="W"))


def _differing() -> tuple[ArrayDomain, ArrayDomain]:
    """Shared are bee and cow; ant is the source's alone, dog the target's; nobody has an eel."""
    names = ["ant", "bee", "cow", "eel"]
    source = array_domain(np.arange(10.0).reshape(5, 2), [0, 1, 2, 2, 0], classes=names, name="A")
    target = array_domain(np.zeros((4, 2)), ["cow", "Bee", "dog", "dog"], name="W")
    return source, target


def test_shared_classes_are_used_and_the_rest_is_told() -> None:
    task = make_task(*_differing(), class_rule="shared")
    assert task.classes == task.source.classes == task.target.classes == ("bee", "cow")
    assert task.source.labels is not None
    assert task.target.labels is not None
    assert (task.source.labels.tolist(), task.target.labels.tolist()) == ([0, 1, 1], [1, 0])
    assert isinstance(task.source, ArrayDomain)
    assert task.source.row(0).tolist() == [2.0, 3.0]
    assert task.left_out == (
        "2 classes, those that both domains have by their labels (--classes source keeps the"
        " source's); left out: 2 of 5 samples of source A, those of 'ant'; 2 of 4 samples of target"
        " W, those of 'dog'; 1 of 4 classes without a sample in source A, such as 'eel'"
    )


def test_the_sources_classes_stay_on_request() -> None:
    task = make_task(*_differing(), class_rule="source")
    assert task.classes == ("ant", "bee", "cow", "eel")
    assert len(task.source) == 5
    assert task.target.labels is not None
    assert task.target.labels.tolist() == [2, 1]
    assert "2 of 4 samples of target W, those of 'dog'" in task.left_out


def test_too_few_shared_classes_are_refused() -> None:
    source, _ = _differing()
    with pytest.raises(
        InputError, match=r"W has 2 classes .*, and 0 of them are classes of source"
    ):
        make_task(source, array_domain(np.zeros((2, 2)), ["fox", "gnu"], name="W"))
    one = array_domain(np.zeros((2, 2)), ["bee", "gnu"], name="W")
    with pytest.raises(InputError, match="at least two, or --classes source to keep"):
        make_task(source, one, class_rule="shared")
    assert len(make_task(source, one).target) == 1


def test_samples_to_be_judged_by_count_for_the_classes() -> None:
    source, target = _differing()
    test = array_domain(np.zeros((1, 2)), ["ant"], name="W (test)")
    task = make_task(source, target, class_rule="shared", test=test)
    assert task.classes == ("ant", "bee", "cow")
    assert task.judged.labels is not None
    assert task.judged.labels.tolist() == [0]


def test_unlabelled_images_in_one_folder_inside_the_target(tmp_path: Path) -> None:
    for name in ("s/ant/1.jpg", "s/bee/1.jpg", "t/all/1.jpg"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    with pytest.raises(InputError) as error:
        make_task(image_folder(tmp_path / "s"), image_folder(tmp_path / "t"))
    assert f"give the images' own folder, {tmp_path / 't' / 'all'}" in str(error.value)


def test_domains_that_do_not_fit_together() -> None:
    source = array_domain(np.zeros((2, 2)), [0, 1], name="A")
    images = ImageDomain("root", ["1.jpg"], name="photos")
    for target, said in (
        (
            array_domain(np.zeros((1, 3)), name="W"),
            r"shape \(2,\) and target W rows of shape \(3,\)",
        ),
        (images, "target photos images"),
        (images.select([]), "photos has no samples"),
    ):
        with pytest.raises(InputError, match=said):
            make_task(source, target)
    with pytest.raises(InputError, match="source photos is unlabelled"):
        make_task(images, images)


def test_views_do_not_have_to_be_as_many() -> None:
    source = array_domain(np.zeros((2, 5, 3)), [0, 1], name="A")
    assert make_task(source, array_domain(np.zeros((1, 3)), name="W")).name == "A2W"


def test_classes_without_a_sample_in_the_source() -> None:
    source = array_domain(np.zeros((2, 2)), [0, 2], classes=["ant", "bee", "cow"], name="A")
    task = make_task(source, array_domain(np.zeros((1, 2)), ["bee"], name="W"))
    assert task.absent_classes() == ["bee"]


def test_a_domain_that_is_called_by_its_role_is_named_once() -> None:
    rows = np.zeros((2, 2))
    for name, said in (("source", "^source has one class"), ("shop", "^source shop has one class")):
        with pytest.raises(InputError, match=said):
            make_task(array_domain(rows, [0, 0], name=name), array_domain(rows, name="target"))


def test_a_class_that_nobody_has_a_sample_of_is_no_class() -> None:
    """Before, methods that balance classes aimed at an equal share for an empty folder."""
    names, labels = ("ant", "bee", "empty"), np.array([0, 1, 0, 1])
    source = ArrayDomain(np.zeros((4, 2)), name="A", classes=names, labels=labels)
    bare = ArrayDomain(np.ones((3, 2)), name="W")
    task = make_task(source, bare, class_rule="shared")
    assert task.classes == ("ant", "bee")
    assert task.left_out == (
        "2 classes, those that the source has samples of (--classes source keeps all); left out: 1"
        " of 3 classes without a sample in source A, such as 'empty'"
    )
    assert make_task(source, bare, class_rule="source").classes == source.classes


@pytest.mark.usefixtures("own_folder")
def test_numbered_columns_in_another_order_are_refused() -> None:
    """Before: names that are numbers were no names, and every label was wrong."""
    import pandas as pd

    data = blobs()
    source, target = pd.DataFrame(data.source), pd.DataFrame(data.target)
    with pytest.raises(InputError, match="expected the same in the order '0', '1', '2'"):
        equida.adapt((source, data.labels), target[source.columns[::-1]], **CALL)
    named = pd.DataFrame(data.target, columns=list("abcdefgh"))
    run = equida.adapt((source, data.labels), named, **CALL)
    assert run.path, "a frame without names goes with any"
