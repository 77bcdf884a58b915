"""Nothing that a terminal obeys reaches it from the name of a file, a class or a record."""

import io
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from rich.table import Table
from rich.text import Text
from tests.meters import Terminal
from tests.small_data import write_blobs

import equida
from equida.cli import main
from equida.errors import InputError, printable
from equida.progress import Bar, emit, safe_console, say

ESCAPES = "\x1b]0;owned\x07\x1b[31m"


@pytest.mark.parametrize("code", [0, 7, 8, 10, 13, 27, 127, 0x9B, 0x202E, 0x2028, 0xDC9B])
def test_what_a_terminal_obeys_is_written_out(code: int) -> None:
    shown = printable(f"a{chr(code)}b")
    assert chr(code) not in shown
    assert shown.startswith("a\\")
    assert shown.encode().decode() == shown


def test_other_text_stays_as_it_is() -> None:
    for text in ("caf\u00e9 \U0001f600 \u4e2d\u6587", "a b", "[bold]", "\\x1b"):
        assert printable(text) == text


def test_errors_of_any_kind_are_safe() -> None:
    assert str(InputError(f"{ESCAPES}: no such file")) == r"\x1b]0;owned\x07\x1b[31m: no such file"
    assert str(InputError("two:\n  a\n  b\rc")) == "two:\n  a\n  b\\rc"


def test_remarks_and_tables(capsys: pytest.CaptureFixture[str]) -> None:
    say(f"left out: {ESCAPES}")
    safe_console().print(f"{ESCAPES} :cat: [bold]x[/bold]")
    seen = "".join(capsys.readouterr())
    assert ":cat:" in seen  # a folder may be called so
    assert "\x1b" not in seen
    assert seen.count(r"\x1b]0;owned") == 2


def test_text_objects_and_cells_of_tables(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table(title=Text(ESCAPES))
    table.add_column(Text(ESCAPES))
    table.add_row(Text(ESCAPES, style="bold"))
    safe_console(width=200).print(Text.assemble("in ", (ESCAPES, "red")), table)
    seen = capsys.readouterr().out
    assert "\x1b" not in seen
    assert seen.count(r"\x1b]0;owned") == 4


def test_styles_still_reach_a_terminal() -> None:
    stream = Terminal()
    settings = {"file": stream, "color_system": "standard", "force_terminal": True}
    safe_console(**settings).print(Text(ESCAPES, style="red"))
    assert stream.getvalue().startswith("\x1b[31m\\x1b]0;owned")


def test_a_bar_with_hostile_words(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with Bar("terminal", f"[/bold]{ESCAPES}", 2) as bar:
        bar.update(1, note="[/]")
    assert "\x1b]0;owned" not in stream.getvalue()
    assert "[/bold]" in stream.getvalue()


def test_only_safe_consoles_are_made() -> None:
    """A plain one of rich prints escape codes."""
    package = Path(equida.__file__).parent
    made = [
        f"{file.relative_to(package)}:{number}"
        for file in sorted(package.rglob("*.py"))
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if re.search(r"\bConsole\(", line)
    ]
    assert made == []


def test_the_folder_of_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("EQUIDA_CACHE", str(tmp_path / ESCAPES))
    for arguments in (["cache"], ["cache", "--clear"]):
        assert main(arguments) == 0
        said = capfd.readouterr().out
        assert "\x1b" not in said
        assert r"\x1b[31m/features: 0.0 MB" in said
        assert said.count("\n") == 1


def test_a_pipe_gets_names_as_they_are_and_a_terminal_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for stream, raw in ((io.StringIO(), True), (Terminal(), False)):
        monkeypatch.setattr(sys, "stdout", stream)
        emit(f"a,{ESCAPES}\nb,c")
        assert (ESCAPES in stream.getvalue()) == raw
        assert stream.getvalue().count("\n") == 2


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder of classes in which names hold escape codes, markup and bytes that are not text."""
    root = tmp_path / f"data{ESCAPES}[/]"
    for name in ("mug", "[/bold]pen", os.fsdecode(b"caf\xe9")):
        (root / name).mkdir(parents=True)
        for number in range(2):
            pixels = np.full((8, 8, 3), number, np.uint8)
            Image.fromarray(pixels).save(root / name / f"{number}{ESCAPES}\n.png")
    (root / "mug" / f"bad{ESCAPES}.png").write_bytes(b"")
    return root


def test_commands_on_hostile_names(
    hostile: Path, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    weights, runs = tmp_path / f"w{ESCAPES}.pth", tmp_path / f"runs{ESCAPES}"
    toy = write_blobs(tmp_path / "toy.npz")
    flags = ["--iterations", "2", "--batch-size", "8", "--evaluate-every", "2", "--quiet"]
    pair = ["-s", f"{toy}:a", "-t", f"{toy}:b", "-o", str(runs / "run")]
    assert main(["adapt", *pair, *flags]) == 0
    for arguments, code in (
        (["doctor", "--data", hostile], 1),
        (["adapt", "-s", hostile, "-t", hostile, "--out", tmp_path / "o"], 2),
        (["adapt", "-s", hostile / "gone\x1b", "-t", hostile, "--out", tmp_path / "o"], 2),
        (["features", hostile, "--out", tmp_path / f"f{ESCAPES}.safetensors"], 2),
        (["features", hostile, "--weights", weights, "--out", tmp_path / "f.safetensors"], 2),
        (["report", hostile, "--out", tmp_path / "r.html"], 2),
        (["predict", hostile, hostile], 2),
        (["paper", runs, "--out", tmp_path / "p"], 0),
    ):
        assert main([str(argument) for argument in arguments]) == code, arguments
        said = "".join(capfd.readouterr())
        assert "\x1b" not in said, arguments
        assert "\x07" not in said, arguments
        assert "Traceback" not in said


def test_a_class_with_escape_codes_is_refused(tmp_path: Path) -> None:
    for name in ("mug", f"pen{ESCAPES}"):
        (tmp_path / name).mkdir()
        Image.new("RGB", (8, 8)).save(tmp_path / name / "1.png")
    from equida.data import image_folder

    with pytest.raises(InputError, match="has no visible name, or control characters in it"):
        image_folder(tmp_path)
