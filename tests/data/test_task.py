"""Source and target meet under one class list, by name."""

from pathlib import Path

import numpy as np
import pytest

from equida.data import ImageDomain, array_domain, image_folder, make_task
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


def test_target_classes_that_the_source_lacks_are_named() -> None:
    source = array_domain(np.zeros((2, 2)), ["ant", "bee"], name="A")
    target = array_domain(np.zeros((2, 2)), ["bee", "cow"], name="W")
    with pytest.raises(InputError, match=r"target W .* source A lacks: 'cow'"):
        make_task(source, target)


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
