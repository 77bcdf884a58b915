"""The command line as a user meets it."""

import os
import subprocess
import sys

import pytest

from equida.cli import VERBS, main


def test_no_command_prints_usage_and_fails(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    usage = capsys.readouterr().out
    assert all(verb in usage for verb in VERBS)


def test_unknown_command_is_one_line_with_the_likely_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["theroy"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "'theroy' is not a command; did you mean 'theory'?" in error


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    from equida import __version__

    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"equida {__version__}\n"


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize(
    ("call", "said"),
    [
        (["predict"], "equida: missing: RUN; see equida predict --help\n"),
        (
            ["theory", "--quik"],
            "equida: unrecognized options: --quik; did you mean --quick?; "
            "see equida theory --help\n",
        ),
    ],
)
def test_a_mistake_is_one_line_in_every_terminal(call: list[str], said: str, encoding: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "equida", *call],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONIOENCODING": encoding},
    )
    assert (done.returncode, done.stderr) == (2, said)
