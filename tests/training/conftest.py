"""A toy task in memory, and runs on it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests import small_data

from equida.data import Task, array_domain, make_task
from equida.training.config import RunConfig
from equida.training.loop import train
from equida.training.processes import AnyFabric, make_fabric
from equida.training.recipe import Recipe
from equida.training.recorder import Observer, Trained

Run = Callable[..., Trained]


def blobs(samples: int = 48, labelled: bool = True) -> Task:
    """Four blobs in eight dimensions, and the same ones moved."""
    source, target, labels = small_data.blobs(samples)
    return make_task(
        array_domain(source, labels, name="source"),
        array_domain(target, labels if labelled else None, name="target"),
    )


@pytest.fixture
def task() -> Task:
    return blobs()


@pytest.fixture
def unlabelled() -> Task:
    return blobs(labelled=False)


@pytest.fixture(scope="session")
def fabric() -> AnyFabric:
    """What a run has by default on a machine without a GPU."""
    return make_fabric("cpu")


@pytest.fixture
def run(task: Task, fabric: AnyFabric) -> Run:
    """Train on the toy task, with the recipe's fields as keywords."""

    def work(
        method: str = "nsm",
        *,
        on: Task = task,
        folder: Path | None = None,
        observers: tuple[Observer, ...] = (),
        overrides: dict[str, Any] | None = None,
        **fields: Any,
    ) -> Trained:
        small: dict[str, Any] = {"iterations": 12, "batch_size": 8, "bottleneck": 6}
        small |= {"evaluate_every": 4, "log_every": 2, "learning_rate": 0.01}
        recipe = Recipe(**(small | fields))
        plain = recipe.precision == "32-true"
        given = fabric if plain else make_fabric("cpu", precision=recipe.precision)
        config = RunConfig(method, recipe, overrides=overrides or {})
        return train(config, on, folder=folder, fabric=given, observers=observers)

    return work
