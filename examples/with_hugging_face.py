"""Hugging Face Trainer: NSM in `compute_loss`, on digits that another scanner has blurred.

Losses take what a model returns, an object with `.logits`. `global_batch` changes nothing in one
process; under `accelerate launch` it lets NSM see the whole batch.
"""

import tempfile
from importlib.util import find_spec
from typing import Any

import torch
from sklearn.datasets import load_digits
from torch import Tensor
from torch.nn import functional as F
from torch.utils.data import Dataset

from equida import global_batch
from equida.losses import nsm
from equida.torchvision_ops import ensure_operators

if find_spec("torchvision"):
    ensure_operators()  # transformers imports it; its CUDA build fails beside a CPU-only torch
from transformers import (
    Trainer,
    TrainingArguments,
    ViTConfig,
    ViTForImageClassification,
)
from transformers.utils import logging


class Pairs(Dataset[dict[str, Tensor]]):
    """A source image with its label, and a target image without one."""

    def __init__(self, x_s: Tensor, y: Tensor, x_t: Tensor) -> None:
        self.x_s, self.y, self.x_t = x_s, y, x_t

    def __len__(self) -> int:
        return len(self.x_s)

    def __getitem__(self, i: int) -> dict[str, Tensor]:
        other = int(torch.randint(len(self.x_t), ()))
        return {"pixel_values": self.x_s[i], "labels": self.y[i], "target": self.x_t[other]}


class AdaptingTrainer(Trainer):
    """Adds a term of target predictions to the model's own loss."""

    trade_off = 0.0

    def compute_loss(self, model: Any, inputs: dict[str, Tensor], *_: Any, **__: Any) -> Tensor:
        target = inputs.pop("target")
        loss: Tensor = model(**inputs).loss
        return loss + self.trade_off * global_batch(nsm)(model(pixel_values=target))


def adapt(trade_off: float, seed: int, folder: str) -> float:
    """Accuracy on the blurred half after training on the sharp half; 0 leaves NSM out."""
    torch.manual_seed(seed)
    pixels, labels = map(torch.from_numpy, load_digits(return_X_y=True))
    x, y = pixels.float().view(-1, 1, 8, 8) / 16, labels
    order = torch.randperm(len(x))
    source, target = order[: len(x) // 2], order[len(x) // 2 :]
    x[target] = F.avg_pool2d(x[target], 3, stride=1, padding=1)

    model = ViTForImageClassification(
        ViTConfig(
            image_size=8, patch_size=4, num_channels=1, num_labels=10,
            hidden_size=48, intermediate_size=96, num_hidden_layers=1, num_attention_heads=2,
        )
    )  # fmt: skip
    arguments = TrainingArguments(
        output_dir=folder,
        per_device_train_batch_size=36,
        num_train_epochs=10,
        learning_rate=5e-3,
        remove_unused_columns=False,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
        seed=seed,
    )
    trainer = AdaptingTrainer(
        model, arguments, train_dataset=Pairs(x[source], y[source], x[target])
    )
    trainer.trade_off = trade_off
    trainer.train()
    model.eval()
    with torch.no_grad():
        return float((model(x[target]).logits.argmax(1) == y[target]).float().mean())


logging.set_verbosity_error()
torch.set_num_threads(1)  # batches this small are slower on many
with tempfile.TemporaryDirectory() as folder:
    for trade_off in (0.0, 2.0):
        print(f"trade-off {trade_off}: {100 * adapt(trade_off, 0, folder):.1f} %")
