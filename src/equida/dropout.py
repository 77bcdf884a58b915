"""Dropout, for every network here."""

import torch
from torch import Tensor, nn


class Dropout(nn.Dropout):
    """Dropout by uniform random numbers, which is three times as fast on many processors.

    On a CPU that is not Intel's, torch draws Bernoulli numbers one by one.
    """

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or x.device.type != "cpu" or self.p == 1.0:
            return super().forward(x)
        kept = torch.rand(x.shape).ge_(self.p)
        return x * kept.to(x.dtype).div_(1.0 - self.p)
