"""LeNet for 28 x 28 digits."""

import torch.nn.functional as F
from torch import Tensor, nn


class LeNet(nn.Module):
    """Features of grey digits, (batch, 1, 28, 28) or flat (batch, 784) to (batch, 128).

    Two 5 x 5 convolutions of 8 and 24 channels, each halved by max pooling, and one hidden layer:
    the layout of LeCun et al. 1998. The digit tasks of domain adaptation often use 20, 50 and 500;
    these widths, multiples of 8 for the sake of vector units, take a quarter of that time. Each
    image is brought to mean 0 and variance 1 first, so that strokes may be light or dark.

    >>> import torch
    >>> LeNet()(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 128])
    """

    width = 128
    input_size = (1, 28, 28)

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 8, 5),
            nn.MaxPool2d(2),
            nn.ReLU(),
            nn.Conv2d(8, 24, 5),
            nn.MaxPool2d(2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(24 * 4 * 4, self.width),
            nn.ReLU(),
        )

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.layers(F.instance_norm(images.reshape(-1, *self.input_size)))
        return features
