"""`equida features` against a bare `model(x)` loop over tensors that are ready in memory.

All run in one process with the same threads and batch size, in turns; a ratio is images per second
with files read, decoded, transformed and features written, over images per second of the loop. The
loop is the strongest one: images in channels_last, batch norms folded into convolutions, inference
mode. Beside it stands the ratio by the processor's time, which other work on the machine changes
less; threads that wait by spinning count there. The last row is about the limit of arithmetic: as
many operations as the network has, in 3 x 3 convolutions of 256 channels, which PyTorch computes at
nearly the peak of the processor. (Products of matrices are no limit: on processors of AMD their
library uses instructions of half the width.) The files are made here, in the sizes and proportions
of Office-31; ResNet-50 has random weights, which take as long as others.
"""

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.bars import judged, noted
from equida.data.domain import ImageDomain
from equida.data.feature_cache import ExtractionOptions
from equida.data.transforms import Transform
from equida.models.backbone import load_backbone
from equida.models.engine import TorchEngine
from equida.models.extractor import FeatureExtractor

BATCH = 64
BATCHES = {"tf_efficientnet_lite0": 6, "resnet50": 2}
"""By network, such that both take about as long. A first batch is decoded before anything else can
begin, which counts for less the more there are."""
ROUNDS = 5
BARE = "model(x)"
BAR = 2.0
"""What `equida features` should reach of the strongest bare loop."""
# Pixels on a side and share of Office-31's images: amazon, webcam, dslr.
SIZES = ((300, 0.69), (565, 0.19), (1000, 0.12))


def photographs_in(folder: Path, count: int) -> ImageDomain:
    """Image files of Office-31's sizes in a folder."""
    generator = np.random.default_rng(0)
    sides = [side for side, share in SIZES for _ in range(round(share * count))]
    generator.shuffle(sides)
    names = [f"{number:04d}.jpg" for number in range(len(sides))]
    for name, side in zip(names, sides, strict=True):
        coarse = generator.integers(0, 256, (side // 20, side // 20, 3), dtype=np.uint8)
        Image.fromarray(coarse).resize((side, side)).save(folder / name, quality=85)
    return ImageDomain(folder, names, name="photographs")


class Silent:
    """No progress bar."""

    def start(self, label: str, total: int) -> None: ...
    def advance(self, count: int) -> None: ...


def run(*names: str) -> None:
    """Print the ratios.

    Args:
        names: which networks; all by default.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for network in names or BATCHES:
            images = folder / network
            images.mkdir()
            photographs = photographs_in(images, BATCH * BATCHES.get(network, 2))
            weights = None
            if network == "resnet50":
                weights = folder / "resnet50.pth"
                torch.manual_seed(0)
                made = load_backbone(network, pretrained=False).module
                torch.save(made.state_dict(), weights)
            _compare(FeatureExtractor(network, weights, print), photographs, folder)


def _compare(extractor: FeatureExtractor, photographs: ImageDomain, folder: Path) -> None:
    out, options = folder / "out.safetensors", ExtractionOptions(batch_size=BATCH)
    transform = Transform.parse(extractor.settings([photographs], options).transform)
    ready = [
        transform.normalize(
            torch.stack([transform.pixels(photographs[index]) for index in range(start, end)])
        )
        for start in range(0, len(photographs), BATCH)
        for end in (min(start + BATCH, len(photographs)),)
    ]
    folded = TorchEngine(extractor.backbone)

    def features() -> None:
        out.unlink(missing_ok=True)
        out.with_name("out.safetensors.seen").unlink(missing_ok=True)
        extractor.extract([photographs], out, options, Silent())

    jobs = {
        "equida features": features,
        "its engine alone": lambda: _loop(extractor.features, ready),
        BARE: lambda: _loop(folded, ready),
        "its operations alone": _convolutions(_operations(folded, ready[0]) * len(photographs)),
    }
    _print(_in_turns(jobs), len(photographs), extractor.name)


def _loop(module: Callable[[Tensor], Tensor], batches: list[Tensor]) -> None:
    with torch.inference_mode():
        for batch in batches:
            module(batch)


def _operations(module: Callable[[Tensor], Tensor], batch: Tensor) -> int:
    """For one image: multiplications and additions, in convolutions and matrix products."""
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        module(batch[:1])
    return int(counter.get_total_flops())


def _convolutions(operations: int) -> Callable[[], None]:
    """As many operations, in convolutions that suit the processor best."""
    images, channels, side, kernel = 16, 256, 14, 3
    convolution = nn.Conv2d(channels, channels, kernel, padding=1)
    given = torch.rand(images, channels, side, side).to(memory_format=torch.channels_last)
    each = 2 * images * (channels * side * kernel) ** 2

    def convolve() -> None:
        with torch.inference_mode():
            for _ in range(max(1, round(operations / each))):
                convolution(given)

    return convolve


def _in_turns(jobs: dict[str, Callable[[], None]]) -> dict[str, list[tuple[float, float]]]:
    """Seconds of each job in every round, and seconds of the processor."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in jobs}
    for job in jobs.values():
        job()
    for _ in range(ROUNDS):
        for name, job in jobs.items():
            start, processor = time.perf_counter(), time.process_time()
            job()
            taken = time.perf_counter() - start, time.process_time() - processor
            times[name].append(taken)
    return times


def _print(times: dict[str, list[tuple[float, float]]], images: int, network: str) -> None:
    table = Table(title=f"{network}, batch {BATCH}, {torch.get_num_threads()} threads")
    for head in ("", "images/s", f"of {BARE}", "by processor time", "bar"):
        table.add_column(head, justify="right" if head else "left")
    for name, taken in times.items():
        pairs = list(zip(taken, times[BARE], strict=True))
        wall, processor = (statistics.median(b[k] / a[k] for a, b in pairs) for k in (0, 1))
        what, bar = f"{network}: {name} / {BARE}", ""
        if name == "equida features":
            bar = judged("features", what, wall, BAR, least=True)
        elif name != BARE:
            noted("features", what, f"{wall:.2f}")
        rate = images / statistics.median(seconds for seconds, _ in taken)
        table.add_row(name, f"{rate:.1f}", f"{wall:.2f}", f"{processor:.2f}", bar)
    Console().print(table)


if __name__ == "__main__":
    run()
