"""The cure for a torchvision wheel whose compiled operators cannot be loaded.

torchvision attaches Python code to its operators `nms` and `qnms` when it is imported. Beside a
torch that was built for other devices (the usual case: a CPU-only torch, and the CUDA build of
torchvision) its compiled library does not load, the operators do not exist, and `import
torchvision` raises. Everything that is wanted here (model definitions) needs neither, so it is
enough that their schemas are known.
"""

import importlib.machinery
import importlib.util

import torch

from equida.errors import InputError

# The declarations live as long as this object.
_declared = torch.library.Library("torchvision", "FRAGMENT")


def ensure_operators() -> bool:
    """Whether torchvision's compiled operators are usable; it can be imported either way.

    To be called before the first `import torchvision` (or timm, which imports it). Schemas are
    declared only where they are missing, so that a sound installation stays untouched; calling it
    again changes nothing.

    Raises:
        InputError: torchvision is not installed.
    """
    spec = importlib.util.find_spec("torchvision")
    if spec is None or not spec.submodule_search_locations:
        raise InputError("torchvision is not installed: pip install 'equida[vision]'")
    _load_compiled(spec.submodule_search_locations[0])
    for name in ("nms", "qnms"):
        if not hasattr(torch.ops.torchvision, name):
            _declared.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return torch._C._dispatch_has_kernel_for_dispatch_key("torchvision::nms", "CPU")


def _load_compiled(folder: str) -> None:
    loader = (
        importlib.machinery.ExtensionFileLoader,
        importlib.machinery.EXTENSION_SUFFIXES,
    )
    library = importlib.machinery.FileFinder(folder, loader).find_spec("_C")
    if library is None or library.origin is None:
        return
    try:
        # Loading a library a second time does nothing.
        torch.ops.load_library(library.origin)
    except OSError:
        return
