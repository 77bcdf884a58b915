import pytest
import torch
from torch import nn

from equida.models.network import Network


def test_features_are_those_the_classifier_sees() -> None:
    network = Network(nn.Identity(), 5, 3, bottleneck=4).eval()
    features, logits = network(torch.randn(2, 5))
    assert features.shape == (2, 4)
    assert logits.equal(network.classifier(features))


def test_without_bottleneck_features_are_the_backbones() -> None:
    network = Network(nn.Identity(), 5, 3, bottleneck=0, dropout=0.5)
    x = torch.randn(2, 5)
    assert network(x)[0].equal(x)
    assert network.features == 5


@pytest.mark.parametrize(("init", "spread"), [("kaiming", (2 / 2000) ** 0.5), ("xavier", 0.0298)])
def test_initial_weights_have_the_variance_of_their_rule(init: str, spread: float) -> None:
    """kaiming: sqrt(2 / inputs); xavier: sqrt(2 / (inputs + outputs)); biases are zero."""
    torch.manual_seed(0)
    network = Network(nn.Identity(), 2000, 250, init=init)  # type: ignore[arg-type]
    assert network.classifier.weight.std().item() == pytest.approx(spread, rel=0.01)
    assert not network.classifier.bias.any()


def test_what_is_frozen_whole_stays_in_evaluation_mode() -> None:
    backbone = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 4), nn.BatchNorm1d(4))
    network = Network(backbone, 4, 2, bottleneck=3)
    backbone[1].requires_grad_(False)
    network.train()
    assert [module.training for module in backbone] == [True, False, True, True]
    assert network.bottleneck.training
    backbone.requires_grad_(False)
    before = {name: value.clone() for name, value in backbone.state_dict().items()}
    network.train()(torch.randn(8, 4))
    assert not backbone.training
    assert all(value.equal(before[name]) for name, value in backbone.state_dict().items())


def separate(network: Network, source: torch.Tensor, target: torch.Tensor) -> list[torch.Tensor]:
    return [*network(source), *network(target)]


def test_rows_of_both_domains_share_a_matrix_product_and_are_normalised_apart() -> None:
    torch.manual_seed(0)
    source, target = torch.randn(6, 5).double(), torch.randn(7, 5).double() + 3.0
    together = Network(nn.Identity(), 5, 3, bottleneck=4, dropout=0.3).double()
    apart = Network(nn.Identity(), 5, 3, bottleneck=4, dropout=0.3).double()
    apart.load_state_dict(together.state_dict())
    products: list[int] = []
    together.bottleneck[0].register_forward_hook(lambda _, rows, __: products.append(len(rows[0])))
    torch.manual_seed(1)
    (first, second), (third, fourth) = together.both(source, target)
    torch.manual_seed(1)
    for found, expected in zip(
        (first, second, third, fourth), separate(apart, source, target), strict=True
    ):
        assert found.allclose(expected, rtol=1e-12, atol=1e-12)
    assert products == [13]
    for name, value in together.state_dict().items():
        assert value.allclose(apart.state_dict()[name], rtol=1e-12, atol=1e-12), name


def test_images_pass_the_backbone_one_domain_at_a_time() -> None:
    torch.manual_seed(0)
    source, target = torch.randn(6, 4), torch.randn(6, 4) + 3.0
    seen: list[int] = []
    backbone = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
    backbone.register_forward_hook(lambda _, rows, __: seen.append(len(rows[0])))
    network = Network(backbone, 4, 2, bottleneck=3, dropout=0.0)
    outputs = network.both(source, target)
    assert seen == [6, 6]
    expected = separate(network, source, target)
    for found, other in zip([*outputs[0], *outputs[1]], expected, strict=True):
        assert found.equal(other)
