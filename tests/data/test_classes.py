"""Class names that are nearly the same are refused, whatever way the data come in."""

import json
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis.strategies import text
from safetensors.numpy import save_file

from equida import EquidaClassifier, adapt
from equida.data import (
    ArrayDomain,
    array_domain,
    feature_domain,
    image_folder,
    image_list,
    load_domain,
    make_task,
)
from equida.data.classes import check_class_names, class_key, match_classes
from equida.errors import InputError
from equida.training.plan import make_plan
from equida.training.request import AdaptRequest, Remarks


def _arrays(folder: Path, twins: list[str]) -> object:
    return array_domain(np.zeros((3, 2)), [0, 1, 2], classes=twins, name="shop")


def _named_arrays(folder: Path, twins: list[str]) -> object:
    return array_domain(np.zeros((3, 2)), twins, name="shop")


def _unlabelled_arrays(folder: Path, twins: list[str]) -> object:
    return array_domain(np.zeros((3, 2)), classes=twins, name="shop")


def _npz(folder: Path, twins: list[str]) -> object:
    np.savez(folder / "f.npz", X=np.zeros((3, 2)), y=np.arange(3), classes=np.array(twins))
    return feature_domain(folder / "f.npz")


def _benchmark_npz(folder: Path, twins: list[str]) -> object:
    np.savez(folder / "f.npz", A_x=np.zeros((3, 2)), A_y=np.arange(3), classes=np.array(twins))
    return load_domain("office31", "A", folder / "f.npz")


def _safetensors(folder: Path, twins: list[str]) -> object:
    arrays = {"features": np.zeros((3, 2)), "labels": np.arange(3)}
    metadata = {"equida": json.dumps({"classes": twins})}
    save_file(arrays, folder / "f.safetensors", metadata=metadata)
    return feature_domain(folder / "f.safetensors")


def _files(folder: Path, twins: list[str]) -> Path:
    for name in twins:
        (folder / name).mkdir()
        (folder / name / "1.jpg").touch()
    return folder


def _list(folder: Path, twins: list[str]) -> object:
    _files(folder, twins)
    lines = [f"{name}/1.jpg {number}\n" for number, name in enumerate(twins)]
    (folder / "l.txt").write_text("".join(lines), encoding="utf-8")
    return image_list(folder / "l.txt")


def _list_with_classes(folder: Path, twins: list[str]) -> object:
    _files(folder, twins)
    lines = [f"{name}/1.jpg {number % 2}\n" for number, name in enumerate(twins)]
    (folder / "l.txt").write_text("".join(lines), encoding="utf-8")
    return image_list(folder / "l.txt", classes=["mug", "pen"])


def _labels_and_classes(folder: Path, twins: list[str]) -> object:
    return array_domain(np.zeros((3, 2)), twins, classes=["mug", "pen"], name="shop")


def _estimator(folder: Path, twins: list[str]) -> object:
    rows = np.arange(12.0).reshape(6, 2)
    return EquidaClassifier(iterations=1).fit(rows, twins * 2, X_target=rows)


def _front_door(folder: Path, twins: list[str]) -> object:
    rows = np.arange(12.0).reshape(6, 2)
    return adapt((rows, twins * 2), rows, out=folder / "run")


def _domain_made_by_hand(folder: Path, twins: list[str]) -> object:
    source = ArrayDomain(np.zeros((3, 2)), name="shop", classes=twins, labels=[0, 1, 2])
    return make_task(source, array_domain(np.zeros((1, 2)), name="desk"))


