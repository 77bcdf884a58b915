"""Data sets of users' own: trees of folders, lists and feature files as people have them."""

import dataclasses
import json
import os
import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from equida.data import benchmark, load_domain
from equida.data.dataset_toml import read_dataset_file, write_dataset_file
from equida.data.discover import find_benchmark, is_benchmark, lists_below
from equida.data.spec import DataSpec, data_sha256, open_task
from equida.data.walk import FolderTree
from equida.errors import InputError


def images(root: Path, *names: str) -> Path:
    for number, name in enumerate(names):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8), (number % 256, 0, 0)).save(root / name)
    return root


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    """Three domains in the three layouts of folders: plain, with `images` in between, a link."""
    root = images(
        tmp_path / "pets",
        *(f"photo/{name}/{k}.png" for name in ("cat", "dog") for k in range(3)),
        *(f"sketch/images/{name}/{k}.png" for name in ("cat", "dog", "eel") for k in range(2)),
    )
    images(tmp_path / "elsewhere", "cat/0.png", "dog/0.png", "dog/1.png")
    (root / "clay").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    (root / "notes").mkdir()
    (root / "README.txt").write_text("three domains of pets\n")
    return root


def test_domains_classes_and_tasks_are_found(pets: Path) -> None:
    found = benchmark(str(pets))
    assert (found.name, found.title, found.registered_name) == ("pets", "pets", None)
    assert [(domain.key, domain.folder) for domain in found.domains] == [
        ("clay", "clay"),
        ("photo", "photo"),
        ("sketch", "sketch/images"),
    ]
    assert found.classes == ("cat", "dog", "eel")
    assert found.tasks == (
        "clay2photo",
        "clay2sketch",
        "photo2clay",
        "photo2sketch",
        "sketch2clay",
        "sketch2photo",
    )
    sketch = load_domain(found, "sketch")
    assert sketch.class_counts().tolist() == [2, 2, 2]
    assert load_domain(found, "clay").class_counts().tolist() == [1, 2, 0]


def test_a_task_of_it_has_the_classes_that_its_domains_share(pets: Path) -> None:
    found = find_benchmark(pets)
    shared = DataSpec("sketch", "photo", data=found.root, classes="shared", own=found.own)
    task = open_task(shared).task
    assert (task.name, task.classes) == ("sketch2photo", ("cat", "dog"))
    assert (len(task.source), len(task.target)) == (4, 6)
    kept = DataSpec("sketch", "photo", data=found.root, own=found.own)
    assert open_task(kept).task.classes == ("cat", "dog", "eel")
    other = DataSpec("photo", "sketch", data=found.root, own=found.own)
    assert open_task(other).task.classes == ("cat", "dog")


