"""What a run is going to do: its data, features, network, recipe and folder."""

import dataclasses
import hashlib
import logging
import os
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from equida.data import ArrayDomain, Benchmark, Domain, ImageDomain, Task, benchmark
from equida.data.batches import FileSamples
from equida.data.feature_cache import FeatureStore
from equida.data.feature_file import SUFFIXES, FeatureOrigin, feature_origin
from equida.data.folders import unlabelled_folder
from equida.data.layouts import find_choices
from equida.data.open import DataSpec, open_path, open_task, split_path, task_of
from equida.data.shares import checked_shares, subsampled
from equida.data.task import ClassRule
from equida.data.walk import existing
from equida.errors import InputError
from equida.files import file_sha256, refuse_to_replace
from equida.methods import check_overrides, method_name
from equida.models.backbone import ALIASES, backbone_name
from equida.models.extractor import (
    DEFAULT_BACKBONE,
    ExtractedDomain,
    ExtractionOptions,
    FeatureExtractor,
    image_files,
)
from equida.progress import Bar, Mode, duration
from equida.torch_modes import MOST, check_count
from equida.training.aims import check_priors
from equida.training.build import SeededBackbone, row_shape
from equida.training.config import RunConfig
from equida.training.effect import check_effect
from equida.training.estimate import estimate
from equida.training.folder import RunFolder
from equida.training.launch import check_shares
from equida.training.predictor import classes_of, finished_run
from equida.training.processes import started_outside
from equida.training.recipe import Recipe, default_recipe
from equida.training.recipe import recipe as make_recipe
from equida.training.trust import named_code, settle_trust, with_plugins

LOG = logging.getLogger(__name__)
ROWS_AT_ONCE = 8192
WRITTEN = ("model.safetensors", "predictions.safetensors", "log.jsonl", "result.json")
"""The files of a run besides its config; a folder that holds them without one is somebody's own."""


class SharesRequest(Protocol):
    """A request that may cut classes down."""

    @property
    def source_shares(self) -> str: ...
    @property
    def target_shares(self) -> str: ...


@dataclass(frozen=True)
class AdaptRequest:
    """What somebody asks for, in Python or on the command line; the flags have the same names."""

    source: str | Domain | None
    """A path (folder, image list, feature file, FILE:DOMAIN), a benchmark's domain, or a domain in
    memory; None with `from_run`."""
    target: str | Domain | None
    """The same for the target."""
    method: str = "nsm"
    """A name, several with "+" between them, or `package.module:Class`."""
    dataset: str | None = None
    """A benchmark, whose domains `source` and `target` name."""
    data: str | None = None
    """The benchmark's folder, or a feature file of it."""
    backbone: str | None = None
    weights: str | None = None
    """File with the backbone's weights."""
    features: bool = False
    """Compute the backbone's features once and train on them."""
    recipe: str | None = None
    """Name of a recipe; chosen by the data by default."""
    method_params: Mapping[str, Any] = field(default_factory=dict)
    """Hyper-parameters of the method that differ from its defaults."""
    recipe_params: Mapping[str, Any] = field(default_factory=dict)
    """Fields of the recipe that differ from its values."""
    from_run: str | None = None
    """A finished run that is adapted to the target without source data."""
    out: str | None = None
    """Folder of the run; by default one below runs/."""
    seed: int = 0
    devices: int = 1
    num_nodes: int = 1
    accelerator: str = "auto"
    threads: int = 0
    ignore_target_labels: bool = False
    skip_unreadable: bool = False
    source_shares: str = ""
    """What the source's classes are cut down to: "long-tail:30", "classes:15", or a file of
    shares (see `data.shares`)."""
    target_shares: str = ""
    """The same for the target, by its labels."""
    trust: bool = False
    """Whether code may be run that the record of `from_run` names."""
    lists: str | None = None
    """Folder of the image lists of a benchmark that chooses its samples by lists; by default they
    are looked for in `data`."""
    classes: ClassRule = "shared"
    """Which classes the task has where the domains' differ."""
    cache: bool = True
    """Whether features are looked for, and kept, in the store that commands share."""

    @property
    def in_memory(self) -> bool:
        """Whether some of the data are in memory, so that no path leads to them."""
        return isinstance(self.source, Domain) or isinstance(self.target, Domain)


