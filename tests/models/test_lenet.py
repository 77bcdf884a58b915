"""LeNet: sizes, and that it can learn."""

import torch
from torch import nn

from equida.models.lenet import LeNet


def test_flat_rows_and_images_are_the_same() -> None:
    torch.manual_seed(0)
    network, images = LeNet(), torch.rand(3, 1, 28, 28)
    assert torch.equal(network(images), network(images.flatten(1)))


def test_it_has_the_parameters_of_the_published_widths() -> None:
    """20 filters of 5x5, 50 of 20x5x5, 800 x 500 weights, each with biases."""
    expected = (20 * 25 + 20) + (50 * 20 * 25 + 50) + (800 * 500 + 500)
    assert sum(p.numel() for p in LeNet().parameters()) == expected


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
