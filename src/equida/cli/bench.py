"""`equida bench`: every method on every task, the paper's table, resumable, in parallel."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from equida.cli._flags import DATASET_HELP, RecipeFlag, overrides, request_from, with_recipe_flags
from equida.cli._print import print_results
from equida.cli._shared_flags import (
    ClassesFlag,
    ClusterFlag,
    FormatFlag,
    JobsFlag,
    ListsFlag,
    NoCacheFlag,
    QuietFlag,
    SeedsFlag,
    SelectFlag,
    SkipFlag,
    SourceSharesFlag,
    ThreadsFlag,
)
from equida.data.benchmarks import benchmark

if TYPE_CHECKING:
    from equida.experiments.run import BenchRequest


@dataclass
class Arguments:
    """Run every method on every task and print the table with the paper's numbers beside.

    equida bench office31 --data DIR --features --out RUNS
    equida bench office31 --data DIR --methods cwsm,nsm --sweep r=0.5,1 --out RUNS
    equida bench MY_DOMAINS/ --features --out RUNS

    Any folder of domain folders of class folders is a data set; so are image lists or feature files
    (one for each domain, or one for all), and a dataset.toml.

    The same command again continues where it stopped: finished runs are not repeated, and a changed
    recipe is a new run. Exit code 0: all runs are finished; 1: some failed, and the next call tries
    them again.
    """

    dataset: Annotated[
        str,
        tyro.conf.Positional,
        tyro.conf.arg(metavar="DATASET", help=DATASET_HELP),
    ]
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    """Folder of the runs and of table.md, table.tex, table.csv and table.json."""
    data: str = ""
    """Folder or feature file of the data set; a path as DATASET and digits need none."""
    methods: str = "all"
    """Names with commas between them; "a+b" composes two, package.module:Class is one of your own
    (the module is imported). all: the eleven standard systems; every:
    all known methods."""
    tasks: str = ""
    """Such as A2W,D2W; all by default."""
    seeds: SeedsFlag = "3"
    backbone: str = ""
    """Feature extractor for images; by default the benchmark's, with --features the small one."""
    weights: str = ""
    """File with the backbone's weights (.safetensors or .pth)."""
    features: bool = False
    """Compute the backbone's features once, into OUT/features.safetensors, and train on them."""
    recipe: RecipeFlag = ""
    sweep: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Vary a hyper-parameter or a field of the recipe: r=0.5,1 or trade_off=0.5:2.5:0.5. The flag
    can be given several times; a method that does not have the hyper-parameter is run once."""
    prior: str = ""
    """Class shares that methods with equity aim at: uniform, source, estimate (of the target,
    without its labels), oracle (uses target labels), or a file; to compare, --sweep prior=..."""
    select: SelectFlag = "last"
    measures: bool = False
    """Add columns for equity and discriminability."""
    format: FormatFlag = "rich"
    jobs: JobsFlag = 0
    threads: ThreadsFlag = 0
    cluster: ClusterFlag = ""
    classes: ClassesFlag = "shared"
    no_cache: NoCacheFlag = False
    skip_unreadable: SkipFlag = False
    lists: ListsFlag = ""
    source_shares: SourceSharesFlag = ""
    target_shares: str = ""
    """The same for the target, by its labels; every method and seed has the same samples."""
    quiet: QuietFlag = False


def arguments_for(argv: Sequence[str]) -> type:
    """The flags above and those of the recipe."""
    return with_recipe_flags(Arguments)


def request_of(arguments: Any) -> "BenchRequest":
    """What the flags ask for; their dataclass is made from the recipe, so its type has no name."""
    from equida.experiments.run import BenchRequest

    return request_from(
        BenchRequest,
        arguments,
        dataset=benchmark(arguments.dataset),
        prior=arguments.prior or None,
        recipe_params=overrides(arguments.training),
        cache=not arguments.no_cache,
    )


def run(arguments: Arguments) -> int:
    """Do what is not done yet and print the table."""
    from equida.experiments.run import run_bench
    from equida.progress import display_mode, say
    from equida.report.published import published
    from equida.training.request import Remarks

    request = request_of(arguments)
    remarks = Remarks(say, display_mode(not arguments.quiet), advise=True)
    table = run_bench(request, remarks, published(benchmark(request.dataset)))
    print_results(table, arguments.format)
    return 1 if table.failures else 0
