"""A finished run, ready to predict."""

from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from equida.data.transforms import Transform, evaluation_transform
from equida.errors import InputError
from equida.training.build import make_objective
from equida.training.config import RunConfig
from equida.training.folder import RunFolder
from equida.training.objective import Objective


@dataclass(frozen=True)
class Predictor:
    """The network of a finished run, in evaluation mode."""

    config: RunConfig
    objective: Objective
    classes: tuple[str, ...]
    view: Transform | None
    """How images are prepared; None where the run was on rows."""


def restore(folder: Path) -> Predictor:
    """The network that a run ended with."""
    run = finished(folder)
    config = RunConfig.from_json(run.read_json("config.json"))
    classes = classes_of(folder)
    state = run.load_tensors("model.safetensors")
    shape = None if config.backbone != "none" else (_row_width(state, config),)
    objective, backbone = make_objective(config, len(classes), shape)
    objective.load_state_dict(state)
    view = None
    if backbone is not None and backbone.input_size[0] == 3:
        view = evaluation_transform(backbone.mean, backbone.std, backbone.input_size[1])
    return Predictor(config, objective.eval(), classes, view)


def classes_of(folder: Path) -> tuple[str, ...]:
    """The class names of a finished run."""
    return tuple(finished(folder).read_json("result.json")["classes"])


def finished(folder: Path) -> RunFolder:
    """The folder of a finished run, or an InputError that says what is missing."""
    if not folder.is_dir():
        raise InputError(
            f"{folder} is not a run folder; expected one made by equida adapt"
        )
    for name in ("config.json", "result.json", "model.safetensors"):
        if not (folder / name).exists():
            state = (
                "is unfinished"
                if (folder / "config.json").exists()
                else "is not a run folder"
            )
            raise InputError(
                f"{folder} {state}: it has no {name}; run equida adapt to the end"
            )
    return RunFolder(folder)


def _row_width(state: dict[str, Tensor], config: RunConfig) -> int:
    name = (
        "network.bottleneck.0.weight"
        if config.recipe.bottleneck
        else "network.classifier.weight"
    )
    return int(state[name].shape[1])
