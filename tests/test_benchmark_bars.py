"""The table at the end of `make bench`: what was measured, its bar, and whether it holds."""

import io

import pytest
from rich.console import Console

from benchmarks import bars
from benchmarks.__main__ import main


@pytest.fixture(autouse=True)
def _nothing_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bars, "FOUND", [])


def test_what_is_above_or_below_its_bar_is_said() -> None:
    assert bars.judged("x", "time", 0.93, 0.92) == "0.93 (at most 0.92) [red]missed[/]"
    assert bars.judged("x", "speed", 2.1, 2.0, "x", least=True) == (
        "2.1 x (at least 2 x) [green]holds[/]"
    )
    bars.noted("x", "floor", "1.2 ms")
    out = io.StringIO()
    Console(file=out, width=100).print(bars.summary())
    rows = [
        [cell.strip() for cell in line.split("│")[1:-1]] for line in out.getvalue().splitlines()
    ]
    assert [row for row in rows if row] == [
        ["x", "time", "0.93", "at most 0.92", "missed"],
        ["x", "speed", "2.1 x", "at least 2 x", "holds"],
        ["x", "floor", "1.2 ms", "", ""],
    ]


def test_an_unknown_benchmark_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nosuch"]) == 2
    said = capsys.readouterr().out
    assert said.count("\n") == 1
    assert "losses" in said
    assert "bars" not in said
