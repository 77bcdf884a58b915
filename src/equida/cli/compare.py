"""`equida compare`: which method suits two domains of your own."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from equida.cli._flags import RecipeFlag, overrides, request_from, with_recipe_flags
from equida.cli._print import print_results
from equida.cli._shared_flags import (
    ClassesFlag,
    ClusterFlag,
    FormatFlag,
    JobsFlag,
    NoCacheFlag,
    QuietFlag,
    SeedsFlag,
    SelectFlag,
    SkipFlag,
    ThreadsFlag,
)

if TYPE_CHECKING:
    from equida.experiments.compare import CompareRequest


@dataclass
class Arguments:
    """Compare methods on two domains: one table, with label-free scores beside.

    equida compare photos/ clipart/ --methods nsm,cwsm,bnm,cdan --seeds 3

    Features of images are computed once. Accuracy is shown only if the target has labels; the
    scores need none, and a note says which method they would pick. Each run can be used by equida
    predict. The same command again continues where it stopped.
    """

    source: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="SOURCE")]
    """Folder of class folders, image list or feature file (FILE:DOMAIN)."""
    target: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="TARGET")]
    """The same for the target. Labels found there are used for evaluation, and to leave out samples
    of classes that only one domain has (with --classes source: target samples alone)."""
    out: Annotated[Path | None, tyro.conf.arg(aliases=["-o"])] = None
    """Folder of the features, the runs and the tables; by default one below runs/."""
    methods: str = "source_only,nsm,cwsm,bnm,cdan"
    """Names with commas between them; "a+b" composes two. all: the eleven standard systems."""
    seeds: SeedsFlag = "3"
    backbone: str = ""
    """The network that computes features of images; by default a small one."""
    weights: str = ""
    """File with its weights (.safetensors or .pth)."""
    recipe: RecipeFlag = ""
    prior: str = ""
    """Class shares that methods with equity aim at: uniform, source, estimate (of the target,
    without its labels), oracle (uses target labels), shares such as 0.5,0.3,0.2 in
    the order of the classes, or a file of them; other methods stay as they are."""
    select: SelectFlag = "last"
    format: FormatFlag = "rich"
    jobs: JobsFlag = 0
    threads: ThreadsFlag = 0
    cluster: ClusterFlag = ""
    classes: ClassesFlag = "shared"
    ignore_target_labels: bool = False
    """The target's folders are not classes: use all images below it, without labels."""
    no_cache: NoCacheFlag = False
    skip_unreadable: SkipFlag = False
    quiet: QuietFlag = False


def arguments_for(argv: Sequence[str]) -> type:
    """The flags above and those of the recipe."""
    return with_recipe_flags(Arguments)


def request_of(arguments: Any, out: Path) -> "CompareRequest":
    """What the flags ask for; their dataclass is made from the recipe, so its type has no name."""
    from equida.experiments.compare import CompareRequest

    return request_from(
        CompareRequest,
        arguments,
        out=out,
        prior=arguments.prior or None,
        recipe_params=overrides(arguments.training),
        cache=not arguments.no_cache,
    )


def run(arguments: Arguments) -> int:
    """Do what is not done yet and print the table."""
    from equida.experiments.compare import run_compare
    from equida.progress import display_mode, say
    from equida.training.request import Remarks, default_pair_folder

    out = arguments.out or default_pair_folder(arguments.source, arguments.target, "compare")
    remarks = Remarks(say, display_mode(not arguments.quiet), advise=True)
    table = run_compare(request_of(arguments, out), remarks)
    print_results(table, arguments.format)
    if arguments.format == "rich":
        say(f"runs: {out}   labels for new samples: equida predict RUN FILES")
    return 1 if table.failures else 0
