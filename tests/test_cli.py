"""The command line as a user meets it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.processes import equida, run
from tests.small_data import write_blobs

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


def closed(redirection: str, *arguments: object) -> list[str]:
    """The command, started by a shell that closes some of its streams."""
    return ["sh", "-c", f'exec "$@" {redirection}', "sh", *equida(*arguments)]


@pytest.mark.parametrize("call", [("list", "methods"), ("--help",), ("--version",), ("list", "-h")])
def test_a_closed_standard_output_is_no_error(call: tuple[str, ...]) -> None:
    """Before: a traceback, because the stream is None."""
    for redirection in (">&-", "<&- >&- 2>&-"):
        ended = run(closed(redirection, *call))
        assert (ended.out, ended.err) == ("", "")


def test_nothing_is_said_in_a_table_where_standard_error_is_closed(tmp_path: Path) -> None:
    """Before: the closing remark, and errors, went to standard output."""
    toy, out = write_blobs(tmp_path / "toy.npz"), tmp_path / "run"
    argv = ["-s", f"{toy}:a", "-t", f"{toy}:b", "--iterations", "2", "--batch-size", "8", "--quiet"]
    assert main(["adapt", *argv, "--out", str(out)]) == 0
    lines = run(closed("2>&-", "predict", out, f"{toy}:b")).out.splitlines()
    assert [line.count(",") for line in lines] == [6] * 61
    assert run(closed("2>&-", "predict", out, "nowhere"), code=2).out == ""


def test_a_closed_stream_lends_its_number_to_no_file(tmp_path: Path) -> None:
    """A library, or a process that is started, writes to 1 and 2 whatever is there."""
    code = (
        "import os, sys; from equida.cli import main; main(['--version']);"
        " assert [s.fileno() for s in (sys.stdin, sys.stdout, sys.stderr)] == [0, 1, 2];"
        " file = open(sys.argv[1], 'w'); code = os.system('echo out && echo err >&2');"
        " sys.exit(code or file.fileno() < 3)"
    )
    shell = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", sys.executable, "-c", code]
    run([*shell, tmp_path / "file"])
    assert (tmp_path / "file").read_text() == ""
