"""Networks that other tools have written: torch.export, ONNX, a pickled module, transformers.

Each function here returns a module from images to features, which has the attributes `input_size`
and, where they are known, `mean` and `std`.
"""

import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from equida.errors import InputError, require
from equida.models.weights import first_line
from equida.torchvision_ops import ensure_operators

SIDE = 224
"""Height and width of images where a network does not say what it was trained with."""


def check_file(path: Path, weights: Path | None) -> None:
    """Raise InputError unless the file is there and no other weights are wanted for it."""
    if weights is not None:
        raise InputError(f"backbone {path}: the file has its weights inside; drop --weights")
    if not path.is_file():
        raise InputError(f"backbone {path}: no such file")


def exported_network(path: Path) -> nn.Module:
    """A network saved by `torch.export`."""
    try:
        program = torch.export.load(path)
    except Exception as error:  # a damaged archive raises nearly anything
        raise InputError(
            f"backbone {path}: not saved by torch.export ({first_line(error)})"
        ) from None
    example = program.example_inputs[0][0] if program.example_inputs else torch.empty(0)
    size = tuple(example.shape[1:])
    if len(size) != 3:
        raise InputError(f"backbone {path}: its input is {size}; expected one batch of images")
    return ExportedNetwork(program.module(), size)


class ExportedNetwork(nn.Module):
    """An exported program as a module that can be put into evaluation mode: it always is."""

    def __init__(self, program: nn.Module, input_size: tuple[int, ...]) -> None:
        super().__init__()
        self.program = program
        self.input_size = input_size

    def train(self, mode: bool = True) -> "ExportedNetwork":
        return self

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.program(images)
        return features


def pickled_network(path: Path) -> nn.Module:
    """A whole module that `torch.save` has pickled; reading it can run any code."""
    try:
        module = torch.load(path, map_location="cpu", weights_only=False)
    except Exception as error:  # what is unpickled may raise anything
        raise InputError(f"backbone {path}: cannot be unpickled ({first_line(error)})") from None
    if not isinstance(module, nn.Module):
        raise InputError(
            f"backbone {path} holds a {type(module).__name__}; expected a whole module. A file of"
            " weights is for --weights, beside the --backbone that it belongs to"
        )
    return module


def import_onnxruntime() -> Any:
    """The module onnxruntime, or an error that says how to install it."""
    try:
        import onnxruntime
    except Exception as error:  # a wheel that does not fit the machine fails in many ways
        why = "" if isinstance(error, ModuleNotFoundError) else f" ({first_line(error)})"
        raise InputError(f"ONNX needs onnxruntime{why}: pip install 'equida[export]'") from None
    return onnxruntime


def onnxruntime_name() -> str:
    """ONNX Runtime with its version, as feature files record it."""
    return f"onnxruntime {import_onnxruntime().__version__}"


def onnx_session(path: Path, threads: int) -> Any:
    """The network in an ONNX file, to be run on the CPU with so many threads."""
    runtime = import_onnxruntime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    # Threads that spin while they wait would take the cores from those that decode images.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


class OnnxNetwork(nn.Module):
    """A network in an ONNX file, computed by onnxruntime on the CPU; it cannot be trained.

    Its features are the first output that is a matrix, or else the mean over height and width of
    the first one that is a stack of maps. `mean` and `std` are read from the file's metadata, as
    JSON, where it has them.
    """

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.name = onnxruntime_name()
        try:
            self.session = onnx_session(path, torch.get_num_threads())
        except Exception as error:  # onnxruntime raises types of its own
            reason = first_line(error)
            raise InputError(f"backbone {path}: not an ONNX network ({reason})") from None
        entries = self.session.get_inputs()
        if len(entries) != 1 or len(entries[0].shape) != 4:
            shapes = ", ".join(str(entry.shape) for entry in entries)
            raise InputError(f"backbone {path}: its inputs are {shapes}; expected one, of images")
        (self.entry,) = entries
        batch, channels, *sides = self.entry.shape
        self.at_once = batch if isinstance(batch, int) else 0
        self.input_size = (
            channels if isinstance(channels, int) else 3,
            *(side if isinstance(side, int) else SIDE for side in sides),
        )
        outputs = self.session.get_outputs()
        usable = [out for rank in (2, 4) for out in outputs if len(out.shape or ()) == rank]
        if not usable:
            shapes = ", ".join(str(out.shape) for out in outputs)
            raise InputError(f"backbone {path}: outputs are {shapes}; expected (batch, features)")
        self.output = usable[0].name
        told = self.session.get_modelmeta().custom_metadata_map
        for name in ("mean", "std"):
            with contextlib.suppress(KeyError, ValueError):
                setattr(self, name, tuple(float(value) for value in json.loads(told[name])))

    def forward(self, images: Tensor) -> Tensor:
        half = self.entry.type == "tensor(float16)"
        rows = images.detach().cpu().to(torch.float16 if half else torch.float32).numpy()
        step = self.at_once or len(rows)
        parts = [self._run(rows[start : start + step]) for start in range(0, len(rows), step)]
        features = torch.from_numpy(np.concatenate(parts)).float()
        return (features.mean((2, 3)) if features.ndim == 4 else features).to(images.device)

    def _run(self, rows: Any) -> Any:
        missing = max(0, self.at_once - len(rows))  # a file may allow one size of batches only
        padded = np.concatenate([rows, np.repeat(rows[:1], missing, 0)]) if missing else rows
        (found,) = self.session.run([self.output], {self.entry.name: padded})
        return found[: len(rows)]


