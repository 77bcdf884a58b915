"""The network of the digit tasks."""

import torch

from equida.models.lenet import LeNet


def test_sizes_are_those_of_the_layout() -> None:
    network = LeNet()
    convolutions = (8 * 5 * 5 + 8) + (24 * 8 * 5 * 5 + 24)
    hidden = 24 * 4 * 4 * 128 + 128
    assert sum(p.numel() for p in network.parameters()) == convolutions + hidden
    assert network(torch.zeros(3, 1, 28, 28)).shape == (3, LeNet.width)


def test_flat_rows_and_images_are_the_same_to_it() -> None:
    network = LeNet()
    images = torch.rand(2, 1, 28, 28, generator=torch.Generator().manual_seed(0))
    assert torch.equal(network(images), network(images.flatten(1)))


def test_memory_layout_does_not_change_what_is_computed() -> None:
    torch.manual_seed(0)
    network = LeNet()
    images = torch.rand(4, 1, 28, 28)
    expected = network(images)
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    seen = network(images.contiguous(memory_format=torch.channels_last))
    torch.testing.assert_close(seen, expected, rtol=1e-4, atol=1e-6)


def test_every_weight_learns() -> None:
    torch.manual_seed(0)
    network = LeNet()
    network(torch.rand(8, 1, 28, 28)).sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert float(parameter.grad.abs().sum()) > 0, name
