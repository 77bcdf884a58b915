"""The head trained by skada: its deep estimators, which are skorch's."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.peer_head import BATCH, OPTIMIZER, WIDTH, Rows, body, decay, discriminator, serve


class Network(nn.Module):
    """The head, with its bottleneck under a name."""

    def __init__(self, rows: Rows) -> None:
        super().__init__()
        self.body, self.classifier = body(rows), nn.Linear(WIDTH, rows.classes)

    def forward(self, x: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        logits: Tensor = self.classifier(self.body(x))
        return logits


class Adversary(nn.Module):
    """Our discriminator behind skada's reversed gradient.

    skada's own ends in a softmax over one output, which is 1 for every sample.
    """

    def __init__(self) -> None:
        super().__init__()
        self.discriminator = discriminator()

    def forward(self, x: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        from skada.deep.modules import GradientReversalLayer

        logits: Tensor = self.discriminator(GradientReversalLayer.apply(x, 1.0))
        return logits


def train(rows: Rows, steps: int, method: Callable[..., Any]) -> Callable[[Tensor], Tensor]:
    """Fit for so many steps; the last epoch is cut short."""
    from skorch.callbacks import Callback, LRScheduler

    class Stop(Callback):  # type: ignore[misc]
        """Ends training after so many steps, as Ctrl-C would: skorch then leaves what it has."""

        done = 0

        def on_batch_end(self, net: Any, training: bool = False, **_: Any) -> None:
            self.done += training
            if self.done == steps:
                raise KeyboardInterrupt

    schedule = LRScheduler(torch.optim.lr_scheduler.LambdaLR, lr_lambda=decay, step_every="batch")
    net = method(
        Network(rows),
        layer_name="body",
        optimizer=torch.optim.SGD,
        **{f"optimizer__{name}": value for name, value in OPTIMIZER.items() if name != "lr"},
        lr=OPTIMIZER["lr"],
        batch_size=BATCH,
        max_epochs=steps,
        train_split=None,
        callbacks=[("stop", Stop()), ("schedule", schedule)],
        verbose=0,
    )
    domains = np.repeat([1, -2], [len(rows.source), len(rows.target)])
    labels = np.concatenate([rows.labels.numpy(), np.full(len(rows.target), -1)])
    net.fit(torch.cat([rows.source, rows.target]).numpy(), labels, sample_domain=domains)
    trained: Network = net.module_.base_module_.eval()
    return trained


def dann(rows: Rows, steps: int) -> Callable[[Tensor], Tensor]:
    from skada.deep import DANN

    def method(module: nn.Module, **named: Any) -> Any:
        loss = nn.BCEWithLogitsLoss()
        # It adds the losses of the two domains, and everybody else here takes their mean.
        return DANN(module, domain_classifier=Adversary(), domain_criterion=loss, reg=0.5, **named)

    return train(rows, steps, method)


def dan(rows: Rows, steps: int) -> Callable[[Tensor], Tensor]:
    from skada.deep import DAN

    return train(rows, steps, DAN)


if __name__ == "__main__":
    serve({"bnm": "skada has no BNM", "dann": dann, "dan": dan}, "skada")
