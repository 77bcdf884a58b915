"""Lightning: one line in `training_step`, on digits that another scanner has blurred.

`global_batch` changes nothing in one process; with `Trainer(devices=4)` it lets NSM see the whole
batch, so that four processes have the gradient of one.
"""

import logging
import warnings
from importlib.util import find_spec

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

from equida import global_batch
from equida.losses import nsm
from equida.torchvision_ops import ensure_operators

if find_spec("torchvision"):
    ensure_operators()  # Lightning imports it, and its CUDA build fails beside a CPU-only torch
import pytorch_lightning as pl
from pytorch_lightning.utilities import CombinedLoader


class Adapted(pl.LightningModule):
    """A small classifier that adapts to the target while it learns the source."""

    def __init__(self, trade_off: float) -> None:
        super().__init__()
        self.trade_off = trade_off
        self.network = nn.Sequential(
            nn.Flatten(), nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Linear(128, 10)
        )

    def training_step(self, batch: dict[str, list[Tensor]], _: int) -> Tensor:
        (x_s, y), (x_t,) = batch["source"], batch["target"]
        z_s, z_t = self.network(x_s), self.network(x_t)
        return F.cross_entropy(z_s, y) + self.trade_off * global_batch(nsm)(z_t)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.01, momentum=0.9, nesterov=True)


def adapt(trade_off: float, seed: int) -> float:
    """Accuracy on the blurred half after training on the sharp half; 0 leaves NSM out."""
    pl.seed_everything(seed, verbose=False)
    pixels, labels = map(torch.from_numpy, load_digits(return_X_y=True))
    x, y = pixels.float().view(-1, 1, 8, 8) / 16, labels
    order = torch.randperm(len(x))
    source, target = order[: len(x) // 2], order[len(x) // 2 :]
    x[target] = F.avg_pool2d(x[target], 3, stride=1, padding=1)

    loaders = CombinedLoader(
        {
            "source": DataLoader(TensorDataset(x[source], y[source]), 36, shuffle=True),
            "target": DataLoader(TensorDataset(x[target]), 36, shuffle=True),
        },
        mode="max_size_cycle",
    )
    trainer = pl.Trainer(
        accelerator="cpu",
        devices=1,
        max_epochs=12,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    model = Adapted(trade_off)
    trainer.fit(model, loaders)
    model.eval()
    return float((model.network(x[target]).argmax(1) == y[target]).float().mean())


logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
warnings.filterwarnings("ignore", ".*does not have many workers.*")  # the data are in memory
torch.set_num_threads(1)  # batches this small are slower on many
for trade_off in (0.0, 2.0):
    accuracies = torch.tensor([adapt(trade_off, seed) for seed in range(2)])
    print(f"trade-off {trade_off}: {100 * accuracies.mean():.1f} ± {100 * accuracies.std():.1f} %")
