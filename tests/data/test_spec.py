import dataclasses
import json

from equida.data.own import OwnBenchmark, OwnDomain
from equida.data.spec import DataSpec

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
