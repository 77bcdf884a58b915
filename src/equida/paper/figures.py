"""The paper's Figures 2 and 3: sample images of every domain, and t-SNE of target predictions."""

import colorsys
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from equida.data import ImageDomain, load_domain
from equida.data.benchmarks import BENCHMARKS
from equida.errors import InputError
from equida.paper.items import PaperContext, PaperItem
from equida.paper.plotting import figure_style, new_figure, save_figure
from equida.paper.tables import RESULTS, TSNE_METHODS, TSNE_TASK
from equida.report.tsne import embed
from equida.runs.group import RunGroup
from equida.runs.read import Run
from equida.runs.table import heading
from equida.runs.variant import Variant, method_title

LOG = logging.getLogger(__name__)

IMAGES_PER_DOMAIN = 8


def sample_figure(
    context: PaperContext,
    images: Mapping[str, str],
    folder: Path,
    command: Callable[[Mapping[str, str]], str],
) -> PaperItem:
    """Figure 2: a row of images for each domain of each data set whose images are known.

    Args:
        images: by benchmark, the folder of its images, where runs do not name it.
        command: what makes the figures again with these folders of images.
    """
    files: list[str] = []
    unknown: list[str] = []
    missing, remarks = {}, []
    for name in RESULTS:
        config = context.groups[name].config if name in context.groups else None
        known = config.task.data if config and config.task else None
        data = images.get(name) or known
        if data is None or not Path(data).is_dir():
            missing[name] = "DIR"
            unknown.append(name)
            continue
        try:
            files += draw_samples(name, data, folder)
        except InputError as error:
            if name in images:  # the user has named it for this
                raise
            missing[name] = "DIR"
            remarks.append(f"{BENCHMARKS[name].title} is not drawn: {error}")
    if unknown:
        titles = ", ".join(BENCHMARKS[name].title for name in unknown)
        remarks.append(
            f"No folder of images is known for {titles}; leave out the data sets you do not have."
        )
    return PaperItem(
        "fig:dataset",
        "Figure 2. Sample images of every domain",
        len(RESULTS) - len(missing),
        len(RESULTS),
        command({**images, **missing}) if missing else "",
        figures=tuple(files),
        remarks=tuple(remarks),
    )


def draw_samples(benchmark: str, data: str, folder: Path) -> list[str]:
    """Draw a row of images for each domain, of the same classes; the names of the files."""
    data_set = BENCHMARKS[benchmark]
    count = min(IMAGES_PER_DOMAIN, len(data_set.classes))
    labels = [round(x) for x in np.linspace(0, len(data_set.classes) - 1, count).tolist()]
    rows = {d.title: _sample_images(benchmark, d.key, data, labels) for d in data_set.domains}
    with figure_style():
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
        return save_figure(figure, folder, f"samples-{benchmark}")


def _sample_images(benchmark: str, domain: str, data: str, labels: Sequence[int]) -> list[Any]:
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


@dataclass(frozen=True)
class TsneRuns:
    """One finished run of each method of the figure, on the same task and with the same seed."""

    group: RunGroup
    task: str
    seed: int
    runs: Mapping[str, Run]
    """By method."""

    @property
    def of_the_paper(self) -> bool:
        """Whether it is the paper's task."""
        return (self.group.benchmark, self.task) == TSNE_TASK

    @property
    def title(self) -> str:
        return f"{self.group.title} {heading(self.task)}, seed {self.seed}"


def tsne_figure(context: PaperContext, folder: Path) -> PaperItem:
    """Figure 3: t-SNE of target predictions, on the paper's task or on another that there is."""
    chosen = choose_tsne_runs(context)
    exact = chosen is not None and chosen.of_the_paper
    benchmark, task = TSNE_TASK
    command = context.command(benchmark, methods=",".join(TSNE_METHODS), tasks=task, seeds=1)
    remarks = []
    if chosen is not None:
        network = f", {chosen.group.network}" if chosen.group.network else ""
        remarks.append(f"The figure shows {chosen.title}{network}.")
        if not exact:
            remarks[0] += " The paper's is Office-Home Ar→Cl."
    return PaperItem(
        "fig:tsne",
        "Figure 3. t-SNE of target predictions by MaxSquare, BNM, CWSM and NSM",
        len(TSNE_METHODS) if exact else 0,
        len(TSNE_METHODS),
        "" if exact else command,
        figures=tuple(draw_tsne(chosen, folder)) if chosen else (),
        remarks=tuple(remarks),
    )


def choose_tsne_runs(context: PaperContext) -> TsneRuns | None:
    """The runs of the first task and seed that all four methods have, the paper's task first."""
    for name in sorted(context.groups, key=lambda name: name != TSNE_TASK[0]):
        group = context.groups[name]
        for task in sorted(BENCHMARKS[name].tasks, key=lambda task: (name, task) != TSNE_TASK):
            for seed in group.seeds:
                found = {m: group.finished_run(Variant(m), task, seed) for m in TSNE_METHODS}
                runs = {m: run for m, run in found.items() if run and _has_predictions(run)}
                if len(runs) == len(TSNE_METHODS):
                    return TsneRuns(group, task, seed, runs)
    return None


def _has_predictions(run: Run) -> bool:
    try:
        return bool(len(run.predictions.samples))
    except InputError as error:
        LOG.warning("left out: %s", error)
        return False


def draw_tsne(chosen: TsneRuns, folder: Path) -> list[str]:
    """Draw target predictions in two dimensions, a panel for each method; the names of the files.

    A point's colour is its predicted class.
    """
    with figure_style():
        figure = new_figure(9.6, 9.9)
        panels = zip(figure.subplots(2, 2).flat, "abcd", chosen.runs.items(), strict=True)
        for axis, letter, (method, run) in panels:
            probs = run.predictions.probs.numpy()
            points, predicted = embed(probs), probs.argmax(1)
            colours = palette(probs.shape[1])[predicted]
            axis.scatter(*points.T, s=7, c=colours, linewidths=0, rasterized=True)
            axis.set_title(f"({letter}) {method_title(method)}\n{_figures_phrase(run)}")
            axis.set(xticks=[], yticks=[])
            axis.spines[:].set(visible=True, color="0.8")
        figure.suptitle(f"{chosen.title}: colour is the predicted class")
        return save_figure(figure, folder, "tsne")


def _figures_phrase(run: Run) -> str:
    """Accuracy, equity and discriminability of the predictions that are drawn."""
    kept = run.picks[run.kept]
    words = [] if kept.accuracy is None else [f"accuracy {100 * kept.accuracy:.1f} %"]
    words += [f"equity {kept.equity:.2f}", f"discriminability {kept.discriminability:.2f}"]
    return ", ".join(words)


def palette(classes: int) -> NDArray[np.float64]:
    """As many colours as classes, neighbours far apart in hue and in lightness."""
    golden = 0.618034
    return np.array(
        [
            colorsys.hls_to_rgb((k * golden) % 1.0, (0.38, 0.52, 0.66)[k % 3], (0.85, 0.6)[k % 2])
            for k in range(classes)
        ]
    )