def transformers_network(name: str) -> nn.Module:
    """A vision model of the library transformers, by its folder or its name on the hub.

    Code that a model brings along is never run (`trust_remote_code=False`).
    """
    ensure_operators()
    transformers = require(
        "transformers", f"backbone {name!r} needs transformers", "equida[transformers]"
    )
    options: dict[str, Any] = {"trust_remote_code": False}
    prepared: dict[str, Any] = {}
    if Path(name).is_dir():
        options["local_files_only"] = True
    else:
        reach_hub(name)
    # Its reports of what was loaded would come between the lines that the user asked for.
    level = transformers.logging.get_verbosity()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    try:
        model, loaded = transformers.AutoModel.from_pretrained(
            name, output_loading_info=True, dtype=torch.float32, **options
        )
        with contextlib.suppress(OSError, ValueError):
            prepared, _ = transformers.ImageProcessingMixin.get_image_processor_dict(name)
    except Exception as error:  # files that are missing, damaged or of another kind raise anything
        raise InputError(
            f"backbone 'transformers:{name}' cannot be loaded ({first_line(error)}); expected a"
            " folder with config.json and weights, or a model of the hub"
        ) from None
    finally:
        transformers.logging.set_verbosity(level)
    missing = sorted(loaded["missing_keys"])
    vision = model.vision_model if hasattr(model, "text_model") else model
    # Many checkpoints were trained without the pooler that the class has: it would be random.
    random_pooler = any("pooler" in key for key in missing)
    if other := [key for key in missing if "pooler" not in key]:
        raise InputError(
            f"backbone 'transformers:{name}': {len(other)} of its weights are missing (first:"
            f" {other[0]!r}); expected all of them"
        )
    network = PooledNetwork(vision, use_pooler=not random_pooler)
    config = vision.config
    size = _side(prepared.get("crop_size")) or _side(getattr(config, "image_size", None))
    size = size or _side(prepared.get("size")) or SIDE
    network.input_size = (int(getattr(config, "num_channels", 3)), size, size)
    for attribute in ("mean", "std"):
        if f"image_{attribute}" in prepared:
            setattr(network, attribute, tuple(map(float, prepared[f"image_{attribute}"])))
    return network


def reach_hub(name: str) -> None:
    """Raise InputError where a model is neither on this machine nor on the hub."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url

    try:
        hf_hub_download(name, "config.json", local_files_only=True)
    except Exception:
        try:
            # This asks once; the download itself would try for half a minute without a network.
            get_hf_file_metadata(hf_hub_url(name, "config.json"))
        except Exception as error:
            raise InputError(
                f"{name!r} is not a folder here and could not be downloaded from huggingface.co"
                f" ({first_line(error)}); give a folder, or go online once"
            ) from None


def _side(given: Any) -> int:
    """The height that a configuration gives in one of its forms; 0 for none."""
    if isinstance(given, dict):
        given = given.get("height") or given.get("shortest_edge")
    if isinstance(given, list | tuple):
        given = given[0] if given else None
    return int(given) if isinstance(given, int | float) else 0


class PooledNetwork(nn.Module):
    """A model of transformers as a module from images to its pooled output.

    Args:
        model: the model.
        use_pooler: False where its pooler was never trained: then it is the class token, or the
            mean of all tokens or positions where there is no class token.
    """

    input_size: tuple[int, int, int]

    def __init__(self, model: nn.Module, *, use_pooler: bool) -> None:
        super().__init__()
        self.model = model
        self.use_pooler = use_pooler
        self.class_token = any("cls_token" in name for name, _ in model.named_parameters())
        if not use_pooler:
            model.pooler = None  # type: ignore[assignment]

    def forward(self, images: Tensor) -> Tensor:
        made = self.model(pixel_values=images)
        pooled = getattr(made, "pooler_output", None)
        if self.use_pooler and isinstance(pooled, Tensor):
            return pooled.flatten(1)
        hidden: Tensor = made.last_hidden_state
        if hidden.ndim == 4:
            return hidden.mean((2, 3))
        return hidden[:, 0] if self.class_token else hidden.mean(1)
