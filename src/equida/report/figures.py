"""The paper's figures of trained networks: parameter curves, t-SNE, sample images."""

import colorsys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equida.bench.paper_tables import LAMBDAS, TSNE_METHODS
from equida.bench.settings import Setting
from equida.bench.sweep import Variant, method_title
from equida.data import ImageDomain, load_domain
from equida.data.benchmarks import BENCHMARKS
from equida.errors import InputError
from equida.report.exhibit import seed_count
from equida.report.parameters import Curve
from equida.report.tables import heading

STYLE: Any = {
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.titlesize": 10,
    "svg.fonttype": "none",
    "svg.hashsalt": "equida",
    "axes.spines.top": False,
    "axes.spines.right": False,
}
# Okabe and Ito's colours, which colour-blind readers can tell apart.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7")
MARKERS = ("o", "s", "^", "D", "v")
PER_DOMAIN = 8


def new_figure(width: float, height: float) -> Any:
    """An empty figure that needs no display."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("figures need matplotlib: pip install 'equida[report]'") from None
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save(figure: Any, folder: Path, name: str) -> list[str]:
    """Write the figure as PNG and SVG; the names of the files, the PNG first."""
    names = [f"{name}.png", f"{name}.svg"]
    figure.savefig(folder / names[0], dpi=150)
    figure.savefig(folder / names[1], dpi=150, metadata={"Date": None})
    return names


def styled() -> Any:
    """The style that all figures share, as a context."""
    try:
        import matplotlib
    except ImportError:
        raise InputError("figures need matplotlib: pip install 'equida[report]'") from None
    return matplotlib.rc_context(STYLE)


def draw_curves(curves: Sequence[Curve], folder: Path) -> list[str]:
    """Accuracy over lambda: a panel for each method and task that has points."""
    panels: dict[tuple[str, str, str], list[Curve]] = {}
    for curve in curves:
        if curve.drawn:
            panels.setdefault((curve.method, curve.benchmark, curve.task), []).append(curve)
    with styled():
        figure = new_figure(3.6 * len(panels), 3.2)
        axes = figure.subplots(1, len(panels), squeeze=False)[0]
        for axis, ((method, benchmark, task), lines) in zip(axes, panels.items(), strict=True):
            for number, curve in enumerate(lines):
                _draw_curve(axis, curve, number)
            over = seed_count(len(lines[0].seeds), len(lines[0].seeds))
            title = f"{method_title(method)}, {BENCHMARKS[benchmark].title} {heading(task)}, {over}"
            axis.set(title=title, xlabel="λ", ylabel="accuracy (%)", xticks=LAMBDAS)
            axis.grid(alpha=0.3)
            _at_least(axis, 5.0)
            if any(curve.alpha is not None for curve in lines):
                axis.legend(fontsize=8)
        return save(figure, folder, "parameters")


def _draw_curve(axis: Any, curve: Curve, number: int) -> None:
    known = {x: point for x, point in curve.points.items() if point.mean is not None}
    label = None if curve.alpha is None else f"α = {curve.alpha:g}"
    axis.errorbar(
        list(known),
        [point.mean for point in known.values()],
        [point.deviation or 0.0 for point in known.values()],
        label=label,
        color=COLOURS[number % len(COLOURS)],
        marker=MARKERS[number % len(MARKERS)],
        markersize=4,
        linewidth=1.3,
        capsize=2,
    )


def _at_least(axis: Any, height: float) -> None:
    """No axis shorter than `height`: small changes must not look large."""
    low, high = axis.get_ylim()
    if high - low < height:
        middle = (low + high) / 2
        axis.set_ylim(middle - height / 2, middle + height / 2)


def draw_tsne(setting: Setting, task: str, seed: int, folder: Path) -> list[str]:
    """Four panels of target predictions in two dimensions, coloured by predicted class."""
    with styled():
        figure = new_figure(9.6, 9.9)
        axes = figure.subplots(2, 2)
        for axis, letter, method in zip(axes.flat, "abcd", TSNE_METHODS, strict=True):
            run = setting.run(Variant(method), task, seed)
            assert run is not None
            assert run.result is not None
            probs = run.predictions.probs.numpy()
            points, predicted = embed(probs), probs.argmax(1)
            colours = palette(probs.shape[1])[predicted]
            axis.scatter(*points.T, s=7, c=colours, linewidths=0, rasterized=True)
            figures = run.result["last"]
            accuracy = figures.get(run.result["metric"])
            said = "" if accuracy is None else f"accuracy {100 * accuracy:.1f} %, "
            axis.set_title(
                f"({letter}) {method_title(method)}\n{said}equity {figures['equity']:.2f},"
                f" discriminability {figures['discriminability']:.2f}"
            )
            axis.set(xticks=[], yticks=[])
            axis.spines[:].set(visible=True, color="0.8")
        title = BENCHMARKS[setting.benchmark].title
        figure.suptitle(f"{title} {heading(task)}, seed {seed}: colour is the predicted class")
        return save(figure, folder, "tsne")


def embed(probs: NDArray[np.float32]) -> NDArray[np.float64]:
    """The rows in two dimensions by t-SNE, the same each time."""
    try:
        from openTSNE import TSNE
    except ImportError:
        raise InputError("t-SNE needs openTSNE: pip install 'equida[report]'") from None
    perplexity = max(1.0, min(30.0, (len(probs) - 1) / 3))
    embedding = TSNE(perplexity=perplexity, random_state=0, n_jobs=1, initialization="pca")
    return np.asarray(embedding.fit(np.asarray(probs, np.float64)))


def palette(classes: int) -> NDArray[np.float64]:
    """As many colours as classes, neighbours far apart in hue and in lightness."""
    golden = 0.618034
    return np.array(
        [
            colorsys.hls_to_rgb((k * golden) % 1.0, (0.38, 0.52, 0.66)[k % 3], (0.85, 0.6)[k % 2])
            for k in range(classes)
        ]
    )


def draw_samples(benchmark: str, data: str, folder: Path) -> list[str]:
    """A row of images for each domain, of the same classes."""
    data_set = BENCHMARKS[benchmark]
    chosen = np.linspace(0, len(data_set.classes) - 1, min(PER_DOMAIN, len(data_set.classes)))
    labels = [round(label) for label in chosen.tolist()]
    rows = {d.title: _samples(benchmark, d.key, data, labels) for d in data_set.domains}
    with styled():
        figure = new_figure(1.2 * len(labels) + 0.6, 1.25 * len(rows) + 0.4)
        axes = figure.subplots(len(rows), len(labels), squeeze=False)
        for line, (title, images) in zip(axes, rows.items(), strict=True):
            for number, (axis, image) in enumerate(zip(line, images, strict=True)):
                axis.set(xticks=[], yticks=[])
                axis.spines[:].set_visible(False)
                if image is not None:
                    axis.imshow(image)
                if number == 0:
                    axis.set_ylabel(title)
        for axis, label in zip(axes[0], labels, strict=True):
            axis.set_title(data_set.classes[label].replace("_", " "), fontsize=8)
        return save(figure, folder, f"samples-{benchmark}")


def _samples(benchmark: str, domain: str, data: str, labels: Sequence[int]) -> list[Any]:
    """The first image of each class, small; None where the domain has none."""
    opened = load_domain(benchmark, domain, data)
    if not isinstance(opened, ImageDomain) or opened.labels is None:
        raise InputError(f"{data} holds features; sample images need the folder of images")
    images: list[Any] = []
    for label in labels:
        members = np.flatnonzero(opened.labels == label)
        image: Any = opened[int(members[0])] if len(members) else None
        images.append(None if image is None else np.asarray(image.resize((128, 128))))
    return images
