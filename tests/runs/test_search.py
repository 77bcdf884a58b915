"""The record of a search: what it says, and that whatever its file holds is one line."""

import json
from pathlib import Path
from random import Random

import pytest
from tests.attack.records import damaged, mutated

from equida.errors import InputError, printable
from equida.runs.search import FILE, Search, Tried, read_search, read_searches, rows

DEFAULT = Tried(0, "nsm", {}, "finished", 0.5, default=True)
BETTER = Tried(1, "bnm", {"trade_off": 0.25}, "finished", 0.75, seconds=3.0)
STOPPED = Tried(2, "nsm", {"r": 1.0}, "stopped", 0.9, reason="stopped at step 4")
FAILED = Tried(3, "cwsm", {}, "failed", reason="the loss is nan")


def search(*tried: Tried, oracle: bool = False) -> Search:
    score = "accuracy" if oracle else "knn_balance"
    return Search("tune", score, oracle, tried, {"methods": "nsm,bnm"})


def test_a_run_that_was_stopped_is_not_chosen_however_well_it_scored() -> None:
    found = search(DEFAULT, BETTER, STOPPED, FAILED)
    assert found.chosen is BETTER
    assert found.default is DEFAULT
    assert found.summary == (
        "chosen of 4 settings by knn_balance: BNM (trade_off=0.25), 0.7500; the default, NSM, has"
        " 0.5000 (+0.2500)"
    )
    assert [row[0] for row in rows(found)] == ["1", "0", "2", "3"]


def test_of_equal_scores_the_first_is_chosen() -> None:
    equal = Tried(1, "bnm", {}, "finished", 0.5)
    found = search(DEFAULT, equal)
    assert found.chosen is DEFAULT
    assert found.summary.endswith("NSM, 0.5000, the default")


def test_negative_scores_are_compared_too() -> None:
    low, high = Tried(0, "nsm", {}, "finished", -2.0), Tried(1, "bnm", {}, "finished", -1.0)
    assert search(low, high).chosen is high
    assert [row[0] for row in rows(search(low, high))] == ["1", "0"]


def test_an_oracle_is_marked() -> None:
    assert "oracle (uses target labels)" in search(DEFAULT, oracle=True).summary
    assert "oracle" not in search(DEFAULT).summary
    assert search(DEFAULT).summary.startswith("chosen of 1 setting by knn_balance: ")


def test_a_record_is_read_as_it_was_written_also_where_it_was_moved(tmp_path: Path) -> None:
    folder = tmp_path / "first"
    inside = Tried(0, "nsm", {}, "finished", 0.5, default=True, folder=str(folder / "trials/nsm"))
    search(inside, FAILED).write(folder)
    assert read_search(folder) == search(inside, FAILED)
    folder.rename(tmp_path / "second")
    moved = read_search(tmp_path / "second")
    assert moved is not None
    assert moved.tried[0].folder == str(tmp_path / "second/trials/nsm")
    assert read_search(tmp_path) is None
    search(DEFAULT).write(tmp_path / "second" / "chosen")
    assert read_searches(tmp_path) == [moved]


def test_whatever_the_file_holds_is_a_record_or_one_line(tmp_path: Path) -> None:
    search(DEFAULT, BETTER, STOPPED, FAILED).write(tmp_path)
    sound = json.loads((tmp_path / FILE).read_text())
    refused = []
    for number in range(300):
        random = Random(number)
        content = json.dumps(mutated(sound, random)).encode()
        if number % 3 == 0:
            content = damaged(content, random)
        (tmp_path / FILE).write_bytes(content)
        try:
            found = read_search(tmp_path)
        except InputError as error:
            refused.append(str(error))
            continue
        assert found is not None
        assert printable(found.summary)
        assert all(isinstance(cell, str) for row in rows(found) for cell in row)
    assert len(refused) > 50
    assert not any("\n" in line for line in refused)


def test_a_damaged_record_costs_its_place_on_a_page_and_no_more(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    search(DEFAULT).write(tmp_path / "a")
    search(DEFAULT).write(tmp_path / "b")
    (tmp_path / "b" / FILE).write_text("{")
    assert len(read_searches(tmp_path)) == 1
    assert "left out" in caplog.text