@dataclass(frozen=True)
class Plan:
    """What is going to be done, with everything that has been opened on the way."""

    config: RunConfig
    folder: Path
    task: Task | None = None
    """The opened data; None where they still have to be opened."""
    backbone: SeededBackbone | None = None
    """The loaded backbone; None where it still has to be loaded."""

    def existing_result(self) -> dict[str, Any] | None:
        """The result of the same run where it is finished already."""
        if not (self.folder / "result.json").exists():
            return None
        folder = RunFolder(self.folder)
        there = folder.read_config()
        if there is None or not there.describes_same_run(self.config):
            if there and dataclasses.replace(there, plugins=()).describes_same_run(self.config):
                raise InputError(
                    f"{self.folder} holds a run of other code ({_said(there)} there,"
                    f" {_said(self.config)} here); choose another --out"
                )
            raise InputError(
                f"{self.folder} holds a finished run of another configuration; choose another --out"
            )
        return folder.read_result()


def _said(config: RunConfig) -> str:
    return ", ".join(f"{each.kind} {each.name!r}: {each}" for each in config.plugins)


@dataclass(frozen=True)
class Remarks:
    """Where remarks go that are not results.

    Attributes:
        say: called with each remark.
        mode: how progress is shown.
        advise: whether to estimate how long the run takes, which itself takes a moment.
    """

    say: Callable[[str], None] = LOG.info
    mode: Mode = "silent"
    advise: bool = False


@dataclass(frozen=True)
class OpenedRequest:
    """The data of a request."""

    task: Task
    spec: DataSpec | None
    """None for data in memory."""
    sha256: str


def make_plan(request: AdaptRequest, remarks: Remarks | None = None) -> Plan:
    """The config, folder and opened data of the run that is asked for.

    Raises:
        InputError: the request cannot be done; everything that can be known beforehand is checked.
    """
    remarks = remarks or Remarks()
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
    if small := small_domains(opened.task, recipe.batch_size):
        remarks.say(small)
    images = not isinstance(opened.task.target, ArrayDomain)
    backbone = _backbone(request, opened, previous)
    _check_features(request, images, previous)
    on_features = images and bool(request.features or (previous and previous.feature_origin))
    check_effect(
        opened.task,
        backbone=request.backbone,
        weights=request.weights,
        features=request.features,
        origin=_origin(opened),
        recipe_params=request.recipe_params,
        on_features=on_features,
        say=remarks.say,
    )
    if previous and request.weights and not on_features:
        raise InputError(
            f"--weights has no effect with --from: the network is that of {request.from_run}; leave"
            " it out"
        )
    if on_features:
        return _plan_on_features(request, opened, backbone, folder, previous, remarks)
    origin = _origin(opened)
    _check_origin(request, previous, origin)
    name, recipe = _recipe(request, opened.spec, opened.task.name, backbone, previous)
    weights = _weights(request, previous)
    from_weights = weights and backbone != "none" and not previous
    config = RunConfig(
        request.method,
        recipe,
        opened.spec,
        overrides=check_overrides(request.method, request.method_params),
        backbone=backbone,
        weights=weights,
        weights_sha256=file_sha256(Path(weights)) if weights and from_weights else "",
        feature_origin=origin,
        data_sha256=opened.sha256,
        from_run=_from_run(request),
        seed=request.seed,
        recipe_name=name,
        recipe_changes=_changes(request, previous),
    )
    check_priors(config, opened.task)
    plan = Plan(with_plugins(config), RunFolder(folder).path, opened.task)
    if images and not previous and remarks.advise and not (folder / "result.json").exists():
        return _advise(plan, request, remarks)
    return plan


