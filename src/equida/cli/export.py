"""`equida export`: the classifier of a finished run, for use without equida."""

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from equida.errors import InputError

if TYPE_CHECKING:
    from equida.training.restore import Predictor

TOLERANCE = 1e-3
"""Largest difference of a probability between ONNX and torch that is taken for rounding."""


@dataclass
class Arguments:
    """Write the classifier of a finished run as safetensors with model.json, and as ONNX.

    The ONNX file takes normalised images (or rows) and gives logits; model.json says how images are
    prepared (of ten crops, the mean of their probabilities is the prediction) and what the classes
    are called. It is checked against torch on random inputs.
    """

    run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder of a finished run."""
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    """Folder to write into; by default RUN/export."""
    onnx: bool = True
    """Write model.onnx too (extra `export`)."""


def run(arguments: Arguments) -> int:
    """Write the files and say where they are."""
    from equida.training.folder import RunFolder
    from equida.training.restore import restore

    out = arguments.out or arguments.run / "export"
    if any((out / name).exists() for name in ("config.json", "result.json", "checkpoint.pt")):
        raise InputError(
            f"{out} holds a run, whose weights the export would overwrite; choose another --out"
        )
    predictor = restore(arguments.run)
    folder = RunFolder(out)
    folder.save_tensors("model.safetensors", predictor.module.state_dict())
    description = {
        "format": 1,
        "classes": list(predictor.classes),
        "input": list(predictor.shape),
        "transform": str(predictor.view) if predictor.view else None,
        "backbone": (predictor.config.extractor or {}).get("backbone", predictor.config.backbone),
        "method": predictor.config.method,
        "output": "logits",
    }
    folder.write_json("model.json", description)
    written = ["model.safetensors", "model.json"]
    if arguments.onnx:
        difference = write_onnx(predictor, folder.path / "model.onnx")
        written.append(f"model.onnx (differs from torch by {difference:.1e} at most)")
    print(f"{folder.path}: {', '.join(written)}")
    return 0


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """Keeps what the exporter says of its own progress from the user's terminal."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


def write_onnx(predictor: "Predictor", path: Path) -> float:
    """Write the ONNX file and return its largest difference in probability from torch."""
    import torch

    try:
        import onnxruntime
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise InputError(
            f"{error.name} is missing: pip install 'equida[export]', or use --no-onnx"
        ) from error
    generator = torch.Generator().manual_seed(0)
    example = torch.randn(4, *predictor.shape, generator=generator)
    batch = torch.export.Dim("batch", min=1)
    with _silence():
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
