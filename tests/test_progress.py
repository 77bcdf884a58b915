"""How progress is shown in a terminal, a notebook, a log file, and not at all."""

import io
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from tests.meters import Terminal

from equida import progress
from equida.progress import Bar, RunProgress, display_mode

FIGURES = {"equity": 0.5, "discriminability": 0.25, "accuracy": 0.75}


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A kernel's display; what it has shown, one entry for each update."""
    shown: list[str] = []

    def display(made: Any, display_id: bool) -> SimpleNamespace:
        assert display_id
        shown.append(made.data)
        return SimpleNamespace(update=lambda html: shown.append(html.data))

    ipython = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object()))
    html = SimpleNamespace(HTML=lambda text: SimpleNamespace(data=text), display=display)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", html)
    return shown


def test_a_script_shows_nothing_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert [display_mode(given) for given in (None, True, False)] == ["silent", "lines", "silent"]


def test_a_terminal_shows_a_bar_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    modes = [display_mode(given) for given in (None, True, False)]
    assert modes == ["terminal", "terminal", "silent"]


@pytest.mark.usefixtures("notebook")
def test_a_notebook_is_found() -> None:
    modes = [display_mode(given) for given in (None, True, False)]
    assert modes == ["notebook", "notebook", "silent"]


def test_a_notebook_shows_html_that_is_updated(
    notebook: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr("equida.progress.time.monotonic", lambda: now[0])
    with RunProgress("notebook", "nsm<", 10) as shown:
        for step in range(1, 7):
            now[0] += 10.0
            shown.stepped(step)
        shown.logged(6, {"cross_entropy": 1.5, "nsm": -0.25})
        shown.evaluated(6, FIGURES)
    assert '<progress value="6" max="10">' in notebook[-1]
    assert "nsm&lt;" in notebook[-1]
    assert "eq 0.50 disc 0.25 acc 75.0 | ce 1.50 nsm -0.25" in notebook[-1]
    assert "40 s left" in notebook[-1]


def test_updates_are_not_more_frequent_than_eyes(
    notebook: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("equida.progress.time.monotonic", lambda: 100.0)
    with Bar("notebook", "many", 1000) as bar:
        for _ in range(900):
            bar.advance(1)
    assert len(notebook) <= 4


def test_a_process_without_a_cell_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """A spawned process is told of the notebook, but has no cell to show anything in."""
    with RunProgress("notebook", "nsm", 10) as shown:
        shown.evaluated(10, FIGURES)
    assert capsys.readouterr() == ("", "")


def test_a_terminal_shows_figures_rate_and_label(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100)
    monkeypatch.setattr(progress, "_console", lambda: console)
    with Bar("terminal", unit="images") as bar:
        bar.start("features", 8)
        bar.update(4, note="fine")
        bar.say("left out: x.jpg")
    shown = screen.getvalue()
    for text in ("features", "4/8", "images/s", "fine", "left out: x.jpg"):
        assert text in shown


def test_a_log_file_gets_a_line_for_each_evaluation(capsys: pytest.CaptureFixture[str]) -> None:
    with RunProgress("lines", "nsm", 4) as shown:
        for step in range(1, 5):
            shown.stepped(step)
            if step % 2 == 0:
                shown.logged(step, {"nsm": -0.5})
                shown.evaluated(step, FIGURES)
    out, err = capsys.readouterr()
    assert out == ""
    first, last = err.splitlines()
    assert first == "step 2 of 4: eq 0.50 disc 0.25 acc 75.0 | nsm -0.50 | 1 s left"
    assert last == "step 4 of 4: eq 0.50 disc 0.25 acc 75.0 | nsm -0.50"


def test_silence(capsys: pytest.CaptureFixture[str]) -> None:
    with Bar("silent", "quiet", 3) as bar, RunProgress("silent", "nsm", 1) as shown:
        bar.advance(3)
        shown.evaluated(1, FIGURES)
    assert capsys.readouterr() == ("", "")
