"""The head trained by equida and by two bare loops: `python -m benchmarks.peer_loops LOOP ...`.

equida writes its run folder, logs and evaluates at the default intervals, and all of that counts.
"""

import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.bare import HEADS, LOSSES, bare
from benchmarks.peer_head import BATCH, Rows, Train, serve
from equida.data import Task, array_domain, make_task
from equida.training.config import RunConfig
from equida.training.loop import train
from equida.training.recipe import Recipe

METHODS = ("bnm", "dann", "dan")


def task_of(rows: Rows) -> Task:
    return make_task(
        array_domain(rows.source.numpy(), rows.labels.numpy(), name="source"),
        array_domain(rows.target.numpy(), rows.target_labels.numpy(), name="target"),
    )


def ours(method: str, rows: Rows, steps: int) -> Callable[[Tensor], Tensor]:
    recipe = Recipe(iterations=steps, batch_size=BATCH)
    with tempfile.TemporaryDirectory() as folder:
        config = RunConfig(method, recipe, seed=torch.initial_seed())
        trained = train(config, task_of(rows), folder=Path(folder))
    objective = trained.built.objective.eval()
    return lambda x: objective.predict(x)[1]


def loop(method: str, tuned: bool, rows: Rows, steps: int) -> Callable[[Tensor], Tensor]:
    recipe = Recipe(iterations=steps, batch_size=BATCH)
    weight, loss = LOSSES.get(method, (0.0, None))
    *_, network = bare(task_of(rows), recipe, weight, loss, HEADS.get(method), tuned=tuned)
    return network.eval()


if __name__ == "__main__":
    name = sys.argv.pop(1)
    made: dict[str, Callable[[str], Train]] = {
        "equida": lambda method: partial(ours, method),
        "tuned": lambda method: partial(loop, method, True),
        "naive": lambda method: partial(loop, method, False),
    }
    serve(
        {method: made[name](method) for method in METHODS},
        "equida" if name == "equida" else "torch",
    )
