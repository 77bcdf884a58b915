"""What `equida adapt` is going to do: data, features, network, recipe and folder of the run."""

import dataclasses
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equida.cli.flags import overrides
from equida.cli.say import say
from equida.errors import InputError

if TYPE_CHECKING:
    from equida.data import Task
    from equida.training.config import RunConfig, TaskSource
    from equida.training.recipe import Recipe

SMALL = "tf_efficientnet_lite0"
"""The backbone where nothing else is asked for: quick on a CPU, with weights in a package."""


@dataclass(frozen=True)
class Plan:
    """What is going to be done."""

    config: "RunConfig"
    folder: Path

    def result(self) -> dict[str, Any] | None:
        """The result of the same run where it is finished already."""
        from equida.training.config import RunConfig
        from equida.training.folder import RunFolder

        if not (self.folder / "result.json").exists():
            return None
        folder = RunFolder(self.folder)
        there = RunConfig.from_json(folder.read_json("config.json"))
        if dataclasses.replace(there, weights_sha256="") != self.config:
            raise InputError(
                f"{self.folder} holds a finished run of another configuration; choose another --out"
            )
        result: dict[str, Any] = folder.read_json("result.json")
        return result


def make_plan(arguments: Any) -> Plan:
    """The config and the folder of the run that the user asks for."""
    from equida.data import ArrayDomain
    from equida.data.loading import check_size
    from equida.training.config import RunConfig
    from equida.training.fabric import started_outside
    from equida.training.folder import RunFolder
    from equida.training.identity import data_sha256
    from equida.training.launch import check_shares
    from equida.training.restore import classes_of, finished
    from equida.training.tasks import absent_classes, open_task

    where = task_source(arguments)
    if arguments.weights and not Path(arguments.weights).exists():
        raise InputError(f"--weights {arguments.weights} does not exist; expected a file")
    initial = Path(arguments.from_).absolute() if arguments.from_ else None
    before = RunConfig.from_json(finished(initial).read_json("config.json")) if initial else None
    hyper = overrides(arguments.hyper, arguments.method)
    drafted = recipe_of(arguments, where, "", "none", before)
    RunConfig(
        arguments.method, drafted, where, hyper, initial=str(initial) if initial else None
    ).check()
    if initial and before:
        check_network(initial, before, drafted, arguments)
    check_shares(drafted.batch_size, arguments.devices, arguments.num_nodes)
    task, left_out = open_task(where, classes_of(initial) if initial else None)
    for name, reason in left_out:
        say(f"left out: {name}: {reason}")
    if not initial and (absent := absent_classes(task)):
        say(
            f"source {task.source.name} has no sample of {len(absent)} of its {len(task.classes)}"
            f" classes, such as {absent[0]!r}; target samples may be given to them all the same"
        )
    folder = Path(arguments.out or default_folder(task.name, arguments))
    given, identity = where, data_sha256(where)
    check_folder(folder, given, identity, initial)
    images = not isinstance(task.target, ArrayDomain)
    backbone = backbone_of(arguments, where, task, before)
    features = images and (arguments.features or bool(before and before.extractor))
    if images and before and before.backbone == "none" and not before.extractor:
        raise InputError(
            f"{initial} was trained on features of unknown origin; give --target a file of the same"
            " features"
        )
    if features and started_outside(arguments.devices * arguments.num_nodes, arguments.num_nodes):
        raise InputError(
            "--features has to be computed by one process; do it with equida features, and adapt on"
            " the file that it writes"
        )
    if features:
        for domain in (task.source, task.target):
            check_size(domain, drafted.batch_size)
        where = to_features(task, where, backbone, folder, arguments)
    elif images and not before:
        propose(task, backbone, arguments)
    extractor = extractor_of(where)
    if before and before.extractor and extractor != before.extractor:
        raise InputError(
            f"{initial} was trained on features of {before.extractor.get('backbone')}; "
            "the target's features are others"
        )
    recipe = recipe_of(arguments, where, task.name, backbone if not features else "none", before)
    return Plan(
        RunConfig(
            arguments.method,
            recipe,
            where,
            overrides=hyper,
            backbone="none" if features else backbone,
            weights=weights_of(arguments, before),
            extractor=extractor,
            images=given if features else None,
            data_sha256=identity,
            initial=str(initial) if initial else None,
            seed=arguments.seed,
        ),
        RunFolder(folder).path,
    )


def check_network(initial: Path, before: "RunConfig", recipe: "Recipe", arguments: Any) -> None:
    """Refuse to change the network of the run that is gone on from."""
    if arguments.backbone:
        raise InputError(f"--backbone is what {initial} was trained with; leave it out with --from")
    for name in ("bottleneck", "bottleneck_norm", "bottleneck_relu"):
        was, asked = getattr(before.recipe, name), getattr(recipe, name)
        if was != asked:
            raise InputError(f"{name} is {asked}, but {was} in {initial}; leave it as it was")


def check_folder(folder: Path, where: "TaskSource", identity: str, initial: Path | None) -> None:
    """Refuse a folder that holds a run on other data, before anything there is touched."""
    from equida.training.config import RunConfig
    from equida.training.folder import RunFolder

    if initial and folder.absolute() == initial:
        raise InputError(f"{folder} is the run to start from; choose another --out")
    if not (folder / "config.json").exists():
        return
    there = RunConfig.from_json(RunFolder(folder).read_json("config.json"))
    if (there.images or there.task, there.data_sha256) != (where, identity):
        raise InputError(f"{folder} holds a run on other data; choose another --out")


