"""Without the folder `equida.paper` everything else works: it is a room of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import equida

# Python imports a module of this name when it starts, so that worker processes are blocked too.
BLOCK = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name == "equida.paper" or name.startswith("equida.paper."):
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Blocker())
"""
LOSSES = """
import torch
from equida.losses import nsm
from equida.methods import METHODS

assert nsm(torch.eye(3)) < 0
print(*METHODS)
"""
TRAINING = """
import numpy as np
from equida.data import array_domain, make_task
from equida.training.config import RunConfig
from equida.training.loop import train
from equida.training.recipe import Recipe

labels = np.arange(24) % 3
rows = np.eye(3)[labels] + 0.1 * np.random.default_rng(0).normal(size=(24, 3))
task = make_task(array_domain(rows, labels, name="a"), array_domain(rows + 0.2, labels, name="b"))
recipe = Recipe(iterations=2, batch_size=8, bottleneck=2, evaluate_every=1)
print(train(RunConfig("nsm", recipe), task).result["last"]["accuracy"])
"""
BENCH = """
import sys
from pathlib import Path
from equida.experiments.execute import GridResults, Workers, do_runs
from equida.experiments.grid import Grid, plan
from equida.experiments.sweep import variants

root, data = Path(sys.argv[1]), sys.argv[2]
quick = {"iterations": 2, "evaluate_every": 2, "bottleneck": 4, "batch_size": 8}
methods = tuple(variants(["source_only", "nsm"], [], "office31"))
runs = plan(Grid("office31", methods, ("A2W",), (0,), "features", quick, data), root)
assert [ended.failure for ended in do_runs(runs, Workers(1, 1))] == [None, None]
assert not GridResults(runs).unfinished
"""
TABLE = """
import sys
from pathlib import Path
from equida.runs.group import group_runs
from equida.runs.read import read_runs
from equida.runs.table import make_table

[group] = group_runs(read_runs(Path(sys.argv[1])))
print(make_table(group.entries, benchmark="office31", tasks=group.tasks, seeds=group.seeds))
"""
PAGE = """
import sys
from pathlib import Path
from equida.report.page import write_page

write_page(Path(sys.argv[1]), Path(sys.argv[2]), maps=0)
"""


@pytest.fixture(scope="module")
def blocked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a Python that cannot import `equida.paper`."""
    folder = tmp_path_factory.mktemp("blocked")
    (folder / "sitecustomize.py").write_text(BLOCK)
    places = [str(folder), str(Path(equida.__file__).parents[1])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(places), "OMP_NUM_THREADS": "1"}


def output_of(code: str, environment: dict[str, str], *arguments: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def runs(
    blocked: dict[str, str], toy_office: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Two runs of a benchmark, made without the paper."""
    root = tmp_path_factory.mktemp("room") / "runs"
    output_of(BENCH, blocked, root, toy_office)
    return root


def test_the_paper_is_blocked_indeed(blocked: dict[str, str]) -> None:
    with pytest.raises(AssertionError, match=r"equida\.paper is blocked"):
        output_of("import equida.paper.tables", blocked)


def test_losses_and_methods(blocked: dict[str, str]) -> None:
    assert "nsm" in output_of(LOSSES, blocked).split()


def test_training_on_a_toy_task(blocked: dict[str, str]) -> None:
    assert 0.0 <= float(output_of(TRAINING, blocked)) <= 1.0


def test_a_grid_of_runs_and_its_table(blocked: dict[str, str], runs: Path) -> None:
    shown = output_of(TABLE, blocked, runs)
    assert "Source only" in shown
    assert "NSM" in shown
    assert "A→W" in shown


# This passes once the page is made from the one model of results.
def test_the_page(blocked: dict[str, str], runs: Path, tmp_path: Path) -> None:
    output_of(PAGE, blocked, runs, tmp_path / "page.html")
    assert "Office-31" in (tmp_path / "page.html").read_text()


def test_the_command_line_helps(blocked: dict[str, str]) -> None:
    shown = output_of("from equida.cli import main; main(['--help'])", blocked)
    assert "bench" in shown
