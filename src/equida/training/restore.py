"""A finished run, ready to predict."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from equida.data.transforms import Transform, evaluation_transform
from equida.errors import InputError
from equida.models.backbone import load_backbone
from equida.training.build import make_objective
from equida.training.config import RunConfig
from equida.training.evaluate import log_probs_of
from equida.training.folder import RunFolder
from equida.training.objective import Objective


class Classifier(nn.Module):
    """Inputs to the logits that the run's method predicts with."""

    def __init__(self, extractor: nn.Module, objective: Objective) -> None:
        super().__init__()
        self.extractor = extractor
        self.objective = objective

    def forward(self, x: Tensor) -> Tensor:
        _, logits = self.objective.predict(self.extractor(x))
        return logits


@dataclass(frozen=True)
class Predictor:
    """The network of a finished run, in evaluation mode."""

    config: RunConfig
    module: Classifier
    classes: tuple[str, ...]
    view: Transform | None
    """How images are prepared; None where the run takes rows."""
    shape: tuple[int, ...]
    """Of one input; of each crop, where the view gives several."""

    def probs(self, inputs: Tensor) -> Tensor:
        """The probabilities of a batch, (batch, classes); crops of one image are averaged."""
        device = next(self.module.parameters()).device
        with torch.inference_mode():
            return log_probs_of(self.module, inputs.to(device)).exp().cpu()


def restore(folder: Path) -> Predictor:
    """The network that a run ended with."""
    run = finished(folder)
    config = RunConfig.from_json(run.read_json("config.json"))
    classes = classes_of(folder)
    state = run.load_tensors("model.safetensors")
    rows = None if config.backbone != "none" else (_row_width(state, config),)
    objective, backbone = make_objective(config, len(classes), rows, pretrained=False)
    objective.load_state_dict(state)
    extractor: nn.Module = nn.Identity()
    if backbone is not None:
        shape: tuple[int, ...] = backbone.input_size
        view = evaluation_transform(
            backbone.mean, backbone.std, shape[1], ten_crop=config.recipe.ten_crop
        )
    elif config.extractor is not None:
        extractor, view, shape = _extractor(config)
    else:
        view, shape = None, rows or ()
    module = Classifier(extractor, objective).eval()
    return Predictor(config, module, classes, view, shape)


def _extractor(config: RunConfig) -> tuple[nn.Module, Transform, tuple[int, ...]]:
    """The backbone that made the run's features, if it is the same one here."""
    made = config.extractor or {}
    weights = Path(config.weights) if config.weights else None
    backbone = load_backbone(made["backbone"], weights=weights)
    if backbone.weights_sha256 != made["weights_sha256"]:
        raise InputError(
            f"the run's features were made with other weights of {made['backbone']} "
            f"(SHA-256 {made['weights_sha256'][:12]}) than those found here "
            f"({backbone.weights_sha256[:12]})"
        )
    return backbone.module, Transform.parse(made["transform"]), backbone.input_size


def classes_of(folder: Path) -> tuple[str, ...]:
    """The class names of a finished run."""
    return tuple(finished(folder).read_json("result.json")["classes"])


def finished(folder: Path) -> RunFolder:
    """The folder of a finished run, or an InputError that says what is missing."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a run folder; expected one made by equida adapt")
    for name in ("config.json", "result.json", "model.safetensors"):
        if not (folder / name).exists():
            state = "is unfinished" if (folder / "config.json").exists() else "is not a run folder"
            raise InputError(f"{folder} {state}: it has no {name}; run equida adapt to the end")
    return RunFolder(folder)


def _row_width(state: dict[str, Tensor], config: RunConfig) -> int:
    layer = "bottleneck.0" if config.recipe.bottleneck else "classifier"
    return int(state[f"network.{layer}.weight"].shape[1])
