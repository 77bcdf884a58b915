"""`equida adapt`: a classifier for the target, from labelled source data or a finished run."""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import tyro

from equida.cli.flags import with_flags


@dataclass
class Arguments:
    """Adapt a classifier from labelled source data to unlabelled target data.

    equida adapt --source photos/ --target clipart/
    equida adapt -d office31 -s A -t W --data DIR --features
    equida adapt --from RUN --target DIR        (no source data needed)
    equida adapt --from RUN -d office31 -t W --data DIR
    """

    source: Annotated[str, tyro.conf.arg(aliases=["-s"])] = ""
    """Folder of class folders, image list, feature file (FILE:DOMAIN), or a benchmark's domain."""
    target: Annotated[str, tyro.conf.arg(aliases=["-t"])] = ""
    """The same for the target; labels found there are used for evaluation only."""
    dataset: Annotated[str, tyro.conf.arg(aliases=["-d"])] = ""
    """A benchmark: office31, office_home, visda2017 or digits."""
    data: str = ""
    """Folder or feature file of the benchmark."""
    method: str = "nsm"
    """What is added to source cross-entropy; `equida list methods`. "a+b" composes two."""
    backbone: str = ""
    """Feature extractor for images; by default the benchmark's, or tf_efficientnet_lite0."""
    weights: str = ""
    """File with the backbone's weights (.safetensors or .pth)."""
    out: Annotated[str, tyro.conf.arg(aliases=["-o"])] = ""
    """Folder of the run; an unfinished run there goes on. By default below runs/."""
    recipe: str = ""
    """paper, features or digits; chosen by the data unless set."""
    features: bool = False
    """Compute the backbone's features once and train on them: minutes instead of hours."""
    from_: Annotated[str, tyro.conf.arg(name="from")] = ""
    """A finished run to adapt further without source data."""
    seed: int = 0
    """Where everything random starts."""
    devices: int = 1
    """Processes on this machine, each with a GPU if there are any."""
    num_nodes: int = 1
    """Machines; start the same command on each (torchrun and srun do)."""
    accelerator: str = "auto"
    """cpu, gpu or auto."""
    threads: int = 0
    """Of torch in each process; 0: one for features, whose steps are too small to be shared, and as
    many as torch has for images."""
    ignore_target_labels: bool = False
    """The target's folders are no classes (dates, cameras): use all images below it, unlabelled."""
    skip_unreadable: bool = False
    """Leave out images that cannot be read instead of stopping."""
    tensorboard: bool = False
    """Write curves for TensorBoard into the run's folder."""
    quiet: bool = False
    """No progress bar."""


def arguments_for(argv: Sequence[str]) -> type:
    """The flags above, those of the recipe, and the method's hyper-parameters."""
    return with_flags(Arguments, argv)


def run(arguments: Any) -> int:
    """Do the run and print what came out."""
    from equida.cli.outcome import print_result
    from equida.cli.plan import make_plan
    from equida.cli.say import say
    from equida.cli.watch import watch
    from equida.training.fabric import started_outside
    from equida.training.folder import RunFolder
    from equida.training.launch import launch

    plan = make_plan(arguments)
    # Of several processes that know of each other, all are at work in the folder.
    shared = started_outside(arguments.devices * arguments.num_nodes, arguments.num_nodes)
    done = None if shared else plan.result()
    if done is not None:
        say(f"{plan.folder} is finished already; this is its result")
    else:
        with contextlib.nullcontext() if shared else RunFolder(plan.folder).alone():
            done = launch(
                plan.config,
                plan.folder,
                devices=arguments.devices,
                num_nodes=arguments.num_nodes,
                accelerator=arguments.accelerator,
                threads=arguments.threads,
                watch=partial(
                    watch,
                    folder=plan.folder,
                    tensorboard=arguments.tensorboard,
                    quiet=arguments.quiet,
                ),
                before=plan.result,
            )
    if done is None:
        return 0  # the first process of the run shows what came out
    images = plan.config.backbone != "none" or plan.config.extractor is not None
    print_result(done, plan.folder, images=images)
    return 0