def data_spec(request: AdaptRequest) -> DataSpec:
    """Where the data of a request are.

    Raises:
        InputError: something is missing to know it.
    """
    assert not isinstance(request.source, Domain)
    assert not isinstance(request.target, Domain)
    for flag, given in (("--data", request.data), ("--lists", request.lists)):
        if given and not request.dataset:
            raise InputError(f"{flag} is the folder or file of a benchmark; say which one with -d")
    if request.from_run:
        if request.source or not request.target:
            raise InputError("--from RUN takes --target (with -d, a benchmark's) and no --source")
    elif not request.source or not request.target:
        raise InputError("say what to adapt from and to: --source DIR --target DIR, or -d -s -t")
    if request.from_run and request.source_shares:
        raise InputError("--from RUN has no source to cut down; leave --source-shares out")
    further = {
        "skip_unreadable": request.skip_unreadable,
        "ignore_target_labels": request.ignore_target_labels,
        **chosen_shares(request),
    }
    pair = (request.source, request.target)
    if not request.dataset:
        # From the root, so that the run can be done again from any folder.
        source, target = (os.path.abspath(path) if path else "" for path in pair)
        rule = class_rule(request.classes, further)
        return DataSpec(source, target, None, None, classes=rule, **further)
    chosen = benchmark(request.dataset)
    source, target = (chosen.domain(name).key if name else "" for name in pair)
    if source == target:
        raise InputError(f"source and target are both {source}; choose two domains")
    data = os.path.abspath(request.data) if request.data else None
    further["lists"] = chosen_lists(chosen, data, request.lists)
    return benchmark_spec(chosen, source, target, data, request.classes, **further)


def class_rule(asked: ClassRule, further: Mapping[str, Any]) -> ClassRule:
    """Which classes a task has; a domain that is cut down to some classes leaves the task its own.

    Args:
        asked: what the user wants.
        further: other fields of the `DataSpec`.
    """
    if asked not in typing.get_args(ClassRule):
        known = ", ".join(typing.get_args(ClassRule))
        raise InputError(f"--classes is {asked!r}; it must be one of {known}")
    return "source" if further.get("source_shares") or further.get("target_shares") else asked


def chosen_lists(chosen: Benchmark, data: str | None, lists: str | None) -> str | None:
    """The folder of the image lists that choose a benchmark's samples; None where it has none."""
    found = find_choices(chosen, Path(data) if data else None, lists)
    return None if found is None else str(found)


def chosen_shares(request: "SharesRequest") -> dict[str, Any]:
    """The fields of `DataSpec` for the class shares that are asked for, checked."""
    return {
        name: checked_shares(getattr(request, name), f"--{name.replace('_', '-')}")
        for name in ("source_shares", "target_shares")
    }


def benchmark_spec(
    chosen: Benchmark,
    source: str,
    target: str,
    data: str | None,
    classes: ClassRule,
    **further: Any,
) -> DataSpec:
    """Two domains of a data set, registered or found on disk.

    Args:
        chosen: the data set.
        source: the source's key.
        target: the target's key.
        data: the folder or file of a registered data set, or a feature file of a found one.
        classes: which classes a task has; registered data sets have one class list.
        **further: other fields of the `DataSpec`.
    """
    place = os.path.abspath(data) if data else (chosen.root or None)
    rule = class_rule(classes, further)
    return DataSpec(
        source,
        target,
        chosen.registered_name,
        place,
        classes=rule if chosen.own else "source",
        own=chosen.own,
        **further,
    )


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


