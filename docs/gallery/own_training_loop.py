"""
One line in your own training loop
==================================

The losses take logits and return a scalar. Nothing else of equida is needed: add the line, keep the
loop.
"""

import matplotlib.pyplot as plt
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

from equida.losses import nsm

torch.set_num_threads(1)
pixels, labels = map(torch.from_numpy, load_digits(return_X_y=True))
x, y = pixels.float().view(-1, 1, 8, 8) / 16, labels
order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
source, target = order[: len(x) // 2], order[len(x) // 2 :]
x[target] = F.avg_pool2d(x[target], 3, stride=1, padding=1)  # another scanner blurs


def train(trade_off, steps=300):
    """Target accuracy after every 25 steps."""
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Flatten(), nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 10)
    )
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9, nesterov=True)
    curve = []
    for step in range(steps):
        s, t = (part[torch.randint(len(part), (36,))] for part in (source, target))
        z_s, z_t = network(x[s]), network(x[t])
        loss = F.cross_entropy(z_s, y[s]) + trade_off * nsm(z_t)  # <- the line
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 25 == 24:
            network.eval()
            curve.append(float((network(x[target]).argmax(1) == y[target]).float().mean()))
            network.train()
    return curve


for trade_off, name in ((0.0, "source cross-entropy alone"), (2.0, "with 2.0 * nsm(z_t)")):
    plt.plot(range(25, 301, 25), train(trade_off), label=name)
plt.xlabel("step")
plt.ylabel("accuracy on the blurred digits")
plt.legend()
plt.show()