def test_a_registered_name_comes_first_and_a_path_can_be_forced(
    pets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(pets.parent)
    pets.rename("office31")
    assert benchmark("office31").registered_name == "office31"
    assert benchmark("./office31").registered_name is None
    assert benchmark(Path("office31")).registered_name is None
    with pytest.raises(InputError, match="data set 'office32' does not exist; did you mean"):
        benchmark("office32")
    with pytest.raises(InputError, match="office32 does not exist; did you mean office31"):
        benchmark("office32/")


def test_lists_instead_of_folders(tmp_path: Path) -> None:
    root = images(tmp_path, *(f"all/{k}.png" for k in range(8)))
    (root / "art.txt").write_text("".join(f"all/{k}.png {k % 2}\n" for k in range(4)))
    (root / "lists").mkdir()
    lines = "".join(f"/home/them/all/{k}.png {k % 3}\n" for k in range(4, 8))
    (root / "lists" / "photo_list.txt").write_text(lines)
    (root / "notes.txt").write_text("not a list\n")
    found = find_benchmark(root)
    assert [(domain.key, domain.folder) for domain in found.domains] == [
        ("art", "art.txt"),
        ("photo", "lists/photo_list.txt"),
    ]
    assert found.classes == ("0", "1", "2")
    photo = load_domain(found, "photo")
    assert photo.labels is not None
    assert photo.labels.tolist() == [1, 2, 0, 1]
    spec = DataSpec("art", "photo", data=found.root, own=found.own)
    before = data_sha256(spec)
    (root / "art.txt").write_text((root / "art.txt").read_text() + "all/4.png 0\n")
    assert data_sha256(spec) != before


def test_class_folders_are_preferred_to_lists_beside_them(pets: Path) -> None:
    (pets / "photo.txt").write_text("photo/cat/0.png 0\nphoto/dog/0.png 1\n")
    (pets / "sketch_train.txt").write_text("sketch/images/cat/0.png 0\n")
    found = find_benchmark(pets)
    assert [domain.key for domain in found.domains] == ["clay", "photo", "sketch"]
    assert len(load_domain(found, "photo")) == 6


def _rows(file: Path, **arrays: object) -> Path:
    np.savez(file, **arrays)  # type: ignore[arg-type]
    return file


def test_feature_files_one_for_each_domain_or_one_for_all(tmp_path: Path) -> None:
    eye, labels = np.eye(4, dtype="f4"), np.array(["a", "b", "a", "c"])
    one = _rows(tmp_path / "one.npz", x_x=eye, x_y=labels, y_x=eye, y_y=labels[::-1])
    assert find_benchmark(one).tasks == ("x2y", "y2x")
    folder = tmp_path / "many"
    folder.mkdir()
    _rows(folder / "shop.npz", X=eye, y=labels)
    _rows(folder / "home.npz", X=eye, y=np.array(["a", "a", "b", "d"]))
    found = find_benchmark(folder)
    assert (found.tasks, found.classes) == (("home2shop", "shop2home"), ("a", "b", "c", "d"))
    shop = load_domain(found, "shop")
    assert shop.labels is not None
    assert shop.labels.tolist() == [0, 1, 0, 2]
    shutil.copy(one, folder / "shop2.npz")
    shutil.copy(one, folder / "shop3.npz")
    with pytest.raises(InputError, match=r"both shop2.npz and shop3.npz hold a domain 'x'"):
        find_benchmark(folder)


def test_what_is_no_data_set_is_one_line(pets: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="looks like one domain with 2 class folders"):
        find_benchmark(pets / "photo")
    with pytest.raises(InputError, match="holds folders of folders"):
        find_benchmark(tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="fewer than two labelled domains"):
        find_benchmark(tmp_path / "empty")
    with pytest.raises(InputError, match=r"README.txt is not a data set"):
        find_benchmark(pets / "README.txt")
    assert [is_benchmark(place) for place in (pets, pets / "photo")] == [True, False]


def test_a_dataset_file_names_everything(pets: Path) -> None:
    (pets / "train.txt").write_text("sketch/images/cat/0.png 0\nsketch/images/dog/0.png 1\n")
    (pets / "test.txt").write_text("sketch/images/dog/1.png 1\nsketch/images/cat/1.png 0\n")
    (pets / "dataset.toml").write_text(
        'name = "petz"\ntitle = "Pets"\nmetric = "mean_class_accuracy"\n'
        'classes = ["dog", "cat", "eel"]\ntasks = ["photo->drawn"]\n'
        '[domains.drawn]\ntitle = "Drawings"\ntrain = "train.txt"\ntest = "test.txt"\n'
        "[domains.photo]\n"
    )
    found = find_benchmark(pets)
    assert (found.name, found.title, found.metric) == ("petz", "Pets", "mean_class_accuracy")
    assert [domain.title for domain in found.domains] == ["Drawings", "photo"]
    assert (found.classes, found.tasks) == (("dog", "cat", "eel"), ("photo2drawn",))
    task = open_task(DataSpec("photo", "drawn", data=found.root, own=found.own)).task
    assert task.classes == ("dog", "cat")
    for domain, expected in ((task.target, ["cat", "dog"]), (task.judged, ["dog", "cat"])):
        assert domain.labels is not None
        assert [task.classes[label] for label in domain.labels] == expected
    assert task.judged.identity(0) == "sketch/images/dog/1.png"
    elsewhere = pets.parent / "mine.toml"
    shutil.move(pets / "dataset.toml", elsewhere)
    with elsewhere.open("r+") as file:
        text = file.read()
        file.seek(0)
        file.write(f'root = "pets"\n{text}')
    again = find_benchmark(elsewhere)
    assert (again.own, again.root) == (found.own, found.root)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("titel = 'x'", "has no key 'titel'; did you mean 'title'?"),
        ("title = 3", "title is 3; it must be a text"),
        ("classes = ['a', 2]", r"classes is \['a', 2\]; it must be a list of texts"),
        ("tasks = ['a', 'a']", "tasks lists 'a' twice"),
        ("metric = 'auc'", "metric is 'auc'; it must be one of accuracy, mean_class_accuracy"),
        ("domains = ['a']", "domains is .* must be tables"),
        ("[domains]\na = 1", "domains.a is 1; it must be a table"),
        ("[domains.a]\nloader = 'm:f'", r"\[domains.a\] has no key 'loader'"),
        ("[domains.a]\npath = 'x'\ntrain = 'y'", "has both path and train"),
        ("title =", "cannot be read as TOML"),
        ("tasks = ['photo2moon']", "pets has no task 'photo2moon'"),
        ("[domains.moon]\n[domains.photo]", "pets/moon does not exist"),
        ("classes = ['cat']", "'dog' not among the 1 classes"),
    ],
)
def test_mistakes_in_a_dataset_file_are_one_line(pets: Path, text: str, said: str) -> None:
    (pets / "dataset.toml").write_text(text)
    with pytest.raises(InputError, match=said) as error:
        [load_domain(str(pets), key) for key in ("clay", "photo", "sketch")]
    assert "\n" not in str(error.value)


