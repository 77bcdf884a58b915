"""What `equida doctor` looks at costs one walk."""

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from equida.data import BENCHMARKS
from equida.data.open import find_data
from equida.data.survey import recognise, survey_benchmark, survey_path


@pytest.fixture
def office(tmp_path: Path) -> Path:
    """Three domains with an image of each class, and a list of the third."""
    chosen = BENCHMARKS["office31"]
    for domain in ("amazon/images", "dslr/images", "webcam/images"):
        for name in chosen.classes:
            (tmp_path / domain / name).mkdir(parents=True)
            (tmp_path / domain / name / "1.jpg").touch()
    (tmp_path / "image_list").mkdir()
    (tmp_path / "image_list" / "webcam.txt").write_text("webcam/images/back_pack/1.jpg 0\n")
    return tmp_path


@pytest.mark.parametrize("known", [True, False])
def test_each_folder_is_listed_once(
    office: Path, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed: Counter[str] = Counter()
    plain = os.scandir

    def scandir(path: Any = ".") -> Any:
        listed[os.path.realpath(path)] += 1
        return plain(path)

    monkeypatch.setattr(os, "scandir", scandir)
    data = find_data(office)
    surveys = survey_benchmark(BENCHMARKS["office31"], data) if known else survey_path(data)
    assert [survey.classes for survey in surveys] == [31, 31, 31]
    assert recognise(data) is BENCHMARKS["office31"]
    assert len(listed) == 1 + 3 * (2 + 31) + known
    assert set(listed.values()) == {1}


def test_the_list_that_is_not_used_is_noted(office: Path) -> None:
    survey = survey_benchmark(BENCHMARKS["office31"], find_data(office))[2]
    assert survey.title == "W Webcam"
    assert any("(31 images), not" in note and note.endswith("(1)") for note in survey.notes)
