"""Trains every registered method on two gloo processes; started by test_distributed.

Usage: two_processes.py OUT. Writes, for each method, the weights after one and after ten steps with
the gather, and after ten without it, into OUT as .safetensors files.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from lightning_fabric import Fabric
from safetensors.torch import save_file

from equida.data import Task, array_domain, make_task
from equida.methods import METHODS, configure
from equida.training import objective
from equida.training.config import RunConfig
from equida.training.loop import train
from equida.training.recipe import Recipe

CLASSES = 5


def toy_task() -> Task:
    """Five blobs in eight dimensions, and the same ones moved."""
    random = np.random.default_rng(0)
    centres = 2.0 * random.normal(size=(CLASSES, 8))
    labels = np.arange(60) % CLASSES
    source = centres[labels] + random.normal(size=(60, 8))
    target = centres[labels] + 0.7 + random.normal(size=(60, 8))
    return make_task(
        array_domain(source, labels, name="source"), array_domain(target, labels, name="target")
    )


def config_of(method: str, steps: int) -> RunConfig:
    """No dropout and no batch normalisation: both look at the share of a process by design."""
    recipe = Recipe(
        iterations=steps,
        batch_size=12,
        learning_rate=0.01,
        bottleneck=6,
        bottleneck_norm=False,
        dropout=0.0,
        precision="64-true",
    )
    (settings,) = configure(method).values()
    off = {"dropout": 0.0} if hasattr(settings, "dropout") else {}
    return RunConfig(method, recipe, overrides=off)


def weights(method: str, steps: int, fabric: Fabric) -> dict[str, torch.Tensor]:
    trained = train(config_of(method, steps), toy_task(), fabric=fabric)
    return {name: value.clone() for name, value in trained.built.state().items()}


def work(fabric: Fabric, out: Path) -> None:
    torch.set_num_threads(1)
    gather = vars(objective)["gather"]
    for method in METHODS:
        kept = {"1": weights(method, 1, fabric), "10": weights(method, 10, fabric)}
        vars(objective)["gather"] = lambda tensor: tensor
        kept["apart"] = weights(method, 10, fabric)
        vars(objective)["gather"] = gather
        if fabric.is_global_zero:
            for kind, state in kept.items():
                save_file(state, out / f"{method}-{kind}.safetensors")


if __name__ == "__main__":
    Fabric(accelerator="cpu", devices=2, strategy="ddp_spawn", precision="64-true").launch(
        work,  # type: ignore[arg-type]
        Path(sys.argv[1]),
    )