def with_features(request: AdaptRequest, folder: Path | None, remarks: Remarks) -> AdaptRequest:
    """The request on two feature files, where one domain is a feature file and the other images.

    The features of the images are computed with the network that the feature file names, and
    written into the run's folder.

    Args:
        request: the request; it is given back as it is where both domains are of one kind.
        folder: where to write; the folder of the request by default.
        remarks: where remarks and progress go.
    """
    pair = {"source": request.source, "target": request.target}
    if request.dataset or not all(isinstance(path, str) and path for path in pair.values()):
        return request
    rows = {
        role: split_path(os.path.abspath(str(path)))[0].suffix in SUFFIXES
        for role, path in pair.items()
    }
    if rows["source"] == rows["target"]:
        return request
    images = "target" if rows["source"] else "source"
    stored = "source" if rows["source"] else "target"
    file, path = split_path(os.path.abspath(str(pair[stored])))[0], str(pair[images])
    origin = feature_origin(existing(file))
    if origin is None:
        raise InputError(
            f"{file} does not say which network computed its features, so that those of {path}"
            " cannot be computed likewise; make both with: equida features DIR --out FILE"
        )
    if re.search(r":|\.\w+$", origin.backbone) and request.backbone != origin.backbone:
        # What a file names is data: code and files are used only where the user names them too.
        raise InputError(
            f"{file} holds features of {origin.backbone}; to compute those of {path} with it, give"
            f" --backbone {origin.backbone} yourself"
        )
    if request.backbone and ALIASES.get(request.backbone, request.backbone) != origin.backbone:
        raise InputError(
            f"--backbone is {request.backbone!r}, but {file} holds features of {origin.backbone};"
            " leave it out"
        )
    out = folder or Path(
        request.out
        or default_pair_folder(
            str(request.source), str(request.target), f"{request.method}-seed{request.seed}"
        )
    )
    ignore = images == "target" and request.ignore_target_labels
    domain = unlabelled_folder(path) if ignore and os.path.isdir(path) else open_path(path)
    made = (RunFolder(out).path / "features-0.safetensors").absolute()
    remarks.say(f"features of {len(domain):,} images of {path} with {origin.backbone}: {made}")
    extractor = FeatureExtractor(
        origin.backbone, Path(request.weights) if request.weights else None
    )
    options = ExtractionOptions(skip_unreadable=request.skip_unreadable)
    extract_shared(extractor, [image_files(domain)], made, options, remarks, cache=request.cache)
    if feature_origin(made) != origin:
        raise InputError(
            f"{file} holds features of other weights or other preprocessing of {origin.backbone}"
            f" than are used here; give its weights with --weights FILE, or make both files anew"
        )
    changed: dict[str, Any] = {images: str(made), "backbone": None, "features": False}
    return dataclasses.replace(request, **changed, out=str(out), weights=None)


def default_pair_folder(source: str, target: str, purpose: str) -> Path:
    """A folder below runs/ for two paths."""
    names = []
    for path in (source, target):
        file, part = split_path(path)
        names.append(part or Path(os.path.abspath(file)).stem)
    name = f"{'2'.join(names)}-{purpose}"
    return Path("runs") / "".join(c if c.isalnum() or c in "-_+." else "_" for c in name)


def small_domains(task: Task, batch_size: int) -> str:
    """In one line, which domains are smaller than a batch; "" where none is."""
    small = [
        f"{domain.name} has {len(domain)} samples"
        for domain in dict.fromkeys((task.source, task.target))
        if len(domain) < batch_size
    ]
    if not small:
        return ""
    return f"{' and '.join(small)}, fewer than a batch of {batch_size}: its samples are repeated"


def default_folder(opened: OpenedRequest, request: AdaptRequest) -> Path:
    """A folder below runs/ whose name says what the run is."""
    protocol = opened.spec.protocol if opened.spec else ""
    data_set = opened.spec.data_set if opened.spec else None
    dataset = data_set.name if data_set else ""
    words = [dataset, opened.task.name, protocol, request.method, f"seed{request.seed}"]
    # Data in memory have no names that would tell one call from the next.
    words += [opened.sha256[:8]] if opened.spec is None else []
    name = "-".join(word for word in words if word)
    return Path("runs") / "".join(c if c.isalnum() or c in "-_+." else "_" for c in name)


def check_folder(folder: Path, opened: OpenedRequest, from_run: str | None) -> None:
    """Refuse a folder that holds a run on other data, before anything there is touched."""
    if from_run and folder.absolute() == Path(from_run).absolute():
        raise InputError(f"{folder} is the run to start from; choose another --out")
    if not (folder / "config.json").exists():
        refuse_to_replace([folder / name for name in WRITTEN], lambda: False)
        return
    there = RunFolder(folder).read_config()
    if there is None:
        return
    same_place = opened.spec is None or opened.spec == (there.images or there.task)
    if not same_place or there.data_sha256 != opened.sha256:
        raise InputError(f"{folder} holds a run on other data; choose another --out")


