"""A comparison from start to end: which runs it has, the features they need, and its table."""

import dataclasses
import itertools
import os
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from equida import plugins
from equida.class_shares import shares_text
from equida.data import ArrayDomain, Benchmark, Task, benchmark
from equida.data.feature_cache import ExtractionOptions
from equida.data.feature_file import FeatureOrigin, feature_origin
from equida.data.spec import DataPlaces, OpenedTask, data_sha256, open_task
from equida.data.task import ClassRule
from equida.errors import InputError
from equida.experiments.cost import expensive_methods
from equida.experiments.execute import GridResults, Workers, do_runs
from equida.experiments.grid import (
    Grid,
    check_given_shares,
    check_selected,
    chosen_methods,
    chosen_seeds,
    chosen_tasks,
    plan,
)
from equida.experiments.sweep import MOST_VALUES, Sweep, parse_sweep, variants
from equida.experiments.watch import GridWatch
from equida.fields import PathText, check_request
from equida.files import file_sha256, json_has, refuse_to_replace, removed_if_unused
from equida.methods import Method
from equida.models.backbone import ALIASES, backbone_name
from equida.models.extractor import DEFAULT_BACKBONE, FeatureExtractor, data_set_images
from equida.progress import duration
from equida.runs.entry import check_labelled
from equida.runs.formats import FORMATS
from equida.runs.group import network_title
from equida.runs.table import Reference, Table, make_table
from equida.runs.target import imbalance_notes
from equida.runs.variant import Variant
from equida.training.build import SeededBackbone
from equida.training.effect import check_effect
from equida.training.estimate import estimate
from equida.training.folder import RunFolder
from equida.training.plan import default_backbone
from equida.training.recipe import default_recipe, recipe
from equida.training.request import (
    Remarks,
    benchmark_spec,
    chosen_lists,
    chosen_shares,
    data_remarks,
)
from equida.training.task_features import extract_shared, spec_origin

MOST_RUNS = 100_000

Sweeps = Mapping[str, Sequence[Any]] | Sequence[str]
"""By name the values, or texts such as "r=0.5,1"."""


@dataclass(frozen=True)
class BenchRequest:
    """What somebody asks for: the arguments of `equida.bench`, and the flags of `equida bench`."""

    dataset: PathText | Benchmark
    out: Path
    data: PathText | None = None
    methods: str | Sequence[str | type[Method]] = "all"
    tasks: str | Sequence[str] = ""
    seeds: str | int | Sequence[int] = 3
    backbone: str | None = None
    weights: PathText | None = None
    features: bool = False
    recipe: str | None = None
    recipe_params: Mapping[str, Any] = field(default_factory=dict)
    sweep: Mapping[str, Any] | Sequence[str] = ()
    """As `Sweeps`."""
    prior: Any = None
    """None: uniform class shares."""
    select: str = "last"
    measures: bool = False
    jobs: int = 0
    cluster: str = ""
    skip_unreadable: bool = False
    source_shares: str = ""
    target_shares: str = ""
    lists: PathText | None = None
    classes: ClassRule = "shared"
    cache: bool = True
    threads: int = 0

    def __post_init__(self) -> None:
        check_request(self)


def run_bench(request: BenchRequest, remarks: Remarks, reference: Reference | None = None) -> Table:
    """Do what is not done yet, write the tables beside the runs, and return the table.

    Raises:
        InputError: something is wrong with the request or with the data.
    """
    if request.backbone:
        request = dataclasses.replace(request, backbone=backbone_name(request.backbone))
    workers = Workers(request.jobs, request.threads, request.cluster)
    keep_others_tables(request.out)
    with removed_if_unused(request.out):
        folder = RunFolder(request.out)
        grid = make_grid(request, remarks)
    return run_grid(
        grid, folder, workers, remarks, select=request.select, measures=request.measures,
        scores=not grid.labelled, reference=reference,
    )  # fmt: skip


def keep_others_tables(folder: Path) -> None:
    """Refuse a folder with tables that somebody else has made."""
    refuse_to_replace(
        [folder / f"table.{ending}" for ending in FORMATS],
        lambda: json_has(folder / "table.json", "columns", "rows"),
    )


