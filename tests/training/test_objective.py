"""What a step's terms are made of."""

import pytest
import torch
from torch import nn

from equida.methods import build
from equida.models.network import Network
from equida.training.objective import Objective


def objective(method: str, warm_up: float = 0.0) -> Objective:
    torch.manual_seed(0)
    network = Network(nn.Identity(), 6, 3, bottleneck=4, dropout=0.0)
    return Objective(network, build(method, 4, 3, network.classifier), warm_up=warm_up)


def test_the_target_never_enters_source_only() -> None:
    """Not even through the statistics of batch normalisation."""
    seen = {}
    for method in ("source_only", "nsm"):
        module = objective(method)
        for shift in (0.0, 100.0):
            torch.manual_seed(1)
            source, target = torch.randn(8, 6), torch.randn(8, 6) + shift
            module.train()(source, torch.arange(8) % 3, target, 0.5)
        norm = module.network.bottleneck[1]
        assert isinstance(norm, nn.BatchNorm1d)
        assert norm.running_mean is not None
        seen[method] = float(norm.running_mean.abs().max())
    assert seen["source_only"] < 2.0
    assert seen["nsm"] > 2.0


@pytest.mark.parametrize(("progress", "weight"), [(0.0, 0.0), (0.05, 0.5), (0.1, 1.0), (0.7, 1.0)])
def test_the_terms_of_the_method_warm_up_and_cross_entropy_does_not(
    progress: float, weight: float
) -> None:
    torch.manual_seed(1)
    batch = torch.randn(8, 6), torch.arange(8) % 3, torch.randn(8, 6), progress
    plain, warmed = (objective("nsm", share)(*batch) for share in (0.0, 0.1))
    torch.testing.assert_close(warmed["cross_entropy"], plain["cross_entropy"])
    torch.testing.assert_close(warmed["nsm"], weight * plain["nsm"])
