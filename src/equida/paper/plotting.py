"""What all figures of the paper share: a canvas without a display, a style, files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from equida.errors import require

STYLE: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.titlesize": 10,
    "svg.fonttype": "none",
    "svg.hashsalt": "equida",
}
# Okabe and Ito's colours, which colour-blind readers can tell apart.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7")
MARKERS = ("o", "s", "^", "D", "v")


def require_matplotlib() -> Any:
    """The package, or an error that names the extra."""
    return require("matplotlib", "the figures need matplotlib", "equida[report]")


def figure_style(**changes: Any) -> Any:
    """A context in which figures have the style that they share, with some changes."""
    return require_matplotlib().rc_context(STYLE | changes)


def new_figure(width: float, height: float, layout: Any = "constrained") -> Any:
    """An empty figure that needs no display."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout=layout)
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Any, folder: Path, name: str, dots_per_inch: int = 150) -> list[str]:
    """Write the figure as PNG and SVG; the names of the files, the PNG first."""
    # Without a date and a version, the same figure is the same file.
    metadata: Mapping[str, Any] = {"png": {"Software": None}, "svg": {"Date": None}}
    for ending, entries in metadata.items():
        figure.savefig(folder / f"{name}.{ending}", dpi=dots_per_inch, metadata=entries)
    return [f"{name}.{ending}" for ending in metadata]
