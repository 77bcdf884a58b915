"""One line in a training loop of your own: NSM on digits that another scanner has blurred."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F

from equida.losses import nsm


def adapt(trade_off: float, seed: int) -> float:
    """Accuracy on the blurred half after training on the sharp half; 0 leaves NSM out."""
    torch.manual_seed(seed)
    pixels, labels = map(torch.from_numpy, load_digits(return_X_y=True))
    x, y = pixels.float().view(-1, 1, 8, 8) / 16, labels
    order = torch.randperm(len(x))
    source, target = order[: len(x) // 2], order[len(x) // 2 :]
    x[target] = F.avg_pool2d(x[target], 3, stride=1, padding=1)

    network = nn.Sequential(
        nn.Flatten(), nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 10)
    )
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9, nesterov=True)
    for _ in range(300):
        s, t = (part[torch.randint(len(part), (36,))] for part in (source, target))
        z_s, z_t = network(x[s]), network(x[t])
        loss = F.cross_entropy(z_s, y[s]) + trade_off * nsm(z_t)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    network.eval()
    return float((network(x[target]).argmax(1) == y[target]).float().mean())


torch.set_num_threads(1)  # batches this small are slower on many
for trade_off in (0.0, 2.0):
    accuracies = torch.tensor([adapt(trade_off, seed) for seed in range(3)])
    print(f"trade-off {trade_off}: {100 * accuracies.mean():.1f} ± {100 * accuracies.std():.1f} %")