@pytest.mark.parametrize(
    "way_in",
    [
        _arrays, _named_arrays, _unlabelled_arrays, _npz, _benchmark_npz, _safetensors, _list,
        _list_with_classes, _labels_and_classes, _estimator, _front_door,
        lambda folder, twins: image_folder(_files(folder, twins)), _domain_made_by_hand,
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    ("first", "second", "what"),
    [
        ("Mug", "mug", "case"),
        ("mug", "\uff4d\uff55\uff47", "characters that look the same or cannot be seen"),
        ("mug", "m\u200bug", "characters that look the same or cannot be seen"),
        ("mug", "mug ", "white space at their ends"),
    ],
)
def test_every_way_in_refuses_classes_that_are_nearly_the_same(
    way_in: Callable[[Path, list[str]], object], tmp_path: Path, first: str, second: str, what: str
) -> None:
    said = f"classes {first!r} and {second!r} differ only in {what}; merge or rename one"
    with pytest.raises(InputError, match=re.escape(said)):
        way_in(tmp_path, [first, "pen", second])


def test_names_that_only_look_different_to_a_machine() -> None:
    one, other = (unicodedata.normalize(form, "café") for form in ("NFC", "NFD"))
    with pytest.raises(InputError, match="differ only in how their accents are stored"):
        check_class_names([one, other], "photos")
    with pytest.raises(InputError, match="photos: class 'mug' is listed twice"):
        check_class_names(["mug", "mug"], "photos")
    assert match_classes([other, "TEA"], ["tea", one], "photos") == [1, 0]


def test_a_case_that_changes_the_length_of_a_name() -> None:
    assert class_key("STRASSE") == class_key("stra\u00dfe")
    assert class_key("\u01f0") == class_key("J\u030c")


def test_characters_that_nobody_sees_make_no_class() -> None:
    for name in ("\u200b", " \u2060 ", "\u3000"):
        with pytest.raises(InputError, match="has no visible name"):
            check_class_names([name], "photos")
    # A joiner is part of how some words are written: the name keeps it, the comparison does not.
    joined = "\u0646\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"
    domain = array_domain(np.zeros((2, 2)), [joined, "b"], name="shop")
    assert joined in domain.classes
    assert match_classes([joined.replace("\u200c", "")], domain.classes, "desk") == [
        domain.classes.index(joined)
    ]


@given(text())
def test_a_key_is_its_own_key(name: str) -> None:
    assert class_key(class_key(name)) == class_key(name)
    assert class_key(name) == class_key(f" {unicodedata.normalize('NFD', name)}\u200d")


def test_spellings_that_differ_between_source_and_target_are_said(tmp_path: Path) -> None:
    """They are one class, but not silently."""
    rows = np.arange(80.0).reshape(40, 2)
    said: list[str] = []
    labels = np.array(["Mug", "pen"] * 20)
    request = AdaptRequest(
        array_domain(rows, labels, name="shop"),
        array_domain(rows + 1, np.char.lower(labels), name="desk"),
        out=str(tmp_path),
    )
    plan = make_plan(request, Remarks(said.append))
    assert plan.task.target.labels is not None
    assert plan.task.target.labels.tolist() == [0, 1] * 20
    assert said == [
        "target desk spells 1 class name differently from the source, such as 'mug' for 'Mug';"
        " it is treated as the same class"
    ]


def test_domains_of_a_file_that_differ_only_in_case(tmp_path: Path) -> None:
    rows = {"A_x": np.zeros((2, 3)), "a_x": np.ones((2, 3)), "b_x": np.zeros((2, 3))}
    np.savez(tmp_path / "f.npz", **rows)  # type: ignore[arg-type]
    assert feature_domain(tmp_path / "f.npz", domain="a")[0].tolist() == [1.0, 1.0, 1.0]
    assert feature_domain(tmp_path / "f.npz", domain="B").name == "b"
    np.savez(tmp_path / "g.npz", Ab_x=np.zeros((2, 3)), aB_x=np.zeros((2, 3)))
    with pytest.raises(InputError, match="holds the domains Ab, aB; give the exact name"):
        feature_domain(tmp_path / "g.npz", domain="ab")


@pytest.mark.parametrize(
    "pair",
    [
        ("x\u00b2", "x2"),
        ("m\u00b3", "m3"),
        ("\u2460", "1"),
        ("\u2161", "II"),
        ("\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
         "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"),
    ],
)  # fmt: skip
def test_names_that_look_different_are_different_classes(pair: tuple[str, str]) -> None:
    check_class_names(pair, "photos")


def test_a_ligature_is_its_letters() -> None:
    with pytest.raises(InputError, match="characters that look the same or cannot be seen"):
        check_class_names(["\ufb01sh", "fish"], "photos")
