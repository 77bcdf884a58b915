"""The classifier of a finished run as files that can be used without equida."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from equida.errors import InputError
from equida.files import json_has, refuse_to_replace
from equida.models.engine import exporter_silenced
from equida.models.foreign import OnnxNetwork
from equida.training.folder import RunFolder
from equida.training.predictor import LOG, Predictor, restore

TOLERANCE = 1e-3
"""Largest difference of a probability between ONNX and torch that counts as rounding."""


@dataclass(frozen=True)
class Exported:
    """What an export wrote."""

    folder: Path
    files: tuple[str, ...]
    difference: float | None = None
    """Largest difference of a probability between ONNX and torch; None without ONNX."""


def export_run(
    run: Path,
    out: Path,
    *,
    onnx: bool = True,
    trust: bool = False,
    say: Callable[[str], None] = LOG.info,
) -> Exported:
    """Write the classifier as safetensors with model.json, and as ONNX.

    The ONNX file takes normalised images (or rows) and gives logits; model.json says how images are
    prepared, what the classes are called, and by which temperature logits are divided before the
    softmax, for the confidences that `equida predict` gives.

    Args:
        run: folder of a finished run.
        out: folder to write into.
        onnx: write model.onnx too; it is checked against torch on random inputs.
        trust: whether code may be run that the run's record names.
        say: told of that code.
    """
    if any((out / name).exists() for name in ("config.json", "result.json", "checkpoint.pt")):
        raise InputError(
            f"{out} holds a run, whose weights the export would overwrite; choose another --out"
        )
    refuse_to_replace(
        [out / name for name in ("model.safetensors", "model.json", "model.onnx")],
        lambda: json_has(out / "model.json", "format", "classes", "transform", "method"),
    )
    predictor = restore(run, trust=trust, say=say)
    folder = RunFolder(out)
    folder.save_tensors("model.safetensors", predictor.module.state_dict())
    folder.write_json("model.json", _description(predictor))
    files = ("model.safetensors", "model.json")
    if not onnx:
        return Exported(folder.path, files)
    difference = write_onnx(predictor, folder.path / "model.onnx")
    return Exported(folder.path, (*files, "model.onnx"), difference)


def _description(predictor: Predictor) -> dict[str, object]:
    origin = predictor.config.feature_origin
    return {
        "format": 1,
        "classes": list(predictor.classes),
        "input": list(predictor.shape),
        "transform": str(predictor.transform) if predictor.transform else None,
        "backbone": origin.backbone if origin else predictor.config.backbone,
        "method": predictor.config.method,
        "output": "logits",
        "temperature": predictor.temperature,
    }


def write_onnx(predictor: Predictor, path: Path) -> float:
    """Write the ONNX file; returns its largest difference in probability from torch."""
    try:
        import onnxruntime
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise InputError(
            f"{error.name} is missing: pip install 'equida[export]', or use --no-onnx"
        ) from error
    if isinstance(predictor.module.extractor, OnnxNetwork):
        raise InputError(
            "the run is on features of an ONNX file, which torch cannot put into another one; use"
            " --no-onnx, and apply both files in turn"
        )
    generator = torch.Generator().manual_seed(0)
    example = torch.randn(4, *predictor.shape, generator=generator)
    batch = torch.export.Dim("batch", min=1)
    with exporter_silenced():
        torch.onnx.export(
            predictor.module,
            (example,),
            str(path),
            input_names=["input"],
            output_names=["logits"],
            dynamic_shapes={"x": {0: batch}},
            dynamo=True,
            verbose=False,
            external_data=False,
        )
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    other = torch.randn(3, *predictor.shape, generator=generator)
    with torch.inference_mode():
        expected = predictor.module(other).softmax(1)
    (logits,) = session.run(None, {"input": other.numpy()})
    difference = float((torch.from_numpy(logits).softmax(1) - expected).abs().max())
    if difference > TOLERANCE:
        path.unlink()
        raise InputError(
            f"the ONNX model differs from torch by {difference:.1e}; expected at most {TOLERANCE}"
        )
    return difference
