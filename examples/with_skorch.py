"""skorch: NSM in the criterion, on digits that another scanner has blurred.

Rows of both domains are in X; the label of a target row is -1.
"""

import numpy as np
import torch
from sklearn.datasets import load_digits
from skorch import NeuralNetClassifier
from torch import Tensor, nn
from torch.nn import functional as F

from equida.losses import nsm


class AdaptationLoss(nn.Module):
    """Cross-entropy of the rows with a label, and NSM of the others."""

    def __init__(self, trade_off: float) -> None:
        super().__init__()
        self.trade_off = trade_off

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        source = labels >= 0
        return F.cross_entropy(logits[source], labels[source]) + self.trade_off * nsm(
            logits[~source]
        )


def adapt(trade_off: float, seed: int) -> float:
    """Accuracy on the blurred half after training on the sharp half; 0 leaves NSM out."""
    torch.manual_seed(seed)
    pixels, labels = load_digits(return_X_y=True)
    x, y = torch.from_numpy(pixels).float().view(-1, 1, 8, 8) / 16, labels.astype(np.int64)
    target = np.random.default_rng(seed).permutation(len(x)) < len(x) // 2
    x[target] = F.avg_pool2d(x[target], 3, stride=1, padding=1)

    net = NeuralNetClassifier(
        nn.Sequential(
            nn.Flatten(), nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 10)
        ),
        criterion=AdaptationLoss,
        criterion__trade_off=trade_off,
        classes=list(range(10)),
        optimizer=torch.optim.SGD,
        optimizer__momentum=0.9,
        lr=0.01,
        max_epochs=12,
        batch_size=72,
        iterator_train__shuffle=True,
        train_split=None,
        verbose=0,
    )
    net.fit(x.numpy(), np.where(target, -1, y))
    return float((net.predict(x.numpy()[target]) == y[target]).mean())


torch.set_num_threads(1)  # batches this small are slower on many
for trade_off in (0.0, 2.0):
    accuracies = torch.tensor([adapt(trade_off, seed) for seed in range(2)])
    print(f"trade-off {trade_off}: {100 * accuracies.mean():.1f} ± {100 * accuracies.std():.1f} %")
