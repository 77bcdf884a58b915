"""When CDAN randomises, and what entropy conditioning changes."""

import pytest
import torch
from torch import Tensor, nn

from equida.methods import Output, build_method
from equida.methods.cdan import CDAN


@pytest.mark.parametrize(
    ("features", "classes", "width"), [(256, 15, 3840), (256, 16, 1024), (256, 31, 1024)]
)
def test_the_map_is_randomised_from_4096_dimensions_on(
    features: int, classes: int, width: int
) -> None:
    method = build_method("cdan", features, classes, nn.Linear(features, classes))
    assert isinstance(method, CDAN)
    first = method.discriminator[0]
    assert isinstance(first, nn.Linear)
    assert first.in_features == width
    buffers = {name: tuple(buffer.shape) for name, buffer in method.named_buffers()}
    expected = {"map.by_feature": (features, 1024), "map.by_class": (classes, 1024)}
    assert buffers == (expected if width == 1024 else {})


def logits_gradient(entropy: bool, progress: float) -> Tensor:
    torch.manual_seed(0)
    method = build_method(
        "cdan", 6, 3, nn.Linear(6, 3), {"entropy": entropy, "dropout": 0.0, "width": 8}
    )
    logits = torch.randn(4, 3, requires_grad=True)
    output = Output(torch.randn(4, 6), logits)
    terms = method(output, torch.zeros(4, dtype=torch.int64), output, progress)
    (gradient,) = torch.autograd.grad(terms["domain"], logits, allow_unused=True)
    return torch.zeros(4, 3) if gradient is None else gradient


def test_only_entropy_conditioning_hands_a_gradient_to_the_predictions() -> None:
    assert not logits_gradient(entropy=False, progress=0.5).any()
    assert logits_gradient(entropy=True, progress=0.5).any()
    assert not logits_gradient(entropy=True, progress=0.0).any()
