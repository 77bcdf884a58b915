"""`equida tune`: the setting and the method that a label-free validator prefers."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from equida.cli._flags import DATASET_NAMES, RecipeFlag, overrides, request_from, with_recipe_flags
from equida.cli._print import print_lines, print_search, run_line
from equida.cli._shared_flags import (
    ClassesFlag,
    ClusterFlag,
    JobsFlag,
    ListsFlag,
    NoCacheFlag,
    QuietFlag,
    SkipFlag,
    ThreadsFlag,
)

if TYPE_CHECKING:
    from equida.experiments.tune import Tuned, TuneRequest


@dataclass
class Arguments:
    """Search for the hyper-parameters, and the method, that a label-free validator prefers.

    equida tune photos/ clipart/ --method nsm,cwsm,bnm,clusters --trials 50
    equida tune -d office31 -t A2W --data FEATURES.npz --method nsm

    The default setting is tried first, and the result says how the chosen one compares with it.
    Features of images are computed once. Target labels are not read unless --oracle asks for it.
    The same command again continues where it stopped. OUT/chosen is a run for equida predict, and
    OUT/report.html a page about the search.
    """

    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")] = ""
    """Folder of class folders, image list or feature file (FILE:DOMAIN)."""
    target: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TARGET")] = ""
    """The same for the target."""
    dataset: Annotated[
        str,
        tyro.conf.arg(
            aliases=["-d"],
            help=f"A data set in place of SOURCE and TARGET: {DATASET_NAMES}, or the"
            " path of your own.",
        ),
    ] = ""
    task: Annotated[str, tyro.conf.arg(aliases=["-t"])] = ""
    """The task of the data set, such as A2W."""
    data: str = ""
    """Folder or feature file of the data set."""
    method: str = "nsm"
    """Methods to search over, with commas between them; "a+b" composes two. Their ranges are those
    that equida list methods shows."""
    trials: int = 50
    """Settings to try in all, those of earlier calls included."""
    validator: str = ""
    """The label-free score that decides; knn_balance by default."""
    oracle: bool = False
    """Let target accuracy decide. It uses target labels, and every result is marked so."""
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    """Folder of the search; by default one below runs/."""
    storage: str = ""
    """URL of a database for the trials, such as postgresql://USER@HOST/NAME, which several machines
    may share, each with its own --out; by default a file in OUT."""
    seed: int = 0
    """Seed of the settings that are tried, and of their runs."""
    backbone: str = ""
    """The network that computes features of images; by default a small one."""
    weights: str = ""
    """File with its weights (.safetensors or .pth)."""
    recipe: RecipeFlag = ""
    jobs: JobsFlag = 0
    threads: ThreadsFlag = 0
    cluster: ClusterFlag = ""
    classes: ClassesFlag = "shared"
    no_cache: NoCacheFlag = False
    skip_unreadable: SkipFlag = False
    lists: ListsFlag = ""
    quiet: QuietFlag = False


def arguments_for(argv: Sequence[str]) -> type:
    """The flags above and those of the recipe."""
    return with_recipe_flags(Arguments)


def request_of(arguments: Any) -> "TuneRequest":
    """What the flags ask for; their dataclass is made from the recipe, so its type has no name."""
    from equida.experiments.tune import TuneRequest
    from equida.training.request import AdaptRequest

    run = request_from(
        AdaptRequest,
        arguments,
        method=AdaptRequest.method,  # TuneRequest has the methods, and the folder
        out=None,
        recipe_params=overrides(arguments.training),
        cache=not arguments.no_cache,
    )
    return request_from(TuneRequest, arguments, run=run)


def run(arguments: Arguments) -> int:
    """Search, and print what was found."""
    from equida.api import do_tune
    from equida.progress import display_mode, say
    from equida.training.request import Remarks

    done = do_tune(request_of(arguments), Remarks(say, display_mode(not arguments.quiet)))
    print_tuned(done)
    return 0


def print_tuned(done: "Tuned") -> None:
    """Print a search, the chosen setting as flags, and what to do with the run."""
    from equida.progress import say
    from equida.runs.commands import setting_flags
    from equida.runs.target import target_remarks

    print_search(done.search, done.run.task)
    advice = "equida adapt --method auto, or the line below with --prior estimate"
    for remark in target_remarks(done.run.result or {}, advice):
        say(remark)
    print_lines(
        f"the same hyper-parameters elsewhere: equida adapt {setting_flags(done.run.config)} ...",
        run_line(done.run),
        *([f"page: {shlex.quote(str(done.page))}"] if done.page.is_file() else []),
    )