def run_grid(
    grid: Grid,
    folder: RunFolder,
    workers: Workers,
    remarks: Remarks,
    *,
    select: str = "last",
    measures: bool = False,
    scores: bool = False,
    reference: Reference | None = None,
    notes: Callable[[Table], Sequence[str]] = lambda table: (),
) -> Table:
    """Do the runs of a grid that are not done yet, write its tables, and return the table.

    Args:
        grid: the runs.
        folder: where they and the tables are written.
        workers: where they are done.
        select: which evaluation of a run counts.
        measures: whether the table has columns for equity and discriminability.
        scores: whether it has columns for the label-free scores.
        reference: published numbers to stand beside ours.
        notes: what else is to be said below the finished table.
    """
    workers = workers.resolved(on_rows=grid.backbone == "none")
    planned = plan(grid, folder.path)
    if workers.elsewhere:
        used = {each.name for run in planned for each in run.config.plugins} | {grid.backbone}
        plugins.require_importable(sorted(used))
    results = GridResults(planned)
    # Published numbers are of the whole data: they have nothing to say beside a part of them.
    protocol = grid.data_spec(grid.tasks[0]).protocol

    def table() -> Table:
        return make_table(
            results.entries,
            benchmark=grid.data_set,
            tasks=grid.tasks,
            seeds=grid.seeds,
            select=select,
            measures=measures,
            network=network_title(planned[0].config),
            protocol=protocol,
            reference=None if protocol else reference,
            data_title="" if grid.data_set else grid.tasks[0],
            scores=scores,
            labelled=grid.labelled,
        )

    todo = results.unfinished
    if costly := expensive_methods(todo):
        remarks.say(costly)
    done = [entry for entry in results.entries if entry.result is not None]
    with GridWatch(len(planned), todo, workers, table, remarks.mode, done) as watch:
        for ended in do_runs(todo, workers) if todo else ():
            watch.ended(results.update(ended), ended)
    final = table()
    finished = ((e.variant.title, e.task, e.result) for e in results.entries if e.result)
    said = (*final.notes, *imbalance_notes(finished), *notes(final))
    final = dataclasses.replace(final, notes=said)
    for ending, form in FORMATS.items():
        folder.write_text(f"table.{ending}", form(final))
    return final


def make_grid(request: BenchRequest, remarks: Remarks) -> Grid:
    """The runs that are asked for; features are computed here if they are wanted."""
    chosen = benchmark(request.dataset)
    tasks = chosen_tasks(request.tasks, chosen)
    name = chosen.registered_name
    rows = variants(chosen_methods(request.methods), requested_sweeps(request), name)
    check_selected(rows, request.select, request.recipe_params)
    seeds = chosen_seeds(request.seeds)
    if (count := len(rows) * len(tasks) * len(seeds)) > MOST_RUNS:
        raise InputError(
            f"that is {len(rows)} variants x {len(tasks)} tasks x {len(seeds)} seeds, {count} runs;"
            f" expected at most {MOST_RUNS}"
        )
    if request.recipe:
        recipe(request.recipe, request.recipe_params)  # wrong names are found before data are read
    data = os.path.abspath(request.data) if request.data else None
    choice = {
        "classes": request.classes,
        "skip_unreadable": request.skip_unreadable,
        "lists": chosen_lists(chosen, data, request.lists),
        **chosen_shares(request.source_shares, request.target_shares),
    }
    found = _network(request, chosen, tasks, rows, choice, remarks)
    weights = os.path.abspath(request.weights) if request.weights else None
    return Grid(
        chosen,
        tuple(rows),
        tasks,
        seeds,
        request.recipe or default_recipe(found.backbone),
        dict(request.recipe_params),
        found.data,
        found.backbone,
        weights,
        file_sha256(Path(weights)) if weights and found.backbone != "none" else "",
        found.origin,
        found.digest,
        choice,
        labelled=found.labelled,
    )


def requested_sweeps(request: BenchRequest) -> list[Sweep]:
    """What is varied, and the prior, which is a sweep of one value."""
    varied, prior = sweeps(request.sweep), prior_sweep(request.prior)
    if prior and any(sweep.name.rpartition(".")[2] == "prior" for sweep in varied):
        raise InputError("prior is given by itself and in a sweep; give it once")
    return [*varied, *prior]


def prior_sweep(prior: Any) -> list[Sweep]:
    """The sweep that gives every method with a prior this one; none for None.

    >>> prior_sweep([0.5, 0.5])
    [Sweep(name='prior', values=('[0.5, 0.5]',))]
    """
    return [] if prior is None else [Sweep("prior", (_hashable(prior),))]


def sweeps(given: Sweeps) -> list[Sweep]:
    """What is varied.

    >>> sweeps({"r": [0.5, 1]}), sweeps(["alpha=1:2:0.5"])
    ([Sweep(name='r', values=(0.5, 1))], [Sweep(name='alpha', values=(1.0, 1.5, 2.0))])
    """
    if isinstance(given, Mapping):
        return [Sweep(name, _listed(name, values)) for name, values in given.items()]
    return [parse_sweep(text) for text in given]


