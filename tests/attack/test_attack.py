"""The first cases of each family, and the frame itself."""

import sys
from collections.abc import Callable

import pytest
from tests.attack import FAMILIES, Case, Listed, Outcome, attack, judge, load_families
from tests.processes import Ended, Process, TooLong, python

CASES = [(name, n) for name, listed in load_families().items() for n in range(listed.quick)]


@pytest.mark.parametrize(("name", "number"), CASES)
def test_attack(name: str, number: int) -> None:
    outcome = attack(name, number)
    assert outcome.clean, f"{outcome.verdict}\n{outcome.detail}"


@pytest.mark.parametrize(
    ("ended", "verdict"),
    [
        (Ended(0, "fine\n", ""), "clean"),
        (Ended(2, "", "a remark\nequida: wrong\n"), "clean"),
        (Ended(2, "", "equida: wrong\nequida: again\n"), "wrong"),
        (Ended(2, "", ""), "wrong"),
        (Ended(1, "", "equida: wrong\n"), "wrong"),
        (Ended(1, "", "Traceback (most recent call last)\nKeyError: 1\n"), "traceback"),
        (Ended(0, "fine\n", "x.py:1: UserWarning: odd\n"), "traceback"),
        (Ended(-11, "", ""), "crash"),
    ],
)
def test_judgement(ended: Ended, verdict: str) -> None:
    assert judge(ended, (0, 2), "").verdict == verdict


def test_a_case_has_a_limit_and_may_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    def stuck() -> None:
        while True:
            pass

    def broken() -> None:
        raise KeyError("a")

    for action, verdict in ((stuck, "hang"), (broken, "traceback")):

        def one(case: Case, action: Callable[[], None] = action) -> Outcome:
            return case.attempt(action, "", limit=0.2)

        monkeypatch.setitem(FAMILIES, "own", Listed(one, 1, 1))
        assert attack("own", 0).verdict == verdict


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_a_process_that_takes_too_long_says_what_it_was_doing() -> None:
    code = (
        "import subprocess, sys, time\n"
        "inner = 'import time\\ndef deep(): print(1, flush=True); time.sleep(99)\\ndeep()'\n"
        "def waits_for_it(): subprocess.run([sys.executable, '-c', inner])\n"
        "waits_for_it()"
    )
    with Process(python(code)) as process:
        process.wait_until(lambda: process.out, "the inner process sleeps")
        with pytest.raises(TooLong) as error:
            process.within(0.2).wait()
        assert "in waits_for_it" in str(error.value)
        assert "in deep" in str(error.value)
        assert process.left_behind() == []
