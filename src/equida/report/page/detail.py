"""What the page knows of one run, as plain values for the script in it."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from equida.bench.store import Predictions
from equida.evaluation.accuracy import class_accuracies
from equida.report.page.grid import SELECTIONS, Entry
from equida.report.page.maps import embed, shown_samples, spread
from equida.report.page.pictures import Pictures

MISTAKES = 12
"""How many confident mistakes are shown of a run."""
LINES = 300
"""How many points of a curve are drawn."""


def describe(
    entry: Entry, baseline: Entry | None, pictures: Pictures, *, mapped: bool
) -> dict[str, Any]:
    """Everything that the panels of one run show; what needs target labels is absent without.

    Args:
        entry: a finished run.
        baseline: the source-only run to compare classes with.
        pictures: where pictures of samples come from.
        mapped: whether the run gets a map.
    """
    result = entry.result
    told = {
        "number": entry.number,
        "seed": entry.seed,
        "metric": result["metric"],
        "kept": result["kept"],
        "seconds": result["seconds"],
        "last": _figures(result["last"], result["metric"]),
        "picks": _picks(entry),
        "classes": list(map(str, result["classes"])),
        "curves": curves(entry.run.log, result["metric"]),
    }
    if "confusion" in result:
        told |= _by_class(entry, baseline)
    predictions = read_predictions(entry)
    if isinstance(predictions, str):
        return told | {"trouble": predictions}
    told["predicted"] = _counts(predictions.probs.argmax(1), len(result["classes"]))
    if "confusion" in result:
        told |= mistakes(predictions, entry, pictures)
    if mapped:
        told["map"] = _map(predictions, entry, pictures)
    return told


def read_predictions(entry: Entry) -> Predictions | str:
    """The run's predictions, or why they cannot be shown."""
    from safetensors import SafetensorError

    try:
        found = entry.run.predictions
        classes = len(entry.result["classes"])
        if found.probs.shape != (len(found.samples), classes) or not len(found.samples):
            return f"predictions.safetensors does not hold {classes} probabilities for each sample"
    except (OSError, SafetensorError, KeyError, ValueError) as error:
        return f"predictions.safetensors cannot be read: {error}"
    return found


def curves(log: Sequence[Mapping[str, Any]], metric: str) -> dict[str, Any]:
    """Loss terms and evaluations over the steps, thinned evenly where there are very many."""
    terms = [line for line in log if "terms" in line]
    seen = [line for line in log if "evaluation" in line]
    every = max(1, math.ceil(len(terms) / LINES))
    kept = terms[::every]
    names = dict.fromkeys(name for line in terms for name in line["terms"])
    rows = {name: [_short(line["terms"].get(name)) for line in kept] for name in names}
    shown = [name for name in (metric, "equity", "discriminability", "source_accuracy") if seen]
    return {
        "steps": [line["step"] for line in kept],
        "terms": rows,
        "thinned": every,
        "logged": len(terms),
        "evaluated": [line["step"] for line in seen],
        "figures": {
            name: [_short(line["evaluation"].get(name)) for line in seen]
            for name in shown
            if any(name in line["evaluation"] for line in seen)
        },
    }


def mistakes(predictions: Predictions, entry: Entry, pictures: Pictures) -> dict[str, Any]:
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
                "confidence": _short(float(confidence[i])),
                "picture": pictures.of(entry.run.config.task, predictions.samples[i]),
            }
            for i in chosen
        ],
    }


def _map(predictions: Predictions, entry: Entry, pictures: Pictures) -> dict[str, Any]:
    rows = shown_samples(len(predictions.samples))
    probs = predictions.probs[rows]
    places = spread(embed(probs))
    samples = [predictions.samples[i] for i in rows]
    told = {
        "of": len(predictions.samples),
        "x": np.round(places[:, 0], 4).tolist(),
        "y": np.round(places[:, 1], 4).tolist(),
        "predicted": probs.argmax(1).tolist(),
        "confidence": [_short(float(value)) for value in probs.amax(1)],
        "samples": samples,
        "pictures": [pictures.of(entry.run.config.task, sample) for sample in samples],
    }
    if "confusion" in entry.result:
        told["truth"] = predictions.labels[rows].tolist()
    return told


def _by_class(entry: Entry, baseline: Entry | None) -> dict[str, Any]:
    confusion = torch.tensor(entry.result["confusion"])
    cells = confusion.nonzero()
    told: dict[str, Any] = {
        # Most cells of a good run are empty.
        "confusion": [[row, column, int(confusion[row, column])] for row, column in cells.tolist()],
        "true": confusion.sum(1).tolist(),
    }
    if baseline is not None and baseline.result["classes"] == entry.result["classes"]:
        before = class_accuracies(torch.tensor(baseline.result["confusion"]))
        change = class_accuracies(confusion) - before
        told["change"] = [None if math.isnan(x) else _short(x) for x in change.tolist()]
        told["baseline_seed"] = baseline.seed
    return told


def _picks(entry: Entry) -> list[dict[str, Any]]:
    chosen = {name: entry.figures(name) for name in SELECTIONS}
    return [
        {"name": SELECTIONS[name], **_figures(figures, entry.result["metric"])}
        for name, figures in chosen.items()
        if figures is not None
    ]


def _figures(figures: Mapping[str, float], metric: str) -> dict[str, Any]:
    names = ("step", "equity", "discriminability")
    told = {name: _short(figures[name]) for name in names}
    return told | {"accuracy": _short(figures.get(metric))}


def _counts(predicted: Tensor, classes: int) -> list[int]:
    counted: list[int] = torch.bincount(predicted, minlength=classes).tolist()
    return counted


def _short(value: float | None) -> float | None:
    """Five digits are more than a plot shows; what is no number becomes None."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.5g}")
