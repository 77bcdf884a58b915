"""What the page knows of one run, as plain values for the script in it."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from equida.errors import InputError
from equida.evaluation.accuracy import class_accuracies
from equida.evaluation.figures import FIGURES, Figure, columns
from equida.report.page.content import ShownRun
from equida.report.page.maps import shown_samples, spread
from equida.report.page.pictures import Pictures
from equida.report.tsne import embed
from equida.runs.entry import selection_titles
from equida.runs.read import StoredPredictions, read_predictions
from equida.runs.target import target_remarks
from equida.training.folder import RunFolder

MISTAKES = 12
"""How many confident mistakes are shown of a run."""
LINES = 300
"""How many points of a curve are drawn."""


def describe_run(
    shown: ShownRun, baseline: ShownRun | None, pictures: Pictures, *, mapped: bool
) -> dict[str, Any]:
    """Everything that the panels of one run show; without target labels, what can be shown without.

    Classes are compared with the source-only run `baseline`; a run that is `mapped` gets a map.
    """
    result, kept = shown.result, shown.result["kept"]
    values = {
        "number": shown.number,
        "system": shown.system,
        "task": shown.task,
        "seed": shown.seed,
        "kept": "" if kept == "last" else selection_titles().get(kept, kept),
        "seconds": result["seconds"],
        "last": _evaluation(result["last"], result["metric"]),
        "picks": _picks(shown),
        "classes": list(map(str, result["classes"])),
        "curves": curves(RunFolder(shown.run.path).read_log(), result["metric"]),
        "remarks": target_remarks(result),
        "shares": _shares(result),
    }
    if "confusion" in result:
        values |= _by_class(shown, baseline)
    try:
        # Not `shown.run.predictions`, which would keep those of every run in memory.
        predictions = read_predictions(shown.run)
    except InputError as error:
        return values | {"trouble": str(error)}
    predicted, classes = predictions.probs.argmax(1), len(result["classes"])
    values["predicted"] = torch.bincount(predicted, minlength=classes).tolist()
    if "confusion" in result:
        values |= mistakes(shown, predictions, pictures)
    if mapped:
        values["map"] = _map(shown, predictions, pictures)
    return values


def _shares(result: Mapping[str, Any]) -> dict[str, list[float]]:
    """The class shares that the method aims at and those that were estimated, where known."""
    shares = result.get("shares") or {}
    return {name: shares[name] for name in ("aim", "estimated") if shares.get(name)}


def shown_figures(metrics: Iterable[str]) -> list[Figure]:
    """The figures that curves offer: accuracies by these metrics, the columns, source accuracy."""
    names = (*metrics, *(figure.name for figure in columns()), "source_accuracy")
    return [FIGURES[name] for name in dict.fromkeys(names) if name in FIGURES]


def curves(log: Sequence[Mapping[str, Any]], metric: str) -> dict[str, Any]:
    """Loss terms and evaluations over the steps, thinned evenly where there are very many."""
    terms = [line for line in log if "terms" in line]
    evaluations = [line for line in log if "evaluation" in line]
    every = max(1, math.ceil(len(terms) / LINES))
    kept = terms[::every]
    names = dict.fromkeys(name for line in terms for name in line["terms"])
    return {
        "metric": metric,
        "steps": [line["step"] for line in kept],
        "terms": {name: [_five_digits(line["terms"].get(name)) for line in kept] for name in names},
        "thinned": every,
        "logged": len(terms),
        "evaluated": [line["step"] for line in evaluations],
        "figures": {
            figure.name: [_five_digits(line["evaluation"].get(figure.name)) for line in evaluations]
            for figure in shown_figures([metric])
            if any(figure.name in line["evaluation"] for line in evaluations)
        },
    }


def mistakes(shown: ShownRun, predictions: StoredPredictions, pictures: Pictures) -> dict[str, Any]:
    """The wrong predictions that the run is surest of, and how many there are in all."""
    confidence, predicted = predictions.probs.max(1)
    wrong = (predictions.labels >= 0) & (predicted != predictions.labels)
    surest = torch.where(wrong, confidence, -1.0).argsort(descending=True, stable=True)
    chosen = surest[: min(MISTAKES, int(wrong.sum()))].tolist()
    return {
        "wrong": int(wrong.sum()),
        "mistakes": [
            {
                "sample": predictions.samples[i],
                "truth": int(predictions.labels[i]),
                "predicted": int(predicted[i]),
                "confidence": _five_digits(float(confidence[i])),
                "picture": pictures.of(shown.run.config.task, predictions.samples[i]),
            }
            for i in chosen
        ],
    }


def _map(shown: ShownRun, predictions: StoredPredictions, pictures: Pictures) -> dict[str, Any]:
    rows = shown_samples(len(predictions.samples))
    probs = predictions.probs[rows]
    places = spread(embed(probs))
    samples = [predictions.samples[i] for i in rows]
    values = {
        "of": len(predictions.samples),
        "x": np.round(places[:, 0], 4).tolist(),
        "y": np.round(places[:, 1], 4).tolist(),
        "predicted": probs.argmax(1).tolist(),
        "confidence": [_five_digits(float(value)) for value in probs.amax(1)],
        "samples": samples,
        "pictures": [pictures.of(shown.run.config.task, sample) for sample in samples],
    }
    if "confusion" in shown.result:
        values["truth"] = predictions.labels[rows].tolist()
    return values


def _by_class(shown: ShownRun, baseline: ShownRun | None) -> dict[str, Any]:
    confusion = torch.tensor(shown.result["confusion"])
    cells = confusion.nonzero()
    values: dict[str, Any] = {
        # Most cells of a good run are empty.
        "confusion": [[row, column, int(confusion[row, column])] for row, column in cells.tolist()],
        "true": confusion.sum(1).tolist(),
    }
    if baseline is not None and baseline.result["classes"] == shown.result["classes"]:
        before = class_accuracies(torch.tensor(baseline.result["confusion"]))
        change = class_accuracies(confusion) - before
        values["change"] = [None if math.isnan(x) else _five_digits(x) for x in change.tolist()]
        values["baseline_seed"] = baseline.seed
    return values


def _picks(shown: ShownRun) -> list[dict[str, Any]]:
    found = [(name, title, shown.entry.figures(name)) for name, title in selection_titles().items()]
    return [
        {"key": name, "title": title, **_evaluation(figures, shown.result["metric"])}
        for name, title, figures in found
        if figures is not None
    ]


def _evaluation(figures: Mapping[str, float], metric: str) -> dict[str, Any]:
    """The step, the accuracy by the task's metric as `score`, and what tables have columns of."""
    measures = {figure.name: _five_digits(figures.get(figure.name)) for figure in columns()}
    return {"step": int(figures["step"]), "score": _five_digits(figures.get(metric)), **measures}


def _five_digits(value: float | None) -> float | None:
    """The value with five digits, more than a plot shows; None for infinities and NaN."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.5g}")
