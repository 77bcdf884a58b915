"""Gradient accumulation: four parts of 36 rows instead of a batch of 144 that does not fit.

The mean of a batch loss over the parts is another loss. Its exact gradient needs a second forward
pass, but never more memory than one part: first the logits of all parts without a graph, then the
loss of all of them, then backward through one part at a time.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from equida.losses import bnm, cwsm, nsm

CLASSES, PARTS = 31, 4
Loss = Callable[[Tensor], Tensor]


def mean_over_parts(network: nn.Module, loss: Loss, parts: list[Tensor]) -> None:
    """What accumulation usually does; right for cross-entropy, not for a loss of the batch."""
    for x in parts:
        (loss(network(x)) / len(parts)).backward()


def of_the_batch(network: nn.Module, loss: Loss, parts: list[Tensor]) -> None:
    """The gradient of the whole batch, part by part."""
    with torch.no_grad():
        logits = [network(x) for x in parts]
    together = torch.cat(logits).requires_grad_()
    (by_logits,) = torch.autograd.grad(loss(together), together)
    for x, gradient in zip(parts, by_logits.split([len(z) for z in logits]), strict=True):
        network(x).backward(gradient)


def of_one_part(network: nn.Module, loss: Loss, parts: list[Tensor]) -> None:
    """What the other two are compared with, where there is memory for it."""
    loss(network(torch.cat(parts))).backward()


def gradient(run: Callable[[nn.Module, Loss, list[Tensor]], None], loss: Loss) -> Tensor:
    network.zero_grad()
    run(network, loss, parts)
    return torch.cat([p.grad.flatten() for p in network.parameters() if p.grad is not None])


torch.manual_seed(0)
network = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, CLASSES)).double()
labels = torch.arange(144) % CLASSES
rows = 3.0 * torch.randn(CLASSES, 64).double()[labels] + torch.randn(144, 64).double()
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for _ in range(300):  # so that the predictions are like those in the middle of a training
    optimizer.zero_grad()
    nn.functional.cross_entropy(network(rows), labels).backward()
    optimizer.step()
parts = list((rows + 2.0 * torch.randn(144, 64).double()).chunk(PARTS))

print("of the gradient of the batch: length and cosine, mean over parts; error, logits first")
for loss in (nsm, bnm, cwsm):
    whole = gradient(of_one_part, loss)
    mean = gradient(mean_over_parts, loss)
    exact = gradient(of_the_batch, loss)
    ratio = float(mean.norm() / whole.norm())
    cosine = float(torch.cosine_similarity(mean, whole, 0))
    error = float((exact - whole).abs().max())
    print(f"{loss.__name__:6} {ratio:8.2f} {cosine:8.3f} {error:10.1e}")
