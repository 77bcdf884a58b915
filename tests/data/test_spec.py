import dataclasses
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from equida.data import checks
from equida.data.images import check_image
from equida.data.own import OwnBenchmark, OwnDomain
from equida.data.spec import DataPlaces, DataSpec, open_task

PACS = OwnBenchmark(
    "PACS",
    "PACS",
    (OwnDomain("photo", "Photo", "photo"), OwnDomain("sketch", "Sketch", "sketch/images")),
    ("dog", "horse"),
    ("photo2sketch",),
)


def test_later_fields_do_not_change_the_names_of_earlier_runs() -> None:
    first = DataSpec("A", "W", "office31", "office31.npz")
    assert first.identity() == {
        "source": "A",
        "target": "W",
        "benchmark": "office31",
        "data": "office31.npz",
        "skip_unreadable": False,
        "ignore_target_labels": False,
    }
    assert dataclasses.replace(first, classes="shared").identity()["classes"] == "shared"


def test_own_data_come_back_from_a_record() -> None:
    spec = DataSpec("photo", "sketch", data="PACS", classes="shared", own=PACS)
    stored = json.loads(json.dumps(dataclasses.asdict(spec)))
    assert DataSpec.from_json(stored) == spec
    assert hash(spec) == hash(DataSpec.from_json(stored))  # workers remember opened tasks by it
    data_set = spec.data_set
    assert data_set is not None
    assert [domain.title for domain in data_set.task("photo2sketch")] == ["Photo", "Sketch"]


def test_a_record_without_the_later_fields_is_read() -> None:
    stored = {"source": "photos", "target": "drawings"}
    assert DataSpec.from_json(stored) == DataSpec("photos", "drawings")


def test_an_image_is_looked_at_once_for_all_tasks_of_a_data_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    domains = ("art", "photo", "sketch")
    for place in (tmp_path / domain / name for domain in domains for name in ("dog", "horse")):
        place.mkdir(parents=True)
        for number in range(2):
            Image.fromarray(np.zeros((4, 4, 3), np.uint8)).save(place / f"{number}.png")
    (tmp_path / "sketch" / "dog" / "0.png").write_bytes(b"no image")
    looked_at: Counter[str] = Counter()

    def counted(path: str, *, deep: bool = False) -> str | None:
        looked_at[path] += 1
        return check_image(path, deep=deep)

    monkeypatch.setattr(checks, "check_image", counted)
    places = DataPlaces()
    pairs = [(one, other) for one in domains for other in domains if one != other]
    for one, other in pairs:
        spec = DataSpec(str(tmp_path / one), str(tmp_path / other), skip_unreadable=True)
        opened = open_task(spec, places=places)
        bad = "sketch" in (one, other)
        assert [name for name, _ in opened.left_out] == ["dog/0.png"] * bad
        assert len(opened.task.source) + len(opened.task.target) == 8 - bad
    assert len(looked_at) == 12
    assert set(looked_at.values()) == {1}
