"""What a run is going to do: its data, features, network, recipe and folder."""

import dataclasses
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equida.data import ArrayDomain, Benchmark, Task
from equida.data.feature_file import FeatureOrigin
from equida.data.spec import DataSpec, open_task
from equida.data.task import check_columns, columns_of
from equida.errors import InputError
from equida.files import file_sha256, refuse_to_replace
from equida.methods import check_overrides, method_name
from equida.models.backbone import backbone_name
from equida.models.extractor import DEFAULT_BACKBONE
from equida.progress import duration
from equida.training.aims import check_priors
from equida.training.build import SeededBackbone, row_shape
from equida.training.config import RunConfig
from equida.training.effect import check_effect
from equida.training.estimate import estimate
from equida.training.folder import RunFolder
from equida.training.launch import check_processes
from equida.training.predictor import classes_of, finished_run
from equida.training.processes import check_accelerator, started_outside
from equida.training.recipe import Recipe, default_recipe
from equida.training.recipe import recipe as make_recipe
from equida.training.request import (
    AdaptRequest,
    OpenedRequest,
    Remarks,
    data_remarks,
    data_spec,
    default_folder,
    open_request,
)
from equida.training.task_features import (
    spec_origin,
    task_origin,
    with_features,
    write_task_features,
)
from equida.training.trust import named_code, settle_trust, with_plugins

WRITTEN = (
    "model.safetensors", "predictions.safetensors", "log.jsonl", "result.json", "checkpoint.pt",
)  # fmt: skip
"""The files of a run besides its config; a folder that holds them without one is somebody's own."""


@dataclass(frozen=True)
class Plan:
    """What is going to be done, with everything that has been opened on the way."""

    config: RunConfig
    folder: Path
    task: Task
    """The opened data."""
    backbone: SeededBackbone | None = None
    """The loaded backbone; None where it still has to be loaded."""

    def existing_result(self) -> dict[str, Any] | None:
        """The result of the same run where it is finished already."""
        if not (self.folder / "result.json").exists():
            return None
        folder, config = RunFolder(self.folder), self.config
        there = folder.read_config()
        if there and there.describes_same_run(config) and config.from_run:
            # The run to start from may have been trained anew since.
            now = file_sha256(Path(config.from_run) / "model.safetensors")
            if there.weights_sha256 not in ("", now):
                raise InputError(
                    f"{self.folder} holds a run from other weights than {config.from_run} has now;"
                    " choose another --out"
                )
        if there is None or not there.describes_same_run(config):
            of_code = dataclasses.replace(there, plugins=config.plugins) if there else None
            if there and of_code and of_code.describes_same_run(config):
                raise InputError(
                    f"{self.folder} holds a run of other code ({_code_text(there)} there,"
                    f" {_code_text(self.config)} here); choose another --out"
                )
            differs = f" ({there.difference(config)})" if there else ""
            raise InputError(
                f"{self.folder} holds a finished run of another configuration{differs}; choose"
                " another --out"
            )
        return folder.read_result()


def _code_text(config: RunConfig) -> str:
    return ", ".join(f"{each.kind} {each.name!r}: {each}" for each in config.plugins)