def task_source(arguments: Any) -> "TaskSource":
    """Where the data are, or what is missing to know it."""
    from equida.data import benchmark
    from equida.training.config import TaskSource

    flags = {
        "skip_unreadable": arguments.skip_unreadable,
        "ignore_target_labels": arguments.ignore_target_labels,
    }
    if arguments.data and not arguments.dataset:
        raise InputError("--data is the folder or file of a benchmark; say which one with -d")
    if arguments.from_:
        if arguments.source or not arguments.target:
            raise InputError("--from RUN takes --target (with -d, a benchmark's) and no --source")
    elif not arguments.source or not arguments.target:
        raise InputError("say what to adapt from and to: --source DIR --target DIR, or -d -s -t")
    pair = (arguments.source, arguments.target)
    if not arguments.dataset:
        source, target = (absolute(path) if path else "" for path in pair)
        return TaskSource(source, target, **flags)
    chosen = benchmark(arguments.dataset)
    source, target = (chosen.domain(name).key if name else "" for name in pair)
    if source == target:
        raise InputError(f"source and target are both {source}; choose two domains")
    data = absolute(arguments.data) if arguments.data else None
    return TaskSource(source, target, chosen.name, data, **flags)


def absolute(path: str) -> str:
    """The path from the root, so that a run can be done again from any folder."""
    return os.path.abspath(path)


def weights_of(arguments: Any, before: "RunConfig | None") -> str | None:
    """The file with the backbone's weights: the user's, or the finished run's."""
    if arguments.weights:
        return absolute(arguments.weights)
    return before.weights if before else None


def backbone_of(
    arguments: Any, where: "TaskSource", task: "Task", before: "RunConfig | None"
) -> str:
    """The backbone to use: the user's, the finished run's, the paper's, or the small one."""
    from equida.training.build import row_shape

    shape = row_shape(task.target)
    if before:
        made = before.extractor if shape is None else None
        return made["backbone"] if made else before.backbone
    if shape is not None:
        return arguments.backbone or ("none" if len(shape) == 1 else "lenet")
    paper = {"office31": "resnet50", "office_home": "resnet50", "visda2017": "resnet101"}
    usual = SMALL
    if not arguments.features:
        usual = paper.get(where.benchmark or "", usual)
    return str(arguments.backbone or usual)


def recipe_of(
    arguments: Any,
    where: "TaskSource",
    task: str,
    backbone: str,
    before: "RunConfig | None",
) -> "Recipe":
    """The recipe that suits the data, with what the user has set."""
    from equida.training.recipe import recipe

    changes = overrides(arguments.training)
    if before and not arguments.recipe:
        return dataclasses.replace(before.recipe, **changes)
    usual = {"none": "features", "lenet": "digits"}.get(backbone, "paper")
    return recipe(arguments.recipe or usual, changes, benchmark=where.benchmark, task=task)


def default_folder(task: str, arguments: Any) -> Path:
    """A folder below runs/ that says what the run is."""
    words = [arguments.dataset, task, arguments.method, f"seed{arguments.seed}"]
    name = "-".join(word for word in words if word)
    return Path("runs") / "".join(c if c.isalnum() or c in "-_+." else "_" for c in name)


def to_features(
    task: "Task", images: "TaskSource", backbone: str, folder: Path, arguments: Any
) -> "TaskSource":
    """Compute the features of both domains once; where they are instead of the images."""
    from equida.cli.features import Arguments as FeatureArguments
    from equida.cli.features import extract
    from equida.training.config import TaskSource
    from equida.training.folder import RunFolder

    RunFolder(folder)
    domains = list(dict.fromkeys((task.source, task.target)))
    # The domains of a benchmark have names of their own; two folders may have the same.
    groups = [domains] if images.benchmark else [[domain] for domain in domains]
    files: list[str] = []
    for group in groups:
        file = (folder / f"features-{len(files)}.safetensors").absolute()
        names = " and ".join(domain.name for domain in group)
        say(f"features of {sum(map(len, group)):,} images of {names} with {backbone}: {file}")
        chosen = FeatureArguments(
            images=names,
            out=file,
            backbone=backbone,
            weights=Path(arguments.weights) if arguments.weights else None,
            skip_unreadable=arguments.skip_unreadable,
        )
        extract(group, chosen)  # type: ignore[arg-type]
        files.append(str(file))
    if images.benchmark:
        return TaskSource(images.source, images.target, images.benchmark, files[0])
    return TaskSource(files[0] if len(files) == 2 else "", files[-1])


def extractor_of(where: "TaskSource") -> Mapping[str, str] | None:
    """Which network made the features that the task is on, where the file says so."""
    from equida.training.tasks import split_path

    path = Path(where.data) if where.data else split_path(where.target)[0]
    if path.suffix != ".safetensors" or not path.is_file():
        return None
    from safetensors import safe_open

    with safe_open(path, "pt") as file:
        metadata = json.loads((file.metadata() or {}).get("equida", "{}"))
    names = ("backbone", "weights_sha256", "transform")
    return {name: metadata[name] for name in names} if all(n in metadata for n in names) else None


def propose(task: "Task", backbone: str, arguments: Any) -> None:
    """On a machine without GPU, say how long this will take and how long features would."""
    import torch

    from equida.training.estimate import duration, estimate

    if torch.cuda.is_available() or arguments.accelerator == "gpu":
        return
    weights = Path(arguments.weights) if arguments.weights else None
    recipe = recipe_of(arguments, task_source(arguments), task.name, backbone, None)
    # What --features would use; a backbone that the user has chosen stays.
    extractor = arguments.backbone or SMALL
    images = len(task.source) + len(task.target)
    times = estimate(backbone, weights, images, recipe, extractor)
    proposal = ""
    if times.features < times.fine_tuning:
        whose = "its features" if extractor == backbone else f"features of {extractor}"
        proposal = f"; --features computes {whose} once and takes about {duration(times.features)}"
    say(f"no GPU: training {backbone} takes about {duration(times.fine_tuning)}{proposal}")