def _listed(name: str, values: Sequence[Any]) -> tuple[Any, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError(f"sweep {name!r} is {values!r}; expected a list of values")
    found = tuple(map(_hashable, itertools.islice(values, MOST_VALUES + 1)))
    if not 0 < len(found) <= MOST_VALUES:
        raise InputError(f"sweep {name!r} has no values or more than {MOST_VALUES}")
    return found


def _hashable(value: Any) -> Any:
    """Class shares in their one spelling, which can be compared; other values as they are."""
    return value if isinstance(value, Hashable) else shares_text(value, "prior")


@dataclass(frozen=True)
class _Network:
    """What is trained, and on which data."""

    data: str | None
    backbone: str
    origin: FeatureOrigin | None
    digest: str
    labelled: bool = True


def _network(
    request: BenchRequest,
    chosen: Benchmark,
    tasks: Sequence[str],
    variants: Sequence[Variant],
    choice: Mapping[str, Any],
    remarks: Remarks,
) -> _Network:
    if request.weights and not Path(request.weights).is_file():
        raise InputError(f"--weights {request.weights} does not exist; expected a file")
    every, labelled = _open_tasks(request, chosen, tasks, variants, choice, remarks)
    opened = every[0]
    task, data = opened.task, opened.spec.data
    backbone = request.backbone or default_backbone(task, chosen, request.features)
    rows = isinstance(task.target, ArrayDomain)
    origin = spec_origin(opened.spec) if rows else None
    varied = {name: value for row in variants for name, value in row.recipe.items() if value}
    asked = dataclasses.replace(request, recipe_params={**request.recipe_params, **varied})
    on_features = request.features and not rows
    check_effect(asked, task, origin, on_features=on_features, say=remarks.say)
    network = "none" if rows or request.features else backbone
    size = recipe(request.recipe or default_recipe(network), request.recipe_params).batch_size
    for line in dict.fromkeys(line for each in every for line in data_remarks(each.task, size)):
        remarks.warn(line)
    if rows:
        return _Network(data, backbone, origin, opened.digest, labelled)
    if request.features:
        file = _write_features(request, chosen, backbone, opened.places, remarks)
        digest = data_sha256(dataclasses.replace(opened.spec, data=file))
        return _Network(file, "none", feature_origin(file), digest, labelled)
    _advise(request, task, backbone, remarks)
    return _Network(data, backbone, None, opened.digest, labelled)


def _open_tasks(
    request: BenchRequest,
    chosen: Benchmark,
    tasks: Sequence[str],
    variants: Sequence[Variant],
    choice: Mapping[str, Any],
    remarks: Remarks,
) -> tuple[list[OpenedTask], bool]:
    """The tasks, and whether any target has labels.

    All tasks of a user's data set are opened, and left-out samples are reported.
    The domains of a registered data set have one class list, so there one task stands for all.
    """
    places, opened = DataPlaces(), []
    for task in tasks if chosen.own else tasks[:1]:
        source, target = (domain.key for domain in chosen.task(task))
        spec = benchmark_spec(chosen, source, target, request.data, **choice)
        opened.append(open_task(spec, places=places))
        check_given_shares(variants, opened[-1].task)
        if opened[-1].task.left_out:
            remarks.warn(f"{task}: {opened[-1].task.left_out}")
    labelled = any(each.task.judged.labels is not None for each in opened)
    if not labelled:
        remarks.say(
            f"the target of {', '.join(tasks)} has no labels: the table has no accuracies but"
            " label-free scores"
        )
    check_labelled(request.select, labelled, f"the target of {', '.join(tasks)}")
    return opened, labelled


def _write_features(
    request: BenchRequest, chosen: Benchmark, backbone: str, places: DataPlaces, remarks: Remarks
) -> str:
    """The file with the features of every domain, computed once."""
    file = (request.out / "features.safetensors").absolute()
    made = feature_origin(file)
    if made is not None and made.backbone != ALIASES.get(backbone, backbone):
        raise InputError(
            f"{file} holds features of {made.backbone}, and the runs there are on them;"
            f" choose another --out for {backbone}"
        )
    place = places[os.path.abspath(request.data or chosen.root)]
    domains = data_set_images(chosen, place)
    weights = Path(request.weights) if request.weights else None
    extractor = FeatureExtractor(backbone, weights, remarks.say)
    options = ExtractionOptions(skip_unreadable=request.skip_unreadable)
    extract_shared(extractor, domains, file, options, remarks, cache=request.cache)
    return str(file)


def _advise(request: BenchRequest, task: Task, backbone: str, remarks: Remarks) -> None:
    """On a machine without a GPU, say how long a run will take and how long features would."""
    import torch

    if not remarks.advise or torch.cuda.is_available() or request.cluster:
        return
    weights = Path(request.weights) if request.weights else None
    chosen = recipe(request.recipe or default_recipe(backbone), request.recipe_params)
    loaded = SeededBackbone.load(backbone, weights, 0)
    images = len(task.source) + len(task.target)
    times = estimate(loaded.backbone, images, chosen, request.backbone or DEFAULT_BACKBONE)
    remarks.say(
        f"no GPU: each run that trains all of {backbone} takes about"
        f" {duration(times.fine_tuning)}; with --features the first takes about"
        f" {duration(times.features)}, further ones seconds"
    )
