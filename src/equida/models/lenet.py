"""LeNet for 28 x 28 digits."""

from torch import Tensor, nn


class LeNet(nn.Module):
    """Features of grey digits, (batch, 1, 28, 28) or flat (batch, 784) to (batch, 500).

    Two 5 x 5 convolutions of 20 and 50 channels, each halved by max pooling, and one hidden layer:
    the network of LeCun et al. 1998 in the widths that the digit tasks of domain adaptation use.

    >>> import torch
    >>> LeNet()(torch.zeros(2, 1, 28, 28)).shape
    torch.Size([2, 500])
    """

    width = 500
    input_size = (1, 28, 28)

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 20, 5),
            nn.MaxPool2d(2),
            nn.ReLU(),
            nn.Conv2d(20, 50, 5),
            nn.MaxPool2d(2),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(50 * 4 * 4, self.width),
            nn.ReLU(),
        )

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.layers(images.reshape(-1, *self.input_size))
        return features
