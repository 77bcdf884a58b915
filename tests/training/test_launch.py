"""What a run is launched with."""

from typing import Any

import pytest
import torch

from equida.training.processes import make_fabric


@pytest.mark.parametrize(("accelerator", "backend"), [("cpu", "gloo"), ("gpu", "nccl")])
def test_what_processes_talk_by(
    accelerator: str, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Fabric chooses; no group is started, so that the GPUs may be imagined ones."""
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    strategy: Any = make_fabric(accelerator, 2).strategy
    assert strategy._get_process_group_backend() == backend
