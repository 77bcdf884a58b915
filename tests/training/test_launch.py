"""What a run is launched with."""

import logging
from typing import Any

import pytest
import torch
from lightning_fabric import Fabric

from equida.data import Task
from equida.training.config import RunConfig
from equida.training.loop import train
from equida.training.processes import AnyFabric, OneProcess, make_fabric
from equida.training.recipe import Recipe


@pytest.mark.parametrize(("accelerator", "backend"), [("cpu", "gloo"), ("gpu", "nccl")])
def test_what_processes_talk_by(
    accelerator: str, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Fabric chooses; no group is started, so that the GPUs may be imagined ones."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    fabric: Any = make_fabric(accelerator, 2)
    assert fabric.strategy._get_process_group_backend() == backend


def test_a_run_without_fabric_is_the_run_with_it(task: Task) -> None:
    """Bit for bit, with dropout, a clipped gradient and several batches for each step."""
    recipe = Recipe(
        iterations=12, batch_size=8, bottleneck=6, evaluate_every=4, clip=0.05, accumulate=2
    )

    def trained(fabric: AnyFabric) -> dict[str, torch.Tensor]:
        return train(RunConfig("dann", recipe), task, fabric=fabric).built.objective.state_dict()

    alone, by_fabric = trained(OneProcess()), trained(Fabric(accelerator="cpu", devices=1))
    assert alone.keys() == by_fabric.keys()
    assert all(alone[name].equal(by_fabric[name]) for name in alone)


def test_fabric_prints_no_banners() -> None:
    logger = logging.getLogger("lightning_fabric")
    logger.setLevel(logging.INFO)  # as its import leaves it
    make_fabric("cpu", precision="64-true")
    assert not logger.isEnabledFor(logging.INFO)


def test_fabric_is_left_out_on_one_cpu_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(make_fabric("cpu"), OneProcess)
    assert isinstance(make_fabric("cpu", precision="64-true"), Fabric)
    assert isinstance(make_fabric("cpu", 2), Fabric)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert isinstance(make_fabric("auto"), Fabric)
    assert isinstance(make_fabric("cpu"), OneProcess)
