"""Mistakes on the command line are one line, made from tyro's data and not from its text."""

import ast
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import tyro

import equida
from equida.cli import VERBS, main
from equida.cli._parse import parse
from equida.errors import InputError


@dataclass
class Group:
    """A group of flags inside a verb."""

    batch_size: int = 3


@dataclass
class Arguments:
    """A verb.

    equida verb one
    equida verb two
    """

    run: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    seed: int = 0
    rate: float = 1.0
    limit: int | None = None
    shape: Literal["rich", "md"] = "rich"
    from_: Annotated[str, tyro.conf.arg(name="from")] = ""
    group: Annotated[Group, tyro.conf.OmitArgPrefixes] = field(default_factory=Group)


GOOD = ["r", "--out", "o"]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([], "missing: RUN, --out"),
        (["r"], "missing: --out"),
        ([*GOOD, "--sed", "1"], "unrecognized options: --sed; did you mean --seed?"),
        ([*GOOD, "--batch-sise=1"], "did you mean --batch-size?"),
        ([*GOOD, "--form", "x"], "did you mean --from?"),
        ([*GOOD, "--zzzzzz"], "unrecognized options: --zzzzzz; see equida verb --help"),
        ([*GOOD, "--seed", "one"], "--seed is 'one'; it must be a whole number"),
        ([*GOOD, "--seed", "1.5"], "--seed is 1.5; it must be a whole number"),
        ([*GOOD, "--rate", "fast"], "--rate is 'fast'; it must be a finite number"),
        ([*GOOD, "--shape", "tex"], "--shape is 'tex'; it must be one of rich, md"),
        ([*GOOD, "--seed"], "--seed has no value; give it one"),
        ([*GOOD, "--batch-size", "x"], "--batch-size is 'x'; it must be a whole number"),
    ],
)
def test_a_mistake_is_one_line(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError) as caught:
        parse(Arguments, "verb", argv)
    message = str(caught.value)
    assert said in message
    assert message.endswith("; see equida verb --help")
    assert "\n" not in message
    assert capsys.readouterr() == ("", "")


def test_good_arguments_fill_the_dataclass() -> None:
    argv = [*GOOD, "--seed", "1e2", "--from", "x", "--limit", "7", "--batch-size", "5"]
    expected = Arguments("r", Path("o"), 100, limit=7, from_="x", group=Group(5))
    assert parse(Arguments, "verb", argv) == expected


def test_each_command_of_the_help_has_a_line_of_its_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as stop:
        parse(Arguments, "verb", ["--help"])
    assert stop.value.code == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert {"equida verb one", "equida verb two"} <= set(lines)


@pytest.mark.parametrize("lost", ["module", "attribute"])
def test_another_release_of_tyro_prints_its_own_message(
    lost: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import tyro._errors

    if lost == "module":
        monkeypatch.delattr(tyro, "_errors")
        monkeypatch.setitem(sys.modules, "tyro._errors", None)
    else:

        def broken(*_: Any) -> str:
            raise AttributeError

        monkeypatch.setattr("equida.cli._parse._one_line", broken)
    with pytest.raises(SystemExit) as stop:
        parse(Arguments, "verb", [*GOOD, "--sed", "1"])
    assert stop.value.code == 2
    assert "--sed" in capsys.readouterr().err


@pytest.mark.parametrize("verb", VERBS)
def test_a_flag_that_turns_something_on_has_no_opposite(
    verb: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """--quiet needs no --no-quiet, and --no-cache no --no-no-cache."""
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit):
        main([verb, "--help"])
    shown = set(re.findall(r"--[a-z-]+", capsys.readouterr().out))
    assert not {flag for flag in shown if f"--no-{flag[2:]}" in shown}


def test_only_the_making_of_a_request_takes_flags_without_a_type() -> None:
    """The dataclass of the flags is made at run time; what works with it goes through a request."""
    found = set()
    for file in (Path(equida.__file__).parent / "cli").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.FunctionDef):
                annotations = {each.arg: each.annotation for each in node.args.args}
                kind = annotations.get("arguments")
                if isinstance(kind, ast.Name) and kind.id == "Any":
                    assert node.name == "request_of", f"{file.name}: {node.name}"
                    found.add(file.stem)
                    calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
                    names = {each.func.id for each in calls if isinstance(each.func, ast.Name)}
                    known = {"request_from", "overrides", "alternatives", "benchmark"}
                    assert names <= known, f"{file.name} does work: {names - known}"
    assert found == {"adapt", "bench", "compare", "tune"}


@pytest.mark.parametrize(("value", "colours"), [("", True), ("1", False)])
def test_no_color_is_obeyed_in_help(
    value: str, colours: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before: the help of a command had colours in any terminal."""
    monkeypatch.setitem(tyro._experimental_options, "ansi_codes", True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    with pytest.raises(SystemExit):
        main(["features", "--help"])
    assert ("\x1b[36m" in capsys.readouterr().out) == colours


@pytest.mark.usefixtures("own_folder")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["adapt", "--method", "source_only", "--prior", "estimate"],
            "--prior; it is a setting of",
        ),
        (["compare", "a", "b", "--features"], "--features; features of images are computed anyway"),
        (["bench", "digits", "--feature"], "--feature; did you mean --features?"),
        (["adapt", "--validator", "knn"], "--validator; --keep names the validator"),
    ],
)
def test_options_of_other_commands_and_methods(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before: a likeness of letters, or only what else is missing."""
    assert main(words) == 2
    assert f"unrecognized options: {said}" in capsys.readouterr().err