def test_a_first_dataset_file_says_what_was_found(pets: Path) -> None:
    images(pets, 'a "b"/cat/0.png', 'a "b"/dog/0.png')
    found = find_benchmark(pets)
    assert found.own is not None
    write_dataset_file(found.own, pets / "dataset.toml")
    assert find_benchmark(pets).own == found.own
    assert read_dataset_file(pets / "dataset.toml").domains[0].path == 'a "b"'
    before = (pets / "dataset.toml").read_text()
    with pytest.raises(InputError, match="exists; it is not replaced"):
        write_dataset_file(found.own, pets / "dataset.toml")
    assert (pets / "dataset.toml").read_text() == before


def test_a_link_back_to_the_data_set_is_not_followed(pets: Path) -> None:
    os.symlink(pets, pets / "photo" / "cat" / "up", target_is_directory=True)
    assert len(load_domain(find_benchmark(pets), "photo")) == 6


def test_folders_named_by_numbers_have_the_names_of_their_numbers(tmp_path: Path) -> None:
    """Before: by their places among the folders, of which 10 comes before 2."""
    root = images(
        tmp_path / "numbers",
        *(f"{domain}/{k}/0.png" for domain in "ab" for k in range(12) if (domain, k) != ("b", 5)),
    )
    names = [f"name{k:02}" for k in range(12)]
    (root / "dataset.toml").write_text(f"\ufeffclasses = {json.dumps(names)}\n", encoding="utf-8")
    found = find_benchmark(root)
    for key in "ab":
        domain = load_domain(found, key)
        assert domain.labels is not None
        for position, label in enumerate(domain.labels):
            assert names[label] == f"name{int(domain.identity(position).split('/')[-2]):02}"


