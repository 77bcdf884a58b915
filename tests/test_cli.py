"""The command line as a user meets it."""

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
