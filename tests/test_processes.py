"""Tests and processes that take too long end, and say what they were doing."""

import sys
from pathlib import Path

import pytest
from tests.processes import TooLong, python, run, run_together

CODE = """
import subprocess, sys, time
import pytest

@pytest.fixture(scope="module")
def slow():
    subprocess.run([sys.executable, "-c", "import time\\ndef in_the_fixture(): time.sleep(60)\\n"
                    "in_the_fixture()"], check=True)

def test_it(slow): ...
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
def test_a_fixture_of_a_module_has_a_limit(tmp_path: Path) -> None:
    """It is set up before the fixtures of the test, and its process prints its stack."""
    file = tmp_path / "test_slow.py"
    file.write_text(CODE)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "tests.conftest",
        "-p",
        "no:cacheprovider",
    ]
    limit = {"EQUIDA_TEST_SECONDS": "15", "PYTEST_ADDOPTS": ""}
    done = run([*command, "--rootdir", tmp_path, file], env=limit, cwd=tmp_path, limit=110, code=1)
    assert "in in_the_fixture" in done.out + done.err
    assert "died with <Signals.SIGABRT" in done.out


def test_all_of_several_processes_say_what_they_were_doing() -> None:
    sleep = "import time\ndef {name}(): time.sleep(60)\n{name}()"
    commands = [python(sleep.format(name=name)) for name in ("first", "second")]
    with pytest.raises(TooLong) as error:
        run_together([python("pass"), *commands], limit=10)
    assert "in first" in str(error.value)
    assert "in second" in str(error.value)


def test_several_processes_have_environments_of_their_own() -> None:
    code = "import os; print(os.environ['MINE'])"
    ended = run_together([python(code)] * 2, [{"MINE": "1"}, {"MINE": "2"}])
    assert [(each.code, each.out) for each in ended] == [(0, "1\n"), (0, "2\n")]
