"""Folded batch norms give the same features, or nothing is folded."""

import pytest
import torch
from torch import Tensor, nn

from equida.models.fuse_batchnorm import fuse_norms


def _trained(module: nn.Module) -> nn.Module:
    """Norms with statistics and weights of their own, as after training."""
    torch.manual_seed(0)
    for part in module.modules():
        if isinstance(part, nn.BatchNorm2d):
            assert part.running_mean is not None
            assert part.running_var is not None
            part.running_mean.normal_()
            part.running_var.uniform_(0.5, 2.0)
            nn.init.normal_(part.weight, 1.0)
            nn.init.normal_(part.bias)
    return module.eval()


def test_a_norm_behind_a_convolution_disappears() -> None:
    layers = [nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1)]
    module = _trained(nn.Sequential(*layers, nn.Flatten()))
    images = torch.randn(4, 3, 9, 9)
    fused = fuse_norms(module, images[:2])
    assert not any(isinstance(part, nn.BatchNorm2d) for part in fused.modules())
    assert isinstance(layers[1], nn.BatchNorm2d)
    assert layers[1] in module.children()
    with torch.inference_mode():
        torch.testing.assert_close(fused(images), module(images), rtol=1e-5, atol=1e-5)


class Twice(nn.Module):
    """A convolution whose output is also used without the norm."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution, self.norm = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)

    def forward(self, images: Tensor) -> Tensor:
        found = self.convolution(images)
        both: Tensor = (self.norm(found) + found).mean((2, 3))
        return both


@pytest.mark.parametrize("module", [Twice(), nn.Sequential(nn.Flatten(), nn.Linear(243, 2))])
def test_where_folding_is_wrong_or_useless_the_network_stays(module: nn.Module) -> None:
    module = _trained(module)
    assert fuse_norms(module, torch.randn(2, 3, 9, 9)) is module


def test_every_norm_of_a_timm_network_is_folded() -> None:
    from equida.models.backbone import load_backbone

    module = _trained(load_backbone("tf_efficientnet_lite0", pretrained=False).module)
    images = torch.randn(2, 3, 64, 64)
    fused = fuse_norms(module, images)
    assert not any(isinstance(part, nn.BatchNorm2d) for part in fused.modules())
