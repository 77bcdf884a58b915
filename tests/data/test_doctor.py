"""A check of data from Python: what `equida doctor` finds, as objects."""

from pathlib import Path

import pytest
from tests.small_data import write_blobs, write_pictures

from equida.data import BENCHMARKS, check_data
from equida.errors import InputError


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    write_pictures(tmp_path / "toy", ("photo", "sketch"), ("mug", "pen"))
    return tmp_path / "toy"


def test_a_folder_of_domains(toy: Path) -> None:
    found = check_data(toy)
    assert found.sound
    assert [domain.title for domain in found.domains] == ["photo", "sketch"]
    assert found.data_set is not None
    assert found.data_set.classes == ("mug", "pen")
    assert found.looks_like is None


def test_what_is_unreadable_is_named_or_left_out(toy: Path) -> None:
    damaged = next((toy / "photo" / "mug").iterdir())
    damaged.write_bytes(b"no image")
    found = check_data(str(toy))
    assert not found.sound
    assert [Path(file).name for file, _ in found.domains[0].unreadable] == [damaged.name]
    assert check_data(toy, skip_unreadable=True).sound


def test_a_first_description_is_written_once(toy: Path) -> None:
    found = check_data(toy, write_toml=True)
    assert found.written == toy / "dataset.toml"
    assert found.written.is_file()
    with pytest.raises(InputError, match="it is not replaced"):
        check_data(toy, write_toml=True)


def test_feature_files_have_domains_too(tmp_path: Path) -> None:
    found = check_data(write_blobs(tmp_path / "blobs.npz"))
    assert found.sound
    assert len(found.domains) == 2


def test_folders_with_published_names_are_recognised(tmp_path: Path) -> None:
    write_pictures(tmp_path, ("amazon", "dslr", "webcam"), ("mug", "pen"))
    found = check_data(tmp_path)
    assert found.looks_like is BENCHMARKS["office31"]
    compared = check_data("office31", tmp_path)
    assert not compared.sound
    assert compared.data_set is BENCHMARKS["office31"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "give a data set or the path of data"),
        ({"dataset": "office31"}, "give the folder of Office-31"),
        ({"dataset": "./a", "data": "b"}, "are both paths"),
        ({"dataset": 42}, "dataset is 42"),
        ({"dataset": "digits", "lists": 3}, "lists is 3"),
        ({"dataset": "offfice31"}, "did you mean"),
        ({"data": "gone"}, "gone"),
        ({"dataset": "office31", "write_toml": True}, "is for data of your own"),
    ],
)
def test_one_line_says_what_is_missing(arguments: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said) as error:
        check_data(**arguments)  # type: ignore[arg-type]
    assert "\n" not in str(error.value)
