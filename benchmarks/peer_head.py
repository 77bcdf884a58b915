"""What every peer trains on: rows, head, optimiser and discriminator. It knows torch alone.

A peer's script runs in an environment that has the peer and lacks equida:
`python -m benchmarks.peer_NAME ROWS.npz STEPS SEED METHOD ...` prints a line of JSON for each
method.
"""

import json
import sys
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

WIDTH, BATCH = 256, 36
"""Of the bottleneck, and samples of each domain in a batch."""
OPTIMIZER = {"lr": 0.01, "momentum": 0.9, "nesterov": True, "weight_decay": 1e-3}
"""Arguments of torch's SGD."""


class Rows(NamedTuple):
    """The data; the target's labels are for accuracy alone."""

    source: Tensor
    labels: Tensor
    target: Tensor
    target_labels: Tensor

    @property
    def classes(self) -> int:
        return int(self.labels.max()) + 1

    @classmethod
    def load(cls, file: Path) -> "Rows":
        with np.load(file) as stored:
            parts = (stored["source_x"], stored["source_y"], stored["target_x"], stored["target_y"])
        x, y, other, others = map(torch.from_numpy, parts)
        return cls(x.float(), y.long(), other.float(), others.long())

    def save(self, file: Path) -> None:
        names = ("source_x", "source_y", "target_x", "target_y")
        np.savez(file, **{n: part.numpy() for n, part in zip(names, self, strict=True)})  # type: ignore[arg-type]


Train = Callable[[Rows, int], Callable[[Tensor], Tensor]]
"""Trains for so many steps, and returns a function from rows to logits."""


def body(rows: Rows) -> nn.Module:
    return nn.Sequential(
        nn.Linear(rows.source.shape[1], WIDTH), nn.BatchNorm1d(WIDTH), nn.ReLU(), nn.Dropout(0.5)
    )


def discriminator() -> nn.Module:
    return nn.Sequential(
        nn.Linear(WIDTH, 1024), nn.ReLU(), nn.Dropout(0.5),
        nn.Linear(1024, 1024), nn.ReLU(), nn.Dropout(0.5),
        nn.Linear(1024, 1), nn.Flatten(0),
    )  # fmt: skip


def decay(step: int) -> float:
    """What the learning rate is multiplied by in a step."""
    return float((1 + 0.001 * step) ** -0.75)


def serve(methods: Mapping[str, Train | str], package: str) -> None:
    """Train by the methods that the command line names, and print how each of them went.

    Args:
        methods: by name, how to train, or why that is not possible.
        package: the distribution whose version is printed.
    """
    file, steps, seed, *names = sys.argv[1:]
    torch.set_num_threads(1)
    rows = Rows.load(Path(file))
    for name in names:
        train = methods[name]
        found: dict[str, Any] = {"method": name, "version": version(package)}
        if isinstance(train, str):
            print(json.dumps(found | {"reason": train}), flush=True)
            continue
        _seed(int(seed))
        train(rows, 2)  # imports what only training imports
        _seed(int(seed))
        start = time.perf_counter(), time.process_time()
        logits = train(rows, int(steps))
        end = time.perf_counter(), time.process_time()
        with torch.inference_mode():
            right = logits(rows.target).argmax(1) == rows.target_labels
        found |= {"wall": end[0] - start[0], "processor": end[1] - start[1]}
        print(json.dumps(found | {"accuracy": float(right.float().mean())}), flush=True)


def _seed(seed: int) -> None:
    torch.manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002  # pytorch-adapt draws by this generator
