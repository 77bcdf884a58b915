"""`equida adapt`: a classifier for the target, from labelled source data or a finished run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from equida.cli._flags import DATASET_HELP, RecipeFlag, overrides, request_from, with_flags
from equida.cli._print import print_lines, print_search, run_line
from equida.cli._shared_flags import (
    ClassesFlag,
    ListsFlag,
    NoCacheFlag,
    QuietFlag,
    SkipFlag,
    SourceSharesFlag,
)

if TYPE_CHECKING:
    from equida.runs.read import Run
    from equida.training.request import AdaptRequest


@dataclass
class Arguments:
    """Adapt a classifier from labelled source data to unlabelled target data.

    equida adapt --source photos/ --target clipart/
    equida adapt -d office31 -s A -t W --data DIR --features
    equida adapt -d MY_DOMAINS/ -s photo -t sketch --features
    equida adapt --from RUN --target DIR        (no source data needed)
    equida adapt --from RUN -d office31 -t W --data DIR
    """

    source: Annotated[str, tyro.conf.arg(aliases=["-s"])] = ""
    """Folder of class folders, image list, feature file (FILE:DOMAIN), or a benchmark's domain."""
    target: Annotated[str, tyro.conf.arg(aliases=["-t"])] = ""
    """The same for the target. Labels found there are used for evaluation, and to leave out samples
    of classes that only one domain has (with --classes source: target samples alone)."""
    dataset: Annotated[str, tyro.conf.arg(aliases=["-d"], help=DATASET_HELP)] = ""
    data: str = ""
    """Folder or feature file of the benchmark."""
    method: str = "nsm"
    """What is added to source cross-entropy; see `equida list methods`. "a+b" composes two;
    package.module:Class is one of your own (the module is imported). auto tries a few methods on
    features and takes the one that a label-free validator prefers."""
    backbone: str = ""
    """Feature extractor for images, as for `equida features`; by default the benchmark's, or
    tf_efficientnet_lite0."""
    weights: str = ""
    """File with the backbone's weights (.safetensors or .pth)."""
    out: Annotated[str, tyro.conf.arg(aliases=["-o"])] = ""
    """Folder of the run; an unfinished run there is continued. By default one below runs/."""
    recipe: RecipeFlag = ""
    features: bool = False
    """Compute the backbone's features once and train on them: minutes instead of hours."""
    from_: Annotated[str, tyro.conf.arg(name="from")] = ""
    """A finished run to adapt further without source data."""
    seed: int = 0
    """Seed of everything random."""
    devices: int = 1
    """Processes on this machine, each with a GPU if there are any."""
    num_nodes: int = 1
    """Machines; start the same command on each (torchrun and srun do)."""
    accelerator: str = "auto"
    """cpu, gpu or auto."""
    threads: int = 0
    """Threads of torch in each process; 0: one for features, whose steps are too small to be
    shared, and as many as torch has for images."""
    classes: ClassesFlag = "shared"
    ignore_target_labels: bool = False
    """The target's folders are not classes (but dates, cameras): use all images below it, without
    labels."""
    no_cache: NoCacheFlag = False
    skip_unreadable: SkipFlag = False
    lists: ListsFlag = ""
    source_shares: SourceSharesFlag = ""
    target_shares: str = ""
    """The same for the target, by its labels."""
    trust: bool = False
    """Run the code that the record of the run behind --from names, after saying what it is; without
    this flag such a record is refused."""
    tensorboard: bool = False
    """Write curves for TensorBoard into the run's folder."""
    quiet: QuietFlag = False


def arguments_for(argv: Sequence[str]) -> type:
    """The flags above, those of the recipe, and the method's hyper-parameters."""
    return with_flags(Arguments, argv)


def request_of(arguments: Any) -> "AdaptRequest":
    """What the flags ask for; their dataclass is made for the method, so its type has no name."""
    from equida.training.request import AdaptRequest

    return request_from(
        AdaptRequest,
        arguments,
        method_params=overrides(arguments.hyper, arguments.method),
        recipe_params=overrides(arguments.training),
        from_run=arguments.from_ or None,
        cache=not arguments.no_cache,
    )


def run(arguments: Arguments) -> int:
    """Do the run and print its result."""
    from equida.api import do_request
    from equida.progress import display_mode, say
    from equida.training.request import Remarks

    remarks = Remarks(say, display_mode(not arguments.quiet), advise=True)
    done = do_request(request_of(arguments), remarks, tensorboard=arguments.tensorboard)
    if done.result is not None:  # only the first process of the run has it
        if done.search is not None:
            print_search(done.search, done.task)
        print_result(done)
    return 0


def print_result(done: "Run") -> None:
    """Print the table of a run's result, and what to do with the run."""
    from rich.markup import escape
    from rich.table import Table

    from equida.progress import safe_console
    from equida.runs.formats import pick_rows
    from equida.training.aims import aim_lines

    table = Table(title=escape(done.title))
    (first, *names), *rows = pick_rows(done)
    table.add_column(first, overflow="fold")
    for name in names:
        table.add_column(name, justify="right", overflow="fold")
    for number, row in enumerate(rows):
        table.add_row(*row, style=None if number else "bold")
    safe_console().print(table)
    _print_shares(done)
    aims = aim_lines(done.config.aims, done.classes)
    print_lines(*aims, *done.remarks, run_line(done))


def _print_shares(done: "Run") -> None:
    """Print how large the target's classes are by what the run knows without labels."""
    from rich.table import Table
    from rich.text import Text

    from equida.progress import safe_console
    from equida.runs.target import share_rows

    rows = share_rows(done.class_shares, done.classes)
    if not rows:
        return
    console = safe_console()
    table = Table(box=None, pad_edge=False, header_style="dim")
    (first, *titles), *others = rows
    # In a narrow terminal the names are cut, not the numbers.
    room = console.width - sum(len(title) + 2 for title in titles)
    table.add_column(first, no_wrap=True, overflow="ellipsis", max_width=max(room, 6))
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True, min_width=len("100.0 %"))
    for name, *cells in others:
        table.add_row(Text(name), *cells)
    console.print(table)
