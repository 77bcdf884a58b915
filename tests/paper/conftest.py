"""Folders of runs that were never trained: their results are made up, to say one thing clearly."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from equida.data.benchmarks import BENCHMARKS
from equida.experiments.grid import Grid, PlannedRun, plan
from equida.experiments.sweep import Sweep, variants
from equida.paper.items import PaperContext, choose_groups
from equida.paper.tables import ALPHAS, ELEVEN, LAMBDAS
from equida.runs.read import read_runs
from equida.training.folder import RunFolder

ACCURACY = {"source_only": 0.60, "max_square": 0.65, "bnm": 0.80, "cwsm": 0.81, "nsm": 0.80}


def write_runs(
    root: Path, grid: Grid, accuracy: Callable[[PlannedRun], float] | None = None
) -> None:
    """Folders as a grid leaves them; r = 1 has more equity and less of the rest."""
    data_set = grid.data_set
    assert data_set is not None
    classes = data_set.classes
    for run in plan(grid, root):
        folder = RunFolder(run.folder)
        folder.write_json("config.json", run.config.to_json())
        place = data_set.tasks.index(run.task)
        wobble = 0.01 * place + 0.003 * ((3 * run.seed + 2 * place) % 5)
        one = run.variant.overrides.get("r") == 1.0
        known = ACCURACY.get(run.variant.method, 0.7) + wobble
        last = {
            "step": 4.0,
            "accuracy": accuracy(run) if accuracy else known - 0.02 * one,
            "equity": 0.70 + 0.1 * one + wobble,
            "discriminability": 0.90 - 0.1 * one + wobble,
        }
        folder.save_tensors(
            "predictions.safetensors",
            {"probs": torch.eye(len(classes)).repeat(2, 1), "labels": torch.arange(62) % 31},
            {"samples": json.dumps([f"image {number}" for number in range(62)])},
        )
        folder.write_json(
            "result.json",
            {
                "task": run.task, "benchmark": data_set.name, "method": run.variant.method,
                "seed": run.seed, "metric": "accuracy", "kept": "last", "last": last,
                "picks": {"oracle": last}, "classes": list(classes), "seconds": 1.0,
            },
        )  # fmt: skip


def office_grid(
    methods: tuple[str, ...], tasks: tuple[str, ...], seeds: tuple[int, ...], *sweeps: Sweep
) -> Grid:
    found = tuple(variants(methods, sweeps, "office31"))
    changes = {"iterations": 4, "dropout": 0.0}
    return Grid("office31", found, tasks, seeds, "features", changes, "/f.npz")


@pytest.fixture
def grid() -> Callable[..., Grid]:
    """What makes a grid on Office-31 from methods, tasks, seeds and sweeps."""
    return office_grid


@pytest.fixture
def context_of() -> Callable[[Path], PaperContext]:
    """What makes the context of the runs in a folder."""
    return lambda root: PaperContext(choose_groups(read_runs(root))[0], root)


@pytest.fixture
def write_grid() -> Callable[..., None]:
    """What writes the folders of any grid."""
    return write_runs


@pytest.fixture(scope="session")
def paper_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every run of Office-31 that the paper's tables and figures are made from."""
    root = tmp_path_factory.mktemp("paper") / "runs"
    tasks, seeds = BENCHMARKS["office31"].tasks, (0, 1, 2)
    sweeps = [Sweep("trade_off", LAMBDAS), Sweep("alpha", ALPHAS)]
    for methods, asked, where in (
        (ELEVEN, [], tasks),
        (("cwsm", "nsm"), [Sweep("r", (0.5, 1.0))], tasks),
        (("cwsm", "nsm"), sweeps, ("A2W",)),
    ):
        write_runs(root, office_grid(methods, where, seeds, *asked))
    return root
