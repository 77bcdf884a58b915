"""LeNet: sizes, layouts, and that it can learn."""

import torch
from torch import nn

from equida.models.lenet import LeNet


def test_flat_rows_and_images_are_the_same() -> None:
    torch.manual_seed(0)
    network, images = LeNet(), torch.rand(3, 1, 28, 28)
    assert torch.equal(network(images), network(images.flatten(1)))


def test_it_has_the_parameters_of_its_widths() -> None:
    """8 filters of 5x5, 24 of 8x5x5, 384 x 128 weights, each with biases."""
    expected = (8 * 25 + 8) + (24 * 8 * 25 + 24) + (384 * 128 + 128)
    assert sum(p.numel() for p in LeNet().parameters()) == expected


def test_memory_layout_does_not_change_what_is_computed() -> None:
    torch.manual_seed(0)
    network, images = LeNet(), torch.rand(4, 1, 28, 28)
    expected = network(images)
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    seen = network(images.contiguous(memory_format=torch.channels_last))
    torch.testing.assert_close(seen, expected, rtol=1e-4, atol=1e-6)


def test_it_learns_two_patterns() -> None:
    torch.manual_seed(0)
    images = torch.rand(32, 1, 28, 28) * 0.2
    labels = torch.arange(32) % 2
    images[labels == 1, :, :14] += 0.5
    network = nn.Sequential(LeNet(), nn.Linear(LeNet.width, 2))
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    for _ in range(30):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(network(images), labels)
        loss.backward()
        optimizer.step()
    assert (network(images).argmax(1) == labels).all()


def test_light_and_dark_strokes_are_the_same() -> None:
    network, images = LeNet(), torch.rand(3, 1, 28, 28)
    torch.testing.assert_close(network(0.4 * images + 0.3), network(images), rtol=0, atol=1e-3)
