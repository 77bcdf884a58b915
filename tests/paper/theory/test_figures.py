"""The figures are written, complete, and leave the user's settings alone."""

import sys
from pathlib import Path

import pytest

from equida.errors import InputError
from equida.paper.plotting import require_matplotlib
from equida.paper.theory.checks import QUICK, Context
from equida.paper.theory.complexity import complexity_checks
from equida.paper.theory.figures import draw_surfaces, draw_times

matplotlib = pytest.importorskip("matplotlib", reason="figures need the extra 'report'")


@pytest.mark.slow(reason="draws eight surfaces")
def test_surfaces_hold_eight_panels_and_four_vertices(tmp_path: Path) -> None:
    before = dict(matplotlib.rcParams)
    names = draw_surfaces(tmp_path)
    assert dict(matplotlib.rcParams) == before
    assert names == ["surfaces.png", "surfaces.svg"]
    assert (tmp_path / "surfaces.png").read_bytes().startswith(b"\x89PNG")
    drawing = (tmp_path / "surfaces.svg").read_text()
    assert all(f"({panel}) " in drawing for panel in "abcdefgh")
    assert drawing.count("<image") >= 8


@pytest.mark.slow(reason="draws figures")
def test_times_are_drawn_for_both_axes(tmp_path: Path) -> None:
    assert draw_times(complexity_checks(Context(QUICK)), tmp_path) == [
        "complexity.png",
        "complexity.svg",
    ]
    drawing = (tmp_path / "complexity.svg").read_text()
    assert "B (rows of the batch)" in drawing
    assert "C (classes)" in drawing
    assert drawing.count("NSM, r = 0.5: ") == 2


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match=r"pip install 'equida\[report\]'"):
        require_matplotlib()
