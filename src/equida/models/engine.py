"""What runs a frozen network on images: ONNX Runtime where it is installed, or else PyTorch.

A frozen network is a pure function, and an inference engine computes it with less work: on a CPU,
ONNX Runtime needs two fifths of PyTorch's time for EfficientNet-Lite0 and three quarters of it for
ResNet-50. The features are the same up to rounding, which is checked on the first images.
"""

import contextlib
import importlib.util
import io
import logging
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from equida.data.feature_cache import Engine
from equida.errors import InputError
from equida.files import temporary_folder
from equida.models.backbone import Backbone
from equida.models.foreign import OnnxNetwork, onnx_session, onnxruntime_name
from equida.models.fuse_batchnorm import fuse_norms
from equida.models.weights import first_line

TOLERANCE = 1e-4
"""Largest difference between two engines that counts as rounding, as a share of the largest
feature."""
CHECKED_IMAGES = 8
IMAGES_AT_ONCE = 2
"""A thread of ONNX Runtime is given so many: what it computes of more leaves the cache."""


class RunningEngine(Protocol):
    """A network that an engine has loaded."""

    name: str
    """The engine and its version, as feature files record them."""

    def __call__(self, images: Tensor) -> Tensor: ...


def engine_here(wanted: Engine = "auto", backbone: str = "") -> str:
    """The engine, with its version, that will be tried first.

    Args:
        wanted: what the user asks for. "auto" is ONNX Runtime where it is installed and there is no
            GPU, or else PyTorch.
        backbone: the network's name; a network in an .onnx file has an engine already.

    Raises:
        InputError: it is not installed, or cannot run the network.
    """
    torch_here = f"torch {torch.__version__}"
    if backbone.lower().endswith(".onnx"):
        if wanted == "torch":
            raise InputError(
                f"--engine is torch, but backbone {backbone} is an ONNX file, which only"
                " onnxruntime can run; leave --engine out"
            )
        return onnxruntime_name()
    if wanted == "torch" or (wanted == "auto" and torch.cuda.is_available()):
        return torch_here
    try:
        if importlib.util.find_spec("onnx") is None:
            raise InputError("exporting a network needs onnx: pip install 'equida[export]'")
        return onnxruntime_name()
    except InputError as error:
        if wanted == "onnxruntime":
            raise InputError(f"{error}, or use --engine torch") from None
        return torch_here


def start_engine(
    backbone: Backbone, wanted: Engine, images: Tensor, say: Callable[[str], None]
) -> RunningEngine:
    """The engine that will run the network, checked on some images.

    Args:
        backbone: the network.
        wanted: as for `engine_here`. Where "auto" meets a network that ONNX Runtime cannot run as
            PyTorch does, one line says so and PyTorch runs it.
        images: the first batch, normalised.
        say: told where another engine is used than would be expected.
    """
    name = engine_here(wanted, backbone.name)
    if isinstance(backbone.module, OnnxNetwork):
        return backbone.module
    if name.startswith("torch"):
        return TorchEngine(backbone)
    problem = ""
    try:
        engine = OnnxRuntimeEngine(backbone.module, images)
        difference = _difference(engine, backbone.module, images[:CHECKED_IMAGES])
        if difference <= TOLERANCE:
            return engine
        problem = f"its features differ from PyTorch's by {difference:.1e} of the largest"
    except InputError:
        raise
    except Exception as error:  # a network may hold anything that cannot be exported
        problem = f"it cannot be exported: {first_line(error)}"
    if wanted == "onnxruntime":
        raise InputError(
            f"onnxruntime cannot run {backbone.name} ({problem}); use --engine auto or torch"
        )
    say(f"onnxruntime cannot run {backbone.name} ({problem}); PyTorch computes its features")
    return TorchEngine(backbone)


class TorchEngine:
    """PyTorch, in channels_last, with batch norms folded into convolutions; a GPU if there is one.

    Args:
        backbone: the network.
    """

    def __init__(self, backbone: Backbone) -> None:
        self.name = f"torch {torch.__version__}"
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        example = torch.rand(2, *backbone.input_size, generator=torch.Generator().manual_seed(0))
        fused: Any = fuse_norms(backbone.module, example)
        self._module: nn.Module = fused.to(self._device, memory_format=torch.channels_last)

    def __call__(self, images: Tensor) -> Tensor:
        with torch.inference_mode():
            there = images.to(self._device, memory_format=torch.channels_last)
            features: Tensor = self._module(there)
        return features


class OnnxRuntimeEngine:
    """ONNX Runtime on the CPU, with as many threads as PyTorch has.

    Each thread computes images of its own, so that none waits for another.

    Args:
        module: the network, which is exported.
        images: a batch of images.
    """

    def __init__(self, module: nn.Module, images: Tensor) -> None:
        self.name = onnxruntime_name()
        with temporary_folder() as folder:
            path = folder / "network.onnx"
            _export(module, images[:1].repeat(2, 1, 1, 1).contiguous(), str(path))
            self._session = onnx_session(path, threads=1)

    def __call__(self, images: Tensor) -> Tensor:
        # All at once: after an operation of PyTorch its threads wait for the next one on the cores
        # that the engine needs.
        whole = images.contiguous().numpy()
        starts = range(0, len(whole), IMAGES_AT_ONCE)
        with ThreadPoolExecutor(torch.get_num_threads()) as threads:
            parts = list(threads.map(lambda at: self._run(whole[at : at + IMAGES_AT_ONCE]), starts))
        return torch.from_numpy(np.concatenate(parts))

    def _run(self, images: NDArray[np.float32]) -> NDArray[np.float32]:
        (features,) = self._session.run(None, {"images": images})
        found: NDArray[np.float32] = features
        return found


def _export(module: nn.Module, example: Tensor, path: str) -> None:
    """Write the network as ONNX, for batches of any size.

    The older exporter takes a second where the newer one takes ten, and says what it cannot do; the
    newer one can do some networks that the older one cannot, and will be there when that is gone.
    """
    names: dict[str, Any] = {"input_names": ["images"], "output_names": ["features"]}
    with exporter_silenced(), torch.no_grad():
        try:
            axes = {"images": {0: "batch"}, "features": {0: "batch"}}
            torch.onnx.export(module, (example,), path, dynamo=False, dynamic_axes=axes, **names)
        except Exception as reason:
            shapes = ({0: torch.export.Dim("batch", min=1)},)
            newer: dict[str, Any] = {"dynamo": True, "dynamic_shapes": shapes, "verbose": False}
            try:
                torch.onnx.export(module, (example,), path, **newer, **names)
            except Exception:
                raise reason from None


def _difference(engine: RunningEngine, module: nn.Module, images: Tensor) -> float:
    """The largest difference of a feature from the module's, as a share of the largest feature."""
    with torch.inference_mode():
        expected = module(images).float()
    found = engine(images)
    if found.shape != expected.shape:
        return float("inf")
    scale = expected.abs().max().clamp(min=1e-12)
    return float((found - expected).abs().max() / scale)


@contextlib.contextmanager
def exporter_silenced() -> Iterator[None]:
    """Keep the messages of PyTorch's ONNX exporters from the user's terminal."""
    level = logging.root.manager.disable
    # It prints the graph of a network that cannot be exported, past sys.stdout, and cannot be
    # told not to.
    printer = getattr(torch._C, "_jit_onnx_log", None)
    logging.disable(logging.WARNING)
    try:
        if printer:
            torch._C._jit_onnx_log = lambda *parts: None
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
        if printer:
            torch._C._jit_onnx_log = printer
