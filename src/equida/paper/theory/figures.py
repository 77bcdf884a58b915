"""The figures of a study: the surfaces of the case study, and time over size."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from equida.paper.plotting import figure_style, new_figure, save_figure
from equida.paper.theory.case_study import PANELS, VERTICES, matrices, surface
from equida.paper.theory.checks import AXES, Check
from equida.paper.theory.study import SURFACES

SMALL_TICKS = {"xtick.labelsize": 8, "ytick.labelsize": 8}
DOTS_PER_INCH = 200
RANGE = (0.3, 1.0)
"""One scale for all surfaces, so that heights can be compared between panels."""
SURFACE_POINTS = 61
FLOOR = 0.0
"""Where the contour map of a surface lies, below all of them."""
# Okabe and Ito's colours, which colour-blind readers can tell apart.
COLOURS = ("#000000", "#0072B2", "#56B4E9", "#009E73", "#E69F00", "#D55E00")
MARKERS = ("o", "s", "D", "^", "v", "P")


def draw_surfaces(folder: Path) -> list[str]:
    """Draw the eight negative losses over p1 and p2; the names of the files.

    MS and BNM stand above the values of r at which CWSM and NSM resemble them.
    """
    with figure_style(**SMALL_TICKS):
        figure = new_figure(9.6, 9.6, layout=None)
        cells = {"a": 1, "b": 2, "c": 4, "d": 5, "e": 6, "f": 7, "g": 8, "h": 9}
        drawn = None
        for letter, cell in cells.items():
            axes = figure.add_subplot(3, 3, cell, projection="3d")
            drawn = _panel(axes, letter)
        figure.subplots_adjust(0.01, 0.03, 0.96, 0.935, wspace=0.08, hspace=0.2)
        _key(figure, drawn)
        return save_figure(figure, folder, SURFACES, DOTS_PER_INCH)


def _panel(axes: Any, letter: str) -> Any:
    panel = PANELS[letter]
    p1, p2, value = (part.numpy() for part in surface(panel.measure, SURFACE_POINTS))
    scale = {"cmap": "viridis", "vmin": RANGE[0], "vmax": RANGE[1]}
    levels = [RANGE[0] + 0.05 * step for step in range(15)]
    axes.contourf(p1, p2, value, levels, offset=FLOOR, zorder=0, **scale)
    axes.contour(
        p1, p2, value, levels, offset=FLOOR, colors="white", linewidths=0.4, alpha=0.7, zorder=1
    )
    drawn = axes.plot_surface(
        p1, p2, value, rcount=SURFACE_POINTS, ccount=SURFACE_POINTS, linewidth=0,
        antialiased=False, rasterized=True, **scale,
    )  # fmt: skip
    _mark_vertices(axes, panel.measure)
    axes.set(xlim=(0, 1), ylim=(0, 1), zlim=(FLOOR, 1.05))
    axes.set(xticks=(0, 0.5, 1), yticks=(0, 0.5, 1), zticks=(0.25, 0.5, 0.75, 1))
    axes.set(xticklabels=("0", ".5", "1"), yticklabels=("0", ".5", "1"))
    axes.set(zticklabels=(".25", ".5", ".75", "1"))
    axes.set_xlabel("$p_1$", labelpad=-8)
    axes.set_ylabel("$p_2$", labelpad=-8)
    axes.tick_params(pad=-3)
    parameter = "" if panel.r is None else f", $r = {panel.r:g}$"
    axes.set_title(f"({letter}) {panel.loss}{parameter}", y=1.08)
    axes.view_init(elev=27, azim=-60)
    axes.set_box_aspect((1, 1, 0.85), zoom=1.02)
    return drawn


def _mark_vertices(axes: Any, measure: Any) -> None:
    for name, (x, y) in VERTICES.items():
        corner = (torch.tensor(at, dtype=torch.float64) for at in (x, y))
        height = float(measure(matrices(*corner)))
        if name != "P3":
            # The one at the back would be drawn over the surface that hides it.
            axes.plot([x, x], [y, y], [FLOOR, height], color="0.35", linewidth=0.6, zorder=9)
        axes.plot(
            [x], [y], [height], "o", color="#D55E00", markersize=4, markeredgecolor="white",
            markeredgewidth=0.6, zorder=10,
        )  # fmt: skip
        side = "right" if name == "P4" else "center"
        label = f"$P_{name[1]}$" + ("  " if name == "P4" else "")
        axes.text(x, y, height + 0.075, label, ha=side, va="bottom", zorder=11)


def _key(figure: Any, drawn: Any) -> None:
    """The cell that no panel needs: what is shown, where P1 to P4 are, and the scale."""
    axes = figure.add_axes((0.69, 0.70, 0.28, 0.25))
    axes.set_axis_off()
    lines = [
        ("Negative losses of", 0.97),
        (r"$P=[\,p_1,\ 1-p_1\ ;\ p_2,\ 1-p_2\,]$", 0.85),
        (r"$P_1, P_4$: both rows in one class", 0.70),
        (r"$P_2, P_3$: one row in each class", 0.58),
        (r"NSM: $\alpha=1,\ \epsilon=0$", 0.46),
    ]
    for text, height in lines:
        axes.text(0.02, height, text, va="top", fontsize=10)
    bar = figure.add_axes((0.70, 0.75, 0.24, 0.018))
    figure.colorbar(drawn, cax=bar, orientation="horizontal", label="minus loss (higher is better)")


def draw_times(checks: Sequence[Check], folder: Path) -> list[str]:
    """Draw the times behind the checks of Table 2, over B and over C; the names of the files."""
    slopes = [check.computed for check in checks if check.table == 2]
    names = list(dict.fromkeys(slope["name"] for slope in slopes))
    with figure_style(**SMALL_TICKS):
        figure = new_figure(9.6, 5.6)
        for axes, axis in zip(figure.subplots(1, 2, sharey=True), AXES, strict=True):
            for slope in (one for one in slopes if one["axis"] == axis):
                index = names.index(slope["name"])
                other = "C" if axis == "B" else "B"
                label = (
                    f"{slope['name']}: {slope['slope']:.2f} (paper {slope['printed']}), "
                    f"{other} = {slope['fixed']}"
                )
                milliseconds = [1e3 * second for second in slope["seconds"]]
                axes.loglog(
                    slope["sizes"], milliseconds, color=COLOURS[index], marker=MARKERS[index],
                    markersize=4.5, linewidth=1.3, label=label,
                )  # fmt: skip
            meaning = "rows of the batch" if axis == "B" else "classes"
            axes.set(xlabel=f"{axis} ({meaning})")
            axes.set_title(f"slope of log time over log {axis}")
            axes.grid(True, which="major", color="0.9", linewidth=0.6)
            axes.set_axisbelow(True)
            axes.spines[["top", "right"]].set_visible(False)
            axes.legend(frameon=False, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.16))
        figure.axes[0].set_ylabel("milliseconds, forward, one thread")
        return save_figure(figure, folder, "complexity", DOTS_PER_INCH)
