"""Batch normalisation over several GPUs, as far as it can be seen without one."""

import pytest
import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from equida.errors import InputError
from equida.models.backbone import load_backbone
from equida.models.sync_batchnorm import with_shared_statistics


@pytest.mark.parametrize("name", ["tf_efficientnet_lite0", "resnet18", "lenet"])
def test_the_network_computes_what_it_did(name: str) -> None:
    """timm's layers activate, too; in evaluation they work on a CPU."""
    torch.manual_seed(0)
    backbone = load_backbone(name, pretrained=False)
    network = nn.Sequential(backbone.module, nn.BatchNorm1d(backbone.width)).eval()
    images = torch.rand(2, *backbone.input_size)
    with torch.inference_mode():
        before = network(images)
    parameters = {name: id(value) for name, value in network.named_parameters()}
    shared = with_shared_statistics(network)
    norms = [module for module in shared.modules() if isinstance(module, _BatchNorm)]
    assert norms
    assert all(isinstance(norm, nn.SyncBatchNorm) for norm in norms)
    assert {name: id(value) for name, value in shared.named_parameters()} == parameters
    with torch.inference_mode():
        # Older versions of timm add up in another order; a lost activation differs by far more.
        torch.testing.assert_close(shared(images), before, rtol=1e-5, atol=1e-5)


class Activated(nn.BatchNorm1d):
    """A layer that does more than normalise."""


def test_a_layer_that_nobody_knows_is_refused() -> None:
    with pytest.raises(InputError, match="by Activated cannot be shared by several GPUs"):
        with_shared_statistics(nn.Sequential(nn.Linear(2, 2), Activated(2)))
