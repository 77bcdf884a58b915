"""The network that is adapted: backbone, bottleneck, classifier."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from equida.dropout import Dropout

Init = Literal["torch", "kaiming", "xavier"]
Outputs = tuple[Tensor, Tensor]
"""Features and logits of a batch."""


class Network(nn.Module):
    """Features after the bottleneck, and the logits of a linear classifier on them.

    Args:
        backbone: inputs to (batch, width) vectors; `nn.Identity` where rows are features.
        width: how many features the backbone has.
        classes: how many classes.
        bottleneck: width of the bottleneck, linear - batch normalisation - ReLU - dropout; 0: none.
        normalize: batch normalisation in the bottleneck.
        relu: ReLU in the bottleneck.
        dropout: share of features dropped in training.
        init: how the linear layers start: "torch" (its default), "kaiming" (normal, as in the BNM
            authors' network) or "xavier" (normal, as in CDAN's); the latter two with bias 0.
    """

    def __init__(
        self,
        backbone: nn.Module,
        width: int,
        classes: int,
        *,
        bottleneck: int = 0,
        normalize: bool = True,
        relu: bool = True,
        dropout: float = 0.5,
        init: Init = "torch",
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.features = bottleneck or width
        layers: list[nn.Module] = []
        if bottleneck:
            layers.append(nn.Linear(width, bottleneck))
            layers += [nn.BatchNorm1d(bottleneck)] if normalize else []
            layers += [nn.ReLU()] if relu else []
            layers += [Dropout(dropout)] if dropout else []
        self.bottleneck = nn.Sequential(*layers)
        self.classifier = nn.Linear(self.features, classes)
        for module in (*self.bottleneck, self.classifier):
            if isinstance(module, nn.Linear):
                _initialise(module, init)

    def train(self, mode: bool = True) -> "Network":
        """Training mode, except for the parts of the backbone whose parameters are all frozen.

        Frozen means unchanged: their running statistics stay as they are, and nothing is dropped.
        """
        super().train(mode)
        for module in self.backbone.modules():
            parameters = list(module.parameters())
            if parameters and not any(parameter.requires_grad for parameter in parameters):
                module.eval()
        return self

    def forward(self, x: Tensor, sizes: Sequence[int] = ()) -> tuple[Tensor, Tensor]:
        """Features and logits of one batch, or of several batches one after the other.

        Args:
            x: the samples.
            sizes: of the batches in `x`, where there are several: each is normalised by itself.
        """
        x = self.backbone(x)
        for layer in self.bottleneck:
            if sizes and isinstance(layer, _BatchNorm):
                x = torch.cat([layer(batch) for batch in x.split(sizes)])
            else:
                x = layer(x)
        return x, self.classifier(x)

    def both(self, source: Tensor, target: Tensor) -> tuple[Outputs, Outputs]:
        """Features and logits of a source batch, and those of the target batch that follows it.

        Rows of features pass each linear layer together: a step spends most of its time on the
        gradient of the first one, which is then computed once and not twice. Batches of images pass
        the backbone one by one, because it may normalise them anywhere.
        """
        if not isinstance(self.backbone, nn.Identity):
            return self(source), self(target)
        sizes = [len(source), len(target)]
        features, logits = self(torch.cat([source, target]), sizes)
        first, second = zip(features.split(sizes), logits.split(sizes), strict=True)
        return first, second


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Put the module into evaluation mode, and back into its former mode afterwards."""
    training = module.training
    module.eval()
    try:
        yield
    finally:
        module.train(training)


def _initialise(layer: nn.Linear, init: Init) -> None:
    if init == "torch":
        return
    if init == "kaiming":
        nn.init.kaiming_normal_(layer.weight)
    else:
        nn.init.xavier_normal_(layer.weight)
    nn.init.zeros_(layer.bias)
