"""Which method to use on two domains of one's own: a grid of one task, with label-free scores."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from equida.data import ArrayDomain, Domain
from equida.data.npz import npz_keys, open_npz
from equida.data.open import split_path
from equida.data.rows import take_rows
from equida.data.task import ClassRule
from equida.errors import InputError, enumerated
from equida.evaluation.validators import VALIDATORS
from equida.experiments.execute import Workers
from equida.experiments.grid import (
    Grid,
    check_given_shares,
    check_selected,
    chosen_methods,
    chosen_seeds,
)
from equida.experiments.run import keep_others_tables, prior_sweep, run_grid
from equida.experiments.sweep import variants
from equida.fields import PathText, check_request
from equida.files import file_sha256, open_atomic, refuse_to_replace, removed_if_unused
from equida.methods import Method
from equida.models.backbone import backbone_name
from equida.runs.entry import check_labelled
from equida.runs.table import BEST, Row, Table
from equida.training.build import row_shape
from equida.training.effect import check_effect
from equida.training.folder import RunFolder
from equida.training.plan import default_backbone
from equida.training.recipe import default_recipe, recipe
from equida.training.request import (
    AdaptRequest,
    OpenedRequest,
    Remarks,
    data_remarks,
    data_spec,
    open_request,
)
from equida.training.task_features import (
    spec_origin,
    task_origin,
    with_features,
    write_task_features,
)

METHODS = "source_only,nsm,cwsm,bnm,cdan"
"""What is compared where nothing is asked for."""


@dataclass(frozen=True)
class CompareRequest:
    """What somebody asks for: the arguments of `equida.compare`, and flags of `equida compare`."""

    source: PathText | Domain
    target: PathText | Domain
    out: Path
    methods: str | Sequence[str | type[Method]] = METHODS
    seeds: str | int | Sequence[int] = 3
    backbone: str | None = None
    weights: PathText | None = None
    recipe: str | None = None
    recipe_params: Mapping[str, Any] = field(default_factory=dict)
    prior: Any = None
    """None: uniform class shares."""
    select: str = "last"
    jobs: int = 0
    threads: int = 0
    cluster: str = ""
    classes: ClassRule = "shared"
    ignore_target_labels: bool = False
    skip_unreadable: bool = False
    cache: bool = True

    def __post_init__(self) -> None:
        check_request(self)


def run_compare(request: CompareRequest, remarks: Remarks) -> Table:
    """Do what is not done yet, write the tables beside the runs, and return the table.

    Raises:
        InputError: something is wrong with the request or with the data.
    """
    if request.ignore_target_labels and request.select == "oracle":
        raise InputError(
            "--select oracle needs target labels, and --ignore-target-labels leaves them out; give"
            " one of them"
        )
    workers = Workers(request.jobs, request.threads, request.cluster)
    if request.backbone:
        request = replace(request, backbone=backbone_name(request.backbone))
    methods = chosen_methods(request.methods)
    rows, seeds = variants(methods, prior_sweep(request.prior), None), chosen_seeds(request.seeds)
    check_selected(rows, request.select, request.recipe_params)
    if request.recipe:
        recipe(request.recipe, request.recipe_params)  # wrong names are found before data are read
    keep_others_tables(request.out)
    with removed_if_unused(request.out):
        folder = RunFolder(request.out)
        asked = _adapt_request(request)
        asked = with_features(asked, folder.path, remarks)
        opened = open_request(asked, data_spec(asked), remarks)
        _check_same_data(folder.path, opened)
        labelled = opened.task.judged.labels is not None
        check_labelled(request.select, labelled, opened.task.target.name)
        check_given_shares(rows, opened.task)
    task, spec, images = opened.task, opened.spec, None
    assert spec is not None
    on_images = row_shape(task.target) is None
    # Features are what a comparison is on, without being asked for.
    given = replace(asked, features=False)
    check_effect(given, task, task_origin(opened), on_features=on_images, say=remarks.say)
    backbone = request.backbone or default_backbone(task, None, features=True)
    if on_images:
        images, spec = spec, write_task_features(asked, opened, backbone, folder.path, remarks)
        backbone = "none"
    name = request.recipe or default_recipe(backbone)
    for line in data_remarks(task, recipe(name, request.recipe_params).batch_size):
        remarks.warn(line)
    weights = request.weights if backbone != "none" else None
    grid = Grid(
        None,
        tuple(rows),
        (task.name,),
        seeds,
        name,
        dict(request.recipe_params),
        backbone=backbone,
        weights=weights,
        weights_sha256=file_sha256(Path(weights)) if weights else "",
        feature_origin=spec_origin(spec),
        data_sha256=opened.sha256,
        pair=spec,
        images=images,
        labelled=labelled,
    )
    return run_grid(
        grid, folder, workers, remarks, select=request.select, scores=True,
        notes=partial(pick_notes, labelled=labelled),
    )  # fmt: skip


def pick_notes(table: Table, *, labelled: bool) -> list[str]:
    """Which method each label-free score would pick and, where it is labelled, what that costs."""
    if len(table.rows) == 1:  # nothing to pick from
        return []
    picked: dict[str, list[str]] = {}
    tied: dict[str, list[str]] = {}
    shown = {column.key for column in table.columns}
    for name in filter(shown.__contains__, VALIDATORS):
        best = [row.title for row in best_rows(table, name)]
        if best:
            (picked if len(best) == 1 else tied).setdefault(enumerated(best), []).append(name)
    notes = [_score_note(picked, tied)] if picked or tied else []
    if notes and labelled and (top := best_rows(table, table.columns[0].key)):
        notes.append(_label_note(table, top, picked))
    return notes


def _score_note(picked: Mapping[str, Sequence[str]], tied: Mapping[str, Sequence[str]]) -> str:
    """What the scores say; both arguments hold the names of scores by what they prefer."""
    if not picked:
        said = "Without a target label, no score picks one method."
    else:
        said = f"Without a target label, the scores would pick: {_by_title(picked)}."
    if len(picked) > 1:
        said += " They disagree, so none of them is proof."
    elif picked and not tied and sum(map(len, picked.values())) > 1:
        said += " They agree."
    for titles, names in tied.items():
        said += f" {titles} have the same {enumerated(names)}."
    return (
        f"{said} A score favours methods that maximise it themselves, and a collapsed classifier"
        " can score well; look at the predictions before you rely on one."
    )


def _label_note(table: Table, top: Sequence[Row], picked: Collection[str]) -> str:
    """What the accuracies say of the best rows, `top`, and of those that scores pick."""
    accuracy = table.columns[0]
    shown = {row.title: row.cells[accuracy.key].mean or 0.0 for row in table.rows}
    best = round(shown[top[0].title], accuracy.digits)
    lost = [
        f"{title} {best - round(shown[title], accuracy.digits):.{accuracy.digits}f}"
        for title in picked
        if title not in {row.title for row in top}
    ]
    given = [each.variant.overrides.values() for each in table.rows]
    chosen_by_labels = table.select == "oracle" or any("oracle" in values for values in given)
    aside = "" if chosen_by_labels else " (which choose no step and no method here)"
    titles = enumerated([row.title for row in top])
    best_is = f"the best is {titles}" if len(top) == 1 else f"{titles} are best"
    behind = "behind it" if len(top) == 1 else "behind them"
    of_picked = "of those that a score would pick"
    points = f"; {behind}, {of_picked}, by points of accuracy: {', '.join(lost)}" if lost else ""
    return f"With the target's labels{aside}, {best_is}{points}."


def _by_title(names: Mapping[str, Sequence[str]]) -> str:
    """Methods, with the scores that name them.

    >>> _by_title({"NSM": ["snd", "bnm"], "BNM": ["entropy"]})
    'NSM (snd, bnm); BNM (entropy)'
    """
    return "; ".join(f"{title} ({', '.join(each)})" for title, each in names.items())


def best_rows(table: Table, key: str) -> list[Row]:
    """The rows with the best figure of a column, as it is printed."""
    known = [row for row in table.rows if row.cells[key].mean is not None]
    return [row for row in known if len(known) == 1 or row.cells[key].rank == BEST]


def _adapt_request(request: CompareRequest) -> AdaptRequest:
    """What a single run would ask for; rows in memory are written beside the runs first."""

    def path(given: str | Domain, role: str) -> str:
        return given if isinstance(given, str) else stored_rows(given, request.out, role)

    return AdaptRequest(
        path(request.source, "source"),
        path(request.target, "target"),
        backbone=request.backbone,
        weights=request.weights,
        features=True,
        recipe=request.recipe,
        recipe_params=request.recipe_params,
        out=str(request.out),
        ignore_target_labels=request.ignore_target_labels,
        skip_unreadable=request.skip_unreadable,
        classes=request.classes,
        cache=request.cache,
    )


def stored_rows(domain: Domain, out: Path, role: str) -> str:
    """The file that rows in memory are written into, for the processes that do the runs.

    Raises:
        InputError: it is there already, with other rows.
    """
    if not isinstance(domain, ArrayDomain):
        raise InputError(f"{role} is {domain!r}; expected a path or rows")
    values = take_rows(domain.values, np.arange(len(domain)))  # with every view of them
    arrays: dict[str, Any] = {"X": values.to(torch.float32).cpu().numpy()}
    if domain.labels is not None:
        arrays |= {"y": domain.labels, "classes": np.array(domain.classes)}
    if domain.columns:
        arrays["columns"] = np.array(domain.columns)
    file = RunFolder(out).path / f"{role}.npz"
    written = ({"X"}, {"X", "y", "classes"})
    refuse_to_replace([file], lambda: npz_keys(file) - {"columns"} in written)
    there: dict[str, NDArray[Any]] = {}
    if file.exists():
        with open_npz(file) as stored:
            there = {name: stored.read(name) for name in stored.keys}
    # Labels may be left out of one of two calls with the same data.
    both = arrays.keys() & there.keys()
    if not all(np.array_equal(there[name], arrays[name], equal_nan=name == "X") for name in both):
        raise other_data(out)
    if arrays.keys() - both:
        with open_atomic(file) as stream:
            np.savez(stream, **{**there, **arrays})
    return str(file)


def _check_same_data(folder: Path, opened: OpenedRequest) -> None:
    """Refuse a folder with runs on two other domains, before anything in it is touched.

    The data may have moved, or have changed in place.
    """
    assert opened.spec is not None
    for file in sorted(folder.glob("*/config.json")):
        try:
            config = RunFolder(file.parent).read_config()
        except InputError:  # damaged: the run is done again
            continue
        there = config and (config.images or config.task)
        if not config or not there:
            continue
        pairs = [(each.source, each.target) for each in (there, opened.spec)]
        parts = [[split_path(path)[1] for path in pair] for pair in pairs]
        moved = config.data_sha256 == opened.sha256 and parts[0] == parts[1]
        if pairs[0] != pairs[1] and not moved:
            raise other_data(folder)
        return


def other_data(folder: Path) -> InputError:
    """The refusal of a folder that holds the runs of a comparison or search with other data."""
    return InputError(f"{folder} holds runs on other data; choose another --out (in Python, out=)")
