"""Threads that read ahead: in order, with an end to every wait."""

import concurrent.futures
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest
from PIL import Image

from equida.data import checks, open_domain, read_ahead
from equida.data.read_ahead import FilesBeingRead
from equida.errors import InputError


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_ahead, "PATIENCE_SECONDS", 0.3)
    monkeypatch.setattr(read_ahead, "GRACE_SECONDS", 0.1)


def test_pieces_come_in_order() -> None:
    def slowly(n: int) -> int:
        time.sleep(0.002 * (n % 3))
        return n * n

    made = read_ahead.read_ahead(
        slowly, range(20), 3, ahead=4, what="square", at_work=FilesBeingRead()
    )
    assert list(made) == [n * n for n in range(20)]


def test_no_more_is_asked_for_than_is_needed() -> None:
    asked: list[int] = []

    def items() -> Iterator[int]:
        for n in range(100):
            asked.append(n)
            yield n

    made = read_ahead.read_ahead(abs, items(), 2, ahead=5, what="number", at_work=FilesBeingRead())
    assert [next(made), next(made)] == [0, 1]
    assert len(asked) == 6


@pytest.mark.usefixtures("impatient")
def test_a_wait_that_leads_nowhere_ends_with_the_file() -> None:
    at_work = FilesBeingRead()

    def stuck(n: int) -> int:
        with at_work.reading(f"share/{n}.jpg"):
            threading.Event().wait(60 if n == 3 else 0)
        return n

    made = read_ahead.read_ahead(stuck, range(9), 2, ahead=4, what="image", at_work=at_work)
    with pytest.raises(InputError, match=r"no image came for 0 s; .* reading share/3.jpg; check"):
        list(made)


@pytest.mark.slow(reason="waits")
@pytest.mark.usefixtures("impatient")
def test_a_disk_that_is_slow_but_answers_is_waited_for() -> None:
    at_work = FilesBeingRead()

    def many_files(n: int) -> int:
        for number in range(8):
            with at_work.reading(number):
                time.sleep(0.1)
        return n

    made = read_ahead.read_ahead(many_files, range(2), 1, ahead=2, what="piece", at_work=at_work)
    assert list(made) == [0, 1]


@pytest.mark.usefixtures("impatient")
def test_checking_images_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        Image.new("RGB", (8, 8)).save(tmp_path / name / "0.png")

    def stuck(file: str, *, deep: bool) -> None:
        if "b" in Path(file).parent.name:
            threading.Event().wait(60)

    domain = open_domain(str(tmp_path))
    monkeypatch.setattr(checks, "check_image", stuck)
    with pytest.raises(InputError, match=r"came for 0 s; its threads are reading .*b/0.png"):
        checks.check_readable(domain)


def test_a_piece_that_comes_while_its_wait_ends_is_taken() -> None:
    class Late(Future[int]):
        """Its result comes between the end of a wait and the look at it."""

        def result(self, timeout: float | None = None) -> int:
            if timeout is None:
                return 7
            raise concurrent.futures.TimeoutError

        def done(self) -> bool:
            return True

    assert read_ahead._patiently(Late(), "number", FilesBeingRead()) == 7