def make_plan(request: AdaptRequest, remarks: Remarks | None = None) -> Plan:
    """The config, folder and opened data of the run that is asked for.

    Raises:
        InputError: the request cannot be done; everything that can be known beforehand is checked.
    """
    remarks = remarks or Remarks()
    if request.trust and not request.from_run:
        remarks.say("--trust has no effect without --from RUN, whose record would be trusted")
    named = backbone_name(request.backbone) if request.backbone else None
    method = method_name(request.method)
    request = dataclasses.replace(request, method=method, backbone=named)
    spec = None if request.in_memory else data_spec(request)
    previous = _previous(request, remarks)
    recipe = _checked_recipe(request, spec, previous)
    if spec is not None:
        request = with_features(request, None, remarks)
        spec = data_spec(request)
    opened = open_request(request, spec, remarks)
    folder = Path(request.out or default_folder(opened, request))
    check_folder(folder, opened, request.from_run)
    for line in data_remarks(opened.task, recipe.batch_size):
        remarks.warn(line)
    images = not isinstance(opened.task.target, ArrayDomain)
    if request.features is None:
        request = dataclasses.replace(request, features=images)
    backbone = _backbone(request, opened, previous)
    _check_features(request, images, previous)
    on_features = images and bool(request.features or (previous and previous.feature_origin))
    origin = task_origin(opened)
    check_effect(request, opened.task, origin, on_features=on_features, say=remarks.say)
    if previous and request.weights and not on_features:
        raise InputError(
            f"--weights has no effect with --from: the network is that of {request.from_run}; leave"
            " it out"
        )
    spec, task, images_spec = opened.spec, opened.task, None
    if on_features:
        spec = write_task_features(request, opened, backbone, folder, remarks)
        classes = classes_of(Path(request.from_run)) if request.from_run else None
        task, images_spec, backbone = open_task(spec, classes).task, opened.spec, "none"
        origin = spec_origin(spec)
    _check_origin(request, previous, origin)
    if request.from_run:
        known = (finished_run(Path(request.from_run)).read_result() or {}).get("columns") or ()
        check_columns(columns_of(task.target), known, task.target.named_as("target"))
    name, recipe = _recipe(request, spec, opened.task.name, backbone, previous)
    weights = _weights(request, previous)
    from_weights = weights and backbone != "none" and not previous
    config = RunConfig(
        request.method,
        recipe,
        spec,
        overrides=check_overrides(request.method, request.method_params),
        backbone=backbone,
        weights=weights,
        weights_sha256=file_sha256(Path(weights)) if weights and from_weights else "",
        feature_origin=origin,
        images=images_spec,
        data_sha256=opened.sha256,
        from_run=_from_run(request),
        seed=request.seed,
        recipe_name=name,
        recipe_changes=_changes(request, previous),
    )
    check_priors(config, task)
    plan = Plan(with_plugins(config), RunFolder(folder).path, task)
    fine_tuned = images and not on_features and not previous
    if fine_tuned and remarks.advise and not (folder / "result.json").exists():
        return _advise(plan, request, remarks)
    return plan


def default_backbone(task: Task, data_set: Benchmark | None, features: bool) -> str:
    """The backbone for a task where the user chooses none.

    Args:
        task: rows need none, and small images as arrays take LeNet.
        data_set: a benchmark has the backbone that papers use for it.
        features: features are computed with a network that is quick on a CPU.
    """
    shape = row_shape(task.target)
    if shape is not None:
        return "none" if len(shape) == 1 else "lenet"
    if features:
        return DEFAULT_BACKBONE
    return (data_set and data_set.backbone) or DEFAULT_BACKBONE


def check_folder(folder: Path, opened: OpenedRequest, from_run: str | None) -> None:
    """Refuse a folder that holds a run on other data, before anything there is touched."""
    if from_run and folder.absolute() == Path(from_run).absolute():
        raise InputError(f"{folder} is the run to start from; choose another --out")
    if (folder / "search.json").is_file():
        search = RunFolder(folder).read_json("search.json") or {}
        about = search.get("about") if isinstance(search, dict) else None
        known = about.get("data_sha256") if isinstance(about, dict) else None
        if known not in (None, opened.sha256):
            raise InputError(f"{folder} holds a search with other data; choose another --out")
    if not (folder / "config.json").exists():
        refuse_to_replace([folder / name for name in WRITTEN], lambda: False)
        return
    there = RunFolder(folder).read_config()
    if there is None:
        return
    same_place = opened.spec is None or opened.spec == (there.images or there.task)
    if not same_place or there.data_sha256 != opened.sha256:
        raise InputError(f"{folder} holds a run on other data; choose another --out")


def _previous(request: AdaptRequest, remarks: Remarks) -> RunConfig | None:
    """The config of the run to start from."""
    if not request.from_run:
        return None
    folder = Path(request.from_run)
    config = finished_run(folder).read_config()
    assert config is not None, "a finished run has its config"
    code = named_code(config, method=False)
    settle_trust(folder / "config.json", code, request.trust, remarks.say)
    return config


def _from_run(request: AdaptRequest) -> str | None:
    return os.path.abspath(request.from_run) if request.from_run else None


def _weights(request: AdaptRequest, previous: RunConfig | None) -> str | None:
    """The file with the backbone's weights: the user's, or the finished run's."""
    if request.weights:
        return os.path.abspath(request.weights)
    return previous.weights if previous else None