def test_lists_without_a_sample_of_some_class(pets: Path) -> None:
    """A list that numbers its classes has no name for those that it has no sample of."""
    (pets / "train.txt").write_text(
        "sketch/images/cat/0.png 0\nsketch/images/dog/0.png 1\nsketch/images/eel/0.png 2\n"
    )
    (pets / "test.txt").write_text("sketch/images/eel/1.png 2\nsketch/images/cat/1.png 0\n")
    (pets / "dataset.toml").write_text(
        '[domains.drawn]\ntrain = "train.txt"\ntest = "test.txt"\n[domains.photo]\n'
    )
    found = find_benchmark(pets)
    assert found.classes == ("cat", "dog", "eel")
    spec = DataSpec("photo", "drawn", data=found.root, own=found.own)
    task = open_task(spec).task
    assert [len(task.target), len(task.judged)] == [2, 1]
    assert "1 of 2 samples of test drawn (test)" in task.left_out


def test_a_class_that_only_the_samples_for_judging_have(pets: Path) -> None:
    (pets / "train.txt").write_text("sketch/images/cat/0.png 0\nsketch/images/dog/0.png 1\n")
    (pets / "test.txt").write_text("sketch/images/cat/1.png 0\nsketch/images/eel/1.png 2\n")
    (pets / "dataset.toml").write_text(
        '[domains.drawn]\ntrain = "train.txt"\ntest = "test.txt"\n[domains.photo]\n'
    )
    found = find_benchmark(pets)
    assert found.classes == ("cat", "dog", "eel")
    assert len(open_task(DataSpec("photo", "drawn", data=found.root, own=found.own)).task.judged)


def test_features_without_the_samples_for_judging_are_refused(pets: Path, tmp_path: Path) -> None:
    """Before: the samples to learn from took their place."""
    (pets / "train.txt").write_text("sketch/images/cat/0.png 0\nsketch/images/dog/0.png 1\n")
    (pets / "test.txt").write_text("sketch/images/dog/1.png 1\nsketch/images/cat/1.png 0\n")
    domains = '[domains.sketch]\ntrain = "train.txt"\ntest = "test.txt"\n[domains.photo]\n'
    (pets / "dataset.toml").write_text(domains)
    found = find_benchmark(pets)
    rows: dict[str, Any] = {"classes": np.array(["cat", "dog"])}
    for name in ("photo", "sketch"):
        rows |= {f"{name}_x": np.zeros((4, 3)), f"{name}_y": np.arange(4) % 2}
    np.savez(tmp_path / "rows.npz", **rows)
    spec = DataSpec("photo", "sketch", data=str(tmp_path / "rows.npz"), own=found.own)
    with pytest.raises(InputError, match=r"has no domain sketch \(test\)"):
        open_task(spec)
    (tmp_path / "told.toml").write_text(f'root = "rows.npz"\n{domains}')
    with pytest.raises(InputError, match=r"sketch \(test\)"):
        find_benchmark(tmp_path / "told.toml")
    rows |= {"sketch (test)_x": np.ones((2, 3)), "sketch (test)_y": np.arange(2)}
    np.savez(tmp_path / "rows.npz", **rows)
    told = find_benchmark(tmp_path / "told.toml")
    assert len(open_task(dataclasses.replace(spec, own=told.own)).task.judged) == 2


def test_tasks_that_would_have_one_name(tmp_path: Path) -> None:
    names = ("1", "12", "5", "25")
    images(tmp_path / "n", *(f"{name}/{c}/0.png" for name in names for c in ("cat", "dog")))
    with pytest.raises(InputError, match="2 tasks of n would be called '1225'; rename"):
        find_benchmark(tmp_path / "n")


def test_a_folder_is_called_as_it_is(pets: Path) -> None:
    pets.rename(pets.with_name("pets_v1.5"))
    assert find_benchmark(pets.with_name("pets_v1.5")).name == "pets_v1.5"


def test_a_pipe_is_no_list(pets: Path) -> None:
    os.mkfifo(pets / "a.txt")
    found: list[dict[str, str]] = []
    look = threading.Thread(target=lambda: found.append(lists_below(FolderTree(pets))), daemon=True)
    look.start()
    look.join(20)  # nobody writes into the pipe: who opens it waits for ever
    assert found == [{}]


def test_the_home_of_nobody(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="~nobody_has_this_name/x does not exist"):
        find_benchmark("~nobody_has_this_name/x")
