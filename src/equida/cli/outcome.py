"""What a finished run says: its last step, what each validator would have picked, the oracle."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table


def print_result(result: Mapping[str, Any], folder: Path, *, images: bool = True) -> None:
    """The table of a run's result, and what to do with the run.

    Args:
        result: the content of result.json.
        folder: of the run.
        images: whether the run can label images.
    """
    metric = result["metric"]
    labelled = metric in result["last"]
    table = Table(title=f"{result['method']} on {result['task']}, seed {result['seed']}")
    table.add_column("selected by")
    names = ["step", *([metric] if labelled else []), "equity", "discriminability"]
    for name in names:
        table.add_column(name.replace("_", " "), justify="right")
    rows = {"last step": result["last"]}
    for name, figures in result["picks"].items():
        title = "oracle (uses target labels)" if name == "oracle" else name.replace("_", " ")
        rows[title] = figures
    for title, figures in rows.items():
        cells = [f"{figures['step']:.0f}"]
        cells += [f"{100 * figures[metric]:.1f} %"] if labelled else []
        cells += [f"{figures[name]:.3f}" for name in ("equity", "discriminability")]
        table.add_row(title, *cells, style="bold" if title == "last step" else None)
    console = Console()
    console.print(table)
    where = shlex.quote(str(folder))
    console.print(
        f"run: {where}" + (f"   labels for new images: equida predict {where} IMAGES" * images),
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
