"""Small run folders with made-up predictions; every figure in them follows from these."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from equida.data.spec import DataSpec
from equida.evaluation import discriminability, equity
from equida.evaluation.figures import FIGURES, Figure
from equida.training.config import RunConfig
from equida.training.folder import RunFolder
from equida.training.recipe import Recipe


@dataclass(frozen=True)
class Made:
    """What a made-up run is like."""

    method: str = "nsm"
    seed: int = 0
    source: str = "M"
    target: str = "U"
    benchmark: str | None = "digits"
    classes: tuple[str, ...] = tuple("0123456789")
    rows: int = 60
    right: int = 45
    """How many of the rows are predicted right."""
    labelled: bool = True
    overrides: tuple[tuple[str, Any], ...] = ()
    iterations: int = 100
    prefix: str = "row "
    data_sha256: str = ""
    recipe_changes: tuple[tuple[str, Any], ...] = ()
    extra_figures: tuple[tuple[str, float], ...] = ()
    """Figures that the run has recorded besides the usual ones."""

    def config(self) -> RunConfig:
        return RunConfig(
            self.method,
            Recipe(iterations=self.iterations, bottleneck=0, dropout=0.0),
            DataSpec(self.source, self.target, self.benchmark),
            overrides=dict(self.overrides),
            backbone="lenet",
            seed=self.seed,
            recipe_name="digits",
            recipe_changes=dict(self.recipe_changes),
            data_sha256=self.data_sha256,
        )


def write_run(folder: Path, made: Made) -> Path:
    """A finished run: the first `right` rows are predicted right, the others one class too far."""
    count = len(made.classes)
    labels = np.arange(made.rows) % count
    predicted = np.where(np.arange(made.rows) < made.right, labels, (labels + 1) % count)
    sure = 0.5 + 0.4 * np.random.default_rng(made.seed).random(made.rows)
    probs = np.repeat((1 - sure)[:, None] / (count - 1), count, axis=1)
    probs[np.arange(made.rows), predicted] = sure
    tensor = torch.tensor(probs, dtype=torch.float32)
    last = {
        "step": float(made.iterations),
        "equity": float(equity(tensor)),
        "equity_soft": float(equity(tensor, "soft")),
        "discriminability": float(discriminability(tensor)),
        "source_accuracy": 0.9,
        "entropy": -0.4,
        **dict(made.extra_figures),
    }
    if made.labelled:
        last |= {"accuracy": made.right / made.rows, "mean_class_accuracy": made.right / made.rows}
    early = last | {"step": made.iterations / 2, "entropy": -0.2}
    if made.labelled:
        early["accuracy"] = last["accuracy"] - 0.1
    run = RunFolder(folder)
    run.write_json("config.json", made.config().to_json())
    for step in (10, 50, 100):
        run.append_log({"step": step, "terms": {"cross_entropy": 1 / step, made.method: -0.1}})
    for figures in (early, last):
        run.append_log({"step": int(figures["step"]), "evaluation": figures})
    picks = {"source_accuracy": last, "entropy": early}
    result: dict[str, Any] = {
        "task": f"{made.source}2{made.target}",
        "benchmark": made.benchmark,
        "method": made.method,
        "seed": made.seed,
        "classes": list(made.classes),
        "metric": "accuracy",
        "kept": "last",
        "last": last,
        "picks": picks | ({"oracle": last} if made.labelled else {}),
        "seconds": 1.5,
    }
    if made.labelled:
        confusion = np.zeros((count, count), int)
        np.add.at(confusion, (labels, predicted), 1)
        result["confusion"] = confusion.tolist()
    kept = torch.tensor(labels if made.labelled else np.full(made.rows, -1))
    names = [f"{made.prefix}{i}" for i in range(made.rows)]
    run.save_tensors(
        "predictions.safetensors", {"probs": tensor, "labels": kept}, {"samples": json.dumps(names)}
    )
    run.write_json("result.json", result)
    return folder


Writer = Callable[..., Path]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """An empty folder for runs."""
    folder = tmp_path / "runs"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def writer() -> Callable[[Path], Writer]:
    """For a folder, what writes a finished run into it; keywords are fields of `Made`."""

    def into(folder: Path) -> Writer:
        def one(**fields: Any) -> Path:
            made = replace(Made(), **fields)
            extra = "".join(f"-{key}{value}" for key, value in made.overrides)
            name = f"{made.source}2{made.target}-{made.method}{extra}-{made.seed}"
            name += f"-{made.data_sha256}" if made.data_sha256 else ""
            return write_run(folder / name, made)

        return one

    return into


@pytest.fixture
def write(runs: Path, writer: Callable[[Path], Writer]) -> Writer:
    """Writes a finished run into `runs`."""
    return writer(runs)


@pytest.fixture
def new_figure() -> Iterator[Figure]:
    """A figure that tables have a column of."""
    figure = FIGURES.add(
        "spread_share",
        Figure("spread_share", "Spread share", "made up for a test", lambda *_: 0.25, True, True),
    )
    yield figure
    del FIGURES._entries["spread_share"]
