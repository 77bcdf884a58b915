import pytest
import torch

from equida.dropout import Dropout


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_dropout_zeroes_a_share_and_scales_the_rest(dtype: torch.dtype) -> None:
    """The share of zeros of 100,000 numbers is within 5 standard deviations of p."""
    torch.manual_seed(0)
    layer = Dropout(0.2)
    x = torch.full((100, 1000), 2.0, dtype=dtype, requires_grad=True)
    dropped = layer(x)
    assert set(dropped.detach().unique().tolist()) == {0.0, 2.5}
    share = float((dropped == 0).double().mean())
    assert share == pytest.approx(0.2, abs=5 * (0.2 * 0.8 / 1e5) ** 0.5)
    (gradient,) = torch.autograd.grad(dropped.sum(), x)
    assert gradient.equal(dropped.detach() / 2.0)
    assert layer.eval()(x).equal(x)


def test_everything_may_be_dropped() -> None:
    assert not Dropout(1.0)(torch.ones(3)).any()
