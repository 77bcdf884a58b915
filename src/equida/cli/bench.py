"""`equida bench`: every method on every task, the paper's table, resumable, in parallel."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from rich.console import Console

from equida.errors import InputError

if TYPE_CHECKING:
    from equida.bench.grid import Grid
    from equida.data import Benchmark, Task
    from equida.report.tables import Comparison


@dataclass
class Arguments:
    """Run every method on every task and print the paper's table with the paper's numbers beside.

    equida bench office31 --data DIR --features --out RUNS
    equida bench office31 --data DIR --methods cwsm,nsm --sweep r=0.5,1 --out RUNS

    The same command again goes on where it was: finished runs are not repeated, a changed recipe is
    a new run. Exit code 0: all runs are finished; 1: some failed, and the next call tries them
    again.
    """

    dataset: Annotated[str, tyro.conf.Positional, tyro.conf.arg(metavar="DATASET")]
    """office31, office_home, visda2017 or digits."""
    out: Annotated[Path, tyro.conf.arg(aliases=["-o"])]
    """Folder of the runs and of table.md, table.tex, table.csv and table.json."""
    data: str = ""
    """Folder or feature file of the data set; digits needs none."""
    methods: str = "all"
    """Names with commas between, "a+b" composes two; all: the paper's eleven; every: all known."""
    tasks: str = ""
    """Such as A2W,D2W; all by default."""
    seeds: str = "3"
    """How many, or a list of them: 0,1,7."""
    backbone: str = ""
    """Feature extractor for images; by default the paper's, with --features the small one."""
    weights: str = ""
    """File with the backbone's weights (.safetensors or .pth)."""
    features: bool = False
    """Compute the backbone's features once, into OUT/features.safetensors, and train on them."""
    recipe: str = ""
    """paper, features or digits; chosen by the data unless set."""
    sweep: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Vary a hyper-parameter or a field of the recipe: r=0.5,1 or trade_off=0.5:2.5:0.5. Can be
    given several times; a method without it is run once."""
    select: str = "last"
    """Which step of a run the table shows: last, oracle (uses target labels), or a validator."""
    measures: bool = False
    """Columns for equity and discriminability too."""
    format: Literal["rich", "md", "tex", "csv", "json"] = "rich"
    """How the table is printed."""
    jobs: Annotated[int, tyro.conf.arg(aliases=["-j"])] = 0
    """Runs at once; 0: one for each core, or for each GPU."""
    cluster: str = ""
    """dask://HOST:PORT: do the runs there; its workers (one thread each: dask worker --nthreads 1)
    must see DATA and OUT under these paths."""
    skip_unreadable: bool = False
    """Leave out images that cannot be read instead of stopping."""
    quiet: bool = False
    """No progress."""


def arguments_for(argv: Sequence[str]) -> type:
    """The flags above and those of the recipe."""
    from equida.cli.flags import recipe_flags

    training = recipe_flags()
    made = dataclasses.make_dataclass(
        Arguments.__name__,
        [
            (
                "training",
                Annotated[training, tyro.conf.OmitArgPrefixes],
                dataclasses.field(default_factory=training),
            )
        ],
        bases=(Arguments,),
    )
    made.__doc__ = Arguments.__doc__
    return made


def run(arguments: Any) -> int:
    """Do what is not done yet, write the tables, print one."""
    from equida.bench.grid import plan, unique
    from equida.bench.results import SELECTIONS, read_records
    from equida.bench.schedule import Workers, dask_address, do_runs
    from equida.bench.work import is_finished
    from equida.cli.grid_progress import GridProgress
    from equida.report.tables import comparison
    from equida.training.folder import RunFolder

    if arguments.select not in SELECTIONS:
        known = ", ".join(SELECTIONS)
        raise InputError(f"--select is {arguments.select!r}; expected one of {known}")
    if arguments.jobs < 0:
        raise InputError(f"--jobs is {arguments.jobs}; expected a number of at least 0")
    if arguments.cluster:
        dask_address(arguments.cluster)
    RunFolder(arguments.out)
    grid = make_grid(arguments)
    planned = unique(plan(grid, arguments.out))
    workers = Workers(arguments.jobs, cluster=arguments.cluster).resolved()

    def table() -> "Comparison":
        return comparison(
            read_records(planned),
            grid.benchmark,
            grid.tasks,
            grid.seeds,
            select=arguments.select,
            measures=arguments.measures,
            network=network_title(grid),
        )

    todo = [run for run in planned if not is_finished(run.folder)]
    with GridProgress(planned, todo, workers, table, quiet=arguments.quiet) as progress:
        for outcome in do_runs(todo, workers) if todo else ():
            progress.ended(outcome)
    final = table()
    write_tables(final, arguments.out)
    show(final, arguments.format)
    return 1 if final.failures else 0


def make_grid(arguments: Any) -> "Grid":
    """What the user asks for; features are computed here if they are to be."""
    from equida.bench.grid import Grid, chosen_methods, chosen_seeds, chosen_tasks
    from equida.bench.sweep import parse_sweep, variants
    from equida.cli.flags import overrides
    from equida.data import benchmark
    from equida.training.config import TaskSource
    from equida.training.identity import data_sha256
    from equida.training.recipe import RECIPES

    chosen = benchmark(arguments.dataset)
    tasks = chosen_tasks(arguments.tasks, chosen.name)
    sweeps = [parse_sweep(text) for text in arguments.sweep]
    found = variants(chosen_methods(arguments.methods), sweeps, chosen.name)
    seeds = chosen_seeds(arguments.seeds)
    data, backbone = network_of(arguments, chosen, tasks)
    usual = {"none": "features", "lenet": "digits"}.get(backbone, "paper")
    name = arguments.recipe or usual
    RECIPES[name]
    return Grid(
        chosen.name,
        tuple(found),
        tasks,
        seeds,
        name,
        overrides(arguments.training),
        data,
        backbone,
        arguments.weights or None,
        extractor(data),
        arguments.skip_unreadable,
        data_sha256(TaskSource("", "", chosen.name, data)),
    )


def network_of(arguments: Any, chosen: "Benchmark", tasks: Sequence[str]) -> tuple[str | None, str]:
    """Where the samples are, and the backbone that is trained on them."""
    from equida.cli.plan import backbone_of
    from equida.data import ArrayDomain
    from equida.training.build import row_shape
    from equida.training.config import TaskSource
    from equida.training.tasks import open_task

    data = str(Path(arguments.data).resolve()) if arguments.data else None
    source, target = (domain.key for domain in chosen.task(tasks[0]))
    where = TaskSource(source, target, chosen.name, data, arguments.skip_unreadable)
    task, _ = open_task(where)
    backbone = backbone_of(arguments, where, task, None)
    if isinstance(task.target, ArrayDomain):
        if backbone != "none" and len(row_shape(task.target) or ()) == 1:
            raise InputError(f"--backbone is {backbone!r}, but {data} holds features; leave it out")
        return data, backbone
    if arguments.features:
        return features_of(arguments, chosen, backbone), "none"
    warn_of_time(arguments, task, backbone)
    return data, backbone


def warn_of_time(arguments: Any, task: "Task", backbone: str) -> None:
    """On a machine without GPU, say how long a run will take and how long features would."""
    import torch

    from equida.cli.flags import overrides
    from equida.cli.plan import SMALL
    from equida.cli.say import say
    from equida.training.estimate import duration, estimate
    from equida.training.recipe import recipe

    if torch.cuda.is_available() or arguments.cluster:
        return
    weights = Path(arguments.weights) if arguments.weights else None
    chosen = recipe(arguments.recipe or "paper", overrides(arguments.training))
    images = len(task.source) + len(task.target)
    times = estimate(backbone, weights, images, chosen, arguments.backbone or SMALL)
    say(
        f"no GPU: each run that trains all of {backbone} takes about"
        f" {duration(times.fine_tuning)}; with --features the first takes about"
        f" {duration(times.features)}, further ones seconds"
    )


def features_of(arguments: Any, chosen: "Benchmark", backbone: str) -> str:
    """The file with the features of every domain, computed once."""
    from equida.cli.features import Arguments as FeatureArguments
    from equida.cli.features import extract, image_domains
    from equida.cli.say import say
    from equida.models.backbone import ALIASES

    file = (arguments.out / "features.safetensors").resolve()
    made = extractor(str(file))
    if made and made["backbone"] != ALIASES.get(backbone, backbone):
        raise InputError(
            f"{file} holds features of {made['backbone']}, and runs there are on them;"
            f" choose another --out for {backbone}"
        )
    domains = image_domains(chosen.name, Path(arguments.data), ())
    say(f"features of {sum(map(len, domains)):,} images with {backbone}: {file}")
    weights = Path(arguments.weights) if arguments.weights else None
    extract(
        domains,
        FeatureArguments(
            images=chosen.name,
            out=file,
            backbone=backbone,
            weights=weights,
            skip_unreadable=arguments.skip_unreadable,
        ),
    )
    return str(file)


def extractor(data: str | None) -> dict[str, str] | None:
    """Which network made a feature file, where it says so."""
    from equida.cli.plan import extractor_of
    from equida.training.config import TaskSource

    found = extractor_of(TaskSource("", data)) if data else None
    return dict(found) if found else None


def network_title(grid: "Grid") -> str:
    """What the runs were trained on, for the table's title."""
    if grid.extractor:
        return f"heads on frozen features of {grid.extractor['backbone']}"
    if grid.backbone == "none":
        return f"heads on the features in {Path(grid.data or '').name}"
    return grid.backbone


def write_tables(table: "Comparison", folder: Path) -> None:
    """The table in every format, beside the runs."""
    from equida.report.formats import FORMATS
    from equida.training.folder import RunFolder

    for ending, made in FORMATS.items():
        RunFolder(folder).write_text(f"table.{ending}", made(table))


def show(table: "Comparison", kind: str) -> None:
    """The table on standard output."""
    from equida.report.formats import FORMATS
    from equida.report.terminal import print_table

    if kind == "rich":
        print_table(table, Console())
    else:
        print(FORMATS[kind](table), end="")