def _checked_recipe(
    request: AdaptRequest, spec: DataSpec | None, previous: RunConfig | None
) -> Recipe:
    """The recipe as far as it is known, once all that needs no data has been checked."""
    if request.weights and not Path(request.weights).exists():
        raise InputError(f"--weights {request.weights} does not exist; expected a file")
    _, recipe = _recipe(request, spec, "", "none", previous)
    RunConfig(
        request.method, recipe, spec, request.method_params, from_run=_from_run(request),
        seed=request.seed,
    ).check()  # fmt: skip
    if previous:
        if request.backbone:
            raise InputError(
                f"--backbone is what {request.from_run} was trained with; leave it out with --from"
            )
        for name in ("holdout", "label_smoothing"):
            if request.recipe_params.get(name):
                raise InputError(
                    f"{name} has no effect with --from RUN: there is no source; leave it out"
                )
        for name in ("bottleneck", "bottleneck_norm", "bottleneck_relu"):
            was, asked = getattr(previous.recipe, name), getattr(recipe, name)
            if was != asked:
                raise InputError(
                    f"{name} is {asked}, but {was} in {request.from_run}; leave it as it was"
                )
    check_processes(recipe.batch_size, request.devices, request.num_nodes, request.threads)
    check_accelerator(request.accelerator)
    return recipe


def _recipe(
    request: AdaptRequest,
    spec: DataSpec | None,
    task: str,
    backbone: str,
    previous: RunConfig | None,
) -> tuple[str, Recipe]:
    """The name and the values of the recipe that suits the data, with the user's changes."""
    dataset = spec.benchmark if spec else None
    if previous and not request.recipe:
        make_recipe("features", request.recipe_params)  # raises for fields that there are not
        recipe = dataclasses.replace(previous.recipe, **request.recipe_params)
        return previous.recipe_name, recipe
    name = request.recipe or default_recipe(backbone)
    return name, make_recipe(name, request.recipe_params, benchmark=dataset, task=task)


def _changes(request: AdaptRequest, previous: RunConfig | None) -> dict[str, Any]:
    """The fields of the recipe that the user has set, here or for the run that is continued."""
    inherited = previous.recipe_changes if previous and not request.recipe else {}
    return {**inherited, **request.recipe_params}


def _backbone(request: AdaptRequest, opened: OpenedRequest, previous: RunConfig | None) -> str:
    """The backbone to use: the finished run's, the user's, or the one that suits the data."""
    if previous:
        images = row_shape(opened.task.target) is None
        origin = previous.feature_origin if images else None
        return origin.backbone if origin else previous.backbone
    data_set = opened.spec.data_set if opened.spec else None
    return request.backbone or default_backbone(opened.task, data_set, bool(request.features))


def _check_features(request: AdaptRequest, images: bool, previous: RunConfig | None) -> None:
    """Refuse features that cannot be computed here."""
    if not images:
        return
    if previous and previous.backbone == "none" and not previous.feature_origin:
        raise InputError(
            f"{request.from_run} was trained on features of unknown origin; give --target a file of"
            " the same features"
        )
    wanted = request.features or (previous and previous.feature_origin)
    if wanted and started_outside(request.devices * request.num_nodes, request.num_nodes):
        raise InputError(
            "--features has to be computed by one process; do it with equida features, and adapt on"
            " the file that it writes"
        )


def _check_origin(
    request: AdaptRequest, previous: RunConfig | None, origin: FeatureOrigin | None
) -> None:
    """Refuse to continue on features of another network."""
    if previous and previous.feature_origin and origin != previous.feature_origin:
        raise InputError(
            f"{request.from_run} was trained on features of {previous.feature_origin.backbone}; "
            "the target's features come from another network"
        )


def _advise(plan: Plan, request: AdaptRequest, remarks: Remarks) -> Plan:
    """On a machine without GPU, say how long the run will take and how long features would.

    The backbone that is loaded for it is handed on to the run.
    """
    import torch

    if torch.cuda.is_available() or request.accelerator == "gpu":
        return plan
    config = plan.config
    weights = Path(config.weights) if config.weights else None
    loaded = SeededBackbone.load(config.backbone, weights, config.seed)
    # This is what --features would use; a backbone that the user has chosen stays.
    extractor = request.backbone or DEFAULT_BACKBONE
    images = len(plan.task.source) + len(plan.task.target)
    times = estimate(loaded.backbone, images, config.recipe, extractor)
    proposal = ""
    if times.features < times.fine_tuning:
        whose = "its features" if extractor == config.backbone else f"features of {extractor}"
        proposal = f"; --features computes {whose} once and takes about {duration(times.features)}"
    remarks.say(
        f"no GPU: training {config.backbone} takes about {duration(times.fine_tuning)}{proposal}"
    )
    return dataclasses.replace(plan, backbone=loaded)
