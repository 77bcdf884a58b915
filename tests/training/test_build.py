"""What a config and a task are turned into."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from tests.small_data import SHORT
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

import equida
from equida.data import Task
from equida.errors import InputError
from equida.training.build import build_run, make_objective
from equida.training.config import RunConfig
from equida.training.recipe import Recipe, recipe


@pytest.mark.parametrize("shape", [(3, 28, 28), (1, 56, 56), (28, 28)])
def test_samples_that_the_backbone_cannot_take(shape: tuple[int, ...]) -> None:
    config = RunConfig("nsm", recipe("digits"), backbone="lenet")
    with pytest.raises(InputError, match=r"samples are of shape .* takes \(1, 28, 28\)"):
        make_objective(config, 10, shape)


def test_the_network_of_the_digits_has_ten_classes() -> None:
    config = RunConfig("nsm", recipe("digits"), backbone="lenet")
    objective, backbone = make_objective(config, 10, (1, 28, 28))
    assert backbone is not None
    assert objective.network.classifier.weight.shape == (10, backbone.width)


@pytest.mark.parametrize(
    ("device", "processes", "kind"),
    [("cuda", 2, nn.SyncBatchNorm), ("cuda", 1, nn.BatchNorm1d), ("cpu", 2, nn.BatchNorm1d)],
)
def test_several_gpus_share_the_statistics_of_batch_normalisation(
    device: str, processes: int, kind: type[nn.Module], task: Task
) -> None:
    """Built for devices that are not here: nothing is put on them yet."""
    config = RunConfig("cdan+nsm", Recipe(bottleneck=4, batch_size=4))
    fabric = SimpleNamespace(device=torch.device(device), world_size=processes)
    built = build_run(config, task, fabric)  # type: ignore[arg-type]
    norms = [m for m in built.objective.modules() if isinstance(m, _BatchNorm)]
    assert norms
    assert {type(norm) for norm in norms} == {kind}
    stepped = {id(p) for group in built.optimizer.param_groups for p in group["params"]}
    assert stepped == {id(p) for p in built.objective.parameters() if p.requires_grad}


@pytest.mark.usefixtures("own_folder")
def test_a_source_with_one_sample_a_class_cannot_hold_any_out() -> None:
    """Before: a traceback at the first evaluation."""
    rows = np.random.default_rng(0).normal(size=(30, 4))
    with pytest.raises(InputError, match=r"holdout is 0\.2, which keeps no sample of source apart"):
        equida.adapt(
            (rows, np.arange(30)), rows, recipe_params={**SHORT, "holdout": 0.2}, progress=False
        )
