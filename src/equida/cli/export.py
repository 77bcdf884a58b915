"""`equida export`: the classifier of a finished run, for use without equida."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from equida.cli._shared_flags import TrustFlag
from equida.errors import printable


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
    no_onnx: bool = False
    """Leave out model.onnx, which needs the extra `export`."""
    trust: TrustFlag = False


def run(arguments: Arguments) -> int:
    """Write the files and say where they are."""
    from equida.progress import say
    from equida.training.export import export_run

    out = arguments.out or arguments.run / "export"
    made = export_run(
        arguments.run, out, onnx=not arguments.no_onnx, trust=arguments.trust, say=say
    )
    files = ", ".join(made.files)
    checked = (
        "" if made.difference is None else f" (differs from torch by {made.difference:.1e} at most)"
    )
    print(printable(f"{made.folder}: {files}{checked}"))
    return 0