def domains_sha256(*domains: Domain | None) -> str:
    """A digest of domains in memory: of every value of rows, of the name and size of image files,
    and of the labels by class name.
    """
    digest = hashlib.sha256()
    for domain in domains:
        if domain is None:
            continue
        digest.update(f"{type(domain).__name__}\0{len(domain)}\0".encode())
        digest.update("\n".join(domain.classes).encode("utf-8", "surrogateescape"))
        if domain.labels is not None:
            digest.update(domain.labels.tobytes())
        if isinstance(domain, ArrayDomain):
            digest.update(f"{tuple(domain.values.shape[1:])}".encode())
            for start in range(0, len(domain), ROWS_AT_ONCE):
                rows = np.arange(start, min(start + ROWS_AT_ONCE, len(domain)))
                for view in range(domain.views):
                    digest.update(domain.rows(rows, view).contiguous().numpy().tobytes())
        elif isinstance(domain, ImageDomain):
            for index in range(len(domain)):
                size = os.path.getsize(domain.path(index))
                line = f"{domain.identity(index)}\0{size}\n"
                digest.update(line.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


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
        for name in ("bottleneck", "bottleneck_norm", "bottleneck_relu"):
            was, asked = getattr(previous.recipe, name), getattr(recipe, name)
            if was != asked:
                raise InputError(
                    f"{name} is {asked}, but {was} in {request.from_run}; leave it as it was"
                )
    check_shares(recipe.batch_size, request.devices, request.num_nodes)
    check_count(
        "--threads", request.threads, f"0 (as suits the data) or a whole number up to {MOST}"
    )
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


def open_request(request: AdaptRequest, spec: DataSpec | None, remarks: Remarks) -> OpenedRequest:
    """The data, opened once; what is left out or missing is remarked."""
    classes = classes_of(Path(request.from_run)) if request.from_run else None
    if spec is not None:
        opened = open_task(spec, classes)
        task, left_out, sha256 = opened.task, opened.left_out, opened.digest
        if not task.left_out:  # the record names no rule that was not needed
            spec = dataclasses.replace(spec, classes="source")
    else:
        task, left_out = _open_memory(request, classes)
        sha256 = domains_sha256(None if request.from_run else task.source, task.target)
    for name, reason in left_out:
        remarks.say(f"left out: {name}: {reason}")
    if task.respelled:
        name, other = task.respelled[0]
        remarks.say(
            f"target {task.target.name} writes {len(task.respelled)} classes otherwise than the"
            f" source, such as {name!r} for {other!r}; they are taken for the same"
        )
    if task.left_out:
        remarks.say(task.left_out)
    if not request.from_run and (absent := task.absent_classes()):
        remarks.say(
            f"source {task.source.name} has no sample of {len(absent)} of its {len(task.classes)}"
            f" classes, such as {absent[0]!r}; target samples may be given to them all the same"
        )
    return OpenedRequest(task, spec, sha256)


def _open_memory(
    request: AdaptRequest, classes: tuple[str, ...] | None
) -> tuple[Task, list[tuple[str, str]]]:
    if request.dataset or request.data:
        raise InputError("dataset and data name a benchmark; leave them out with data in memory")
    if request.target is None or (request.source is None) != bool(request.from_run):
        raise InputError("give both a source and a target, or a target and from_run")
    source, target = (
        open_path(os.path.abspath(domain)) if isinstance(domain, str) else domain
        for domain in (request.source, request.target)
    )
    assert target is not None
    shares = chosen_shares(request)
    if source is not None:
        source = subsampled(source, shares["source_shares"], "source")
    target = subsampled(target, shares["target_shares"], "target")
    if request.ignore_target_labels:
        target = target.relabel((), None)
    return task_of(
        source,
        target,
        classes=classes or (),
        class_rule=class_rule(request.classes, shares),
        skip_unreadable=request.skip_unreadable,
    )


def _backbone(request: AdaptRequest, opened: OpenedRequest, previous: RunConfig | None) -> str:
    """The backbone to use: the finished run's, the user's, or the one that suits the data."""
    if previous:
        images = row_shape(opened.task.target) is None
        origin = previous.feature_origin if images else None
        return origin.backbone if origin else previous.backbone
    data_set = opened.spec.data_set if opened.spec else None
    return request.backbone or default_backbone(opened.task, data_set, request.features)


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


def _plan_on_features(
    request: AdaptRequest,
    opened: OpenedRequest,
    backbone: str,
    folder: Path,
    previous: RunConfig | None,
    remarks: Remarks,
) -> Plan:
    """Compute the features of both domains into the run's folder, and plan the run on them."""
    spec = write_task_features(request, opened, backbone, folder, remarks)
    classes = classes_of(Path(request.from_run)) if request.from_run else None
    task = open_task(spec, classes).task
    origin = spec_origin(spec)
    _check_origin(request, previous, origin)
    name, recipe = _recipe(request, spec, opened.task.name, "none", previous)
    config = RunConfig(
        request.method,
        recipe,
        spec,
        overrides=check_overrides(request.method, request.method_params),
        weights=_weights(request, previous),
        feature_origin=origin,
        images=opened.spec,
        data_sha256=opened.sha256,
        from_run=_from_run(request),
        seed=request.seed,
        recipe_name=name,
        recipe_changes=_changes(request, previous),
    )
    check_priors(config, task)
    return Plan(with_plugins(config), RunFolder(folder).path, task)


def write_task_features(
    request: AdaptRequest, opened: OpenedRequest, backbone: str, folder: Path, remarks: Remarks
) -> DataSpec:
    """Compute the features of both domains; where they are then, instead of the images."""
    RunFolder(folder)
    extractor = FeatureExtractor(backbone, Path(request.weights) if request.weights else None)
    options = ExtractionOptions(skip_unreadable=request.skip_unreadable)
    task = opened.task
    domains = list(dict.fromkeys((task.source, task.target, task.judged)))
    of_data_set = opened.spec is not None and opened.spec.data_set is not None
    # The domains of a data set have names of their own; two folders may have the same name.
    groups = [domains] if of_data_set else [[domain] for domain in domains]
    files: list[str] = []
    for group in groups:
        file = (folder / f"features-{len(files)}.safetensors").absolute()
        names = " and ".join(domain.name for domain in group)
        remarks.say(
            f"features of {sum(map(len, group)):,} images of {names} with {backbone}: {file}"
        )
        images = [image_files(domain) for domain in group]
        extract_shared(extractor, images, file, options, remarks, cache=request.cache)
        files.append(str(file))
    if of_data_set and opened.spec:
        # The features are of the task's own classes already.
        return dataclasses.replace(
            opened.spec,
            data=files[0],
            skip_unreadable=False,
            ignore_target_labels=False,
            source_shares="",
            target_shares="",
        )
    return DataSpec(files[0] if len(files) == 2 else "", files[-1])


def extract_shared(
    extractor: FeatureExtractor,
    images: Sequence[FileSamples],
    file: Path,
    options: ExtractionOptions,
    remarks: "Remarks",
    *,
    cache: bool,
) -> None:
    """Bring a feature file up to date, with the features that other commands have computed.

    Args:
        extractor: the network.
        images: the domains.
        file: the feature file.
        options: how features are computed.
        remarks: where remarks and progress go.
        cache: whether to use the store that commands share.
    """
    store = FeatureStore.default() if cache else None
    with Bar(remarks.mode, unit="images") as bar:
        done = extractor.extract(images, file, options, bar, store)
    if done.stored and store is not None:
        remarks.say(
            f"{done.stored:,} of {done.images:,} features were computed before"
            f" ({store.folder}; --no-cache computes them anew)"
        )


def _origin(opened: OpenedRequest) -> FeatureOrigin | None:
    """The network that computed the rows of a task, where that is known."""
    if opened.spec is not None:
        return spec_origin(opened.spec)
    target = opened.task.target
    return target.origin if isinstance(target, ExtractedDomain) else None


def spec_origin(spec: DataSpec) -> FeatureOrigin | None:
    """The network that computed the features that a task is read from, where that is known."""
    file = spec.data or spec.target
    if spec.own and spec.data and os.path.isdir(spec.data):
        file = os.path.join(spec.data, spec.own.domain(spec.target).place)
    return feature_origin(split_path(file)[0])


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

    if torch.cuda.is_available() or request.accelerator == "gpu" or plan.task is None:
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
