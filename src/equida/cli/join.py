"""`equida join`: the features of several backbones side by side."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from equida.errors import printable


@dataclass
class Arguments:
    """Put the feature files of several backbones side by side, into one file.

    The files must be of the same images in the same order. Backbones that were trained differently
    make different mistakes, and cluster labels in particular gain from several. A run on joined
    features predicts rows of a file that was joined in the same way, not images.
    """

    files: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="FILES...")]
    """Feature files, .npz or .safetensors."""
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    """The .npz to write."""


def run(arguments: Arguments) -> int:
    """Write the file and say what it holds."""
    from equida.data.join import join_features

    found = join_features(arguments.files, arguments.out)
    held = ", ".join(f"{name} {rows:,} x {columns:,}" for name, (rows, columns) in found.items())
    print(printable(f"{arguments.out}: {held}"))
    return 0
