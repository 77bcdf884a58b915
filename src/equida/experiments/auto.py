"""`--method auto`: a small, fixed search whose result is an ordinary run.

The settings of `equida.methods.auto` are tried one after another in the folder `candidates` of the
run; the default validator chooses, and the run is then done with the chosen setting, as any other.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from equida.data import ArrayDomain
from equida.errors import InputError
from equida.evaluation.validators import DEFAULT_VALIDATOR
from equida.files import locked
from equida.methods import check_overrides
from equida.methods.aiming import PRIOR_FIELDS
from equida.methods.auto import AUTO, auto_candidates, checked_prior
from equida.progress import duration
from equida.runs.search import FILE, Search, Tried, read_search
from equida.torch_modes import threads_for, torch_threads
from equida.training.aims import check_priors
from equida.training.evaluate import auto_score
from equida.training.folder import RunFolder
from equida.training.launch import watch
from equida.training.loop import train
from equida.training.plan import Plan
from equida.training.processes import make_fabric
from equida.training.request import AdaptRequest, Remarks
from equida.training.target_check import looks_imbalanced


def first_request(request: AdaptRequest) -> AdaptRequest:
    """The request for a run of the first candidate, whose plan all of them share.

    Raises:
        InputError: the request has something that a search cannot have.
    """
    prior = checked_prior(request.method_params, f"--method {AUTO}")
    if request.devices * request.num_nodes > 1:
        raise InputError(
            f"--method {AUTO} works on one process; find the method without --devices and"
            " --num-nodes, and then adapt with it"
        )
    method, overrides = auto_candidates(prior, source_free=bool(request.from_run))[0]
    return dataclasses.replace(request, method=method, method_params=overrides, purpose=AUTO)


def choose_plan(plan: Plan, request: AdaptRequest, remarks: Remarks) -> Plan:
    """The plan with the candidate that the default validator prefers; target labels do not count.

    It is made from the plan of the first candidate.

    Raises:
        InputError: the data are images, the folder holds something else, or no candidate could be
            run to its end.
    """
    if not isinstance(plan.task.target, ArrayDomain):
        raise InputError(
            f"--method {AUTO} compares methods on rows such as features, and the target has images;"
            " add --features"
        )
    _check_folder(plan.folder)
    # The plan has them as they were read: a file of shares is not read again.
    prior = {name: plan.config.overrides[name] for name in request.method_params}
    with torch_threads(_threads(plan, request)):
        imbalanced = not prior and looks_imbalanced(plan.task)
    if imbalanced:
        remarks.say(
            "the target looks imbalanced: candidates aim at estimated class shares (--prior gives"
            " others), and cluster labels are left out"
        )
    candidates = auto_candidates(prior, source_free=bool(request.from_run), imbalanced=imbalanced)
    with locked(plan.folder):
        tried, score = [], DEFAULT_VALIDATOR
        for number, (method, overrides) in enumerate(candidates):
            one, result = _try(plan, number, method, overrides, request, remarks)
            if result:
                score, value = auto_score(result)
                missing = f"its {score} cannot be computed" if value is None else ""
                one = dataclasses.replace(one, score=value, reason=missing)
            shown = one.reason if one.score is None else f"{score} {one.score:.4f}"
            taken = f" in {duration(one.seconds)}" if one.seconds else ""
            remarks.say(f"{number + 1}/{len(candidates)} {one.title}: {shown}{taken}")
            tried.append(one)
        search = Search("auto", score, False, tuple(tried))
        if search.chosen is None:
            raise InputError(f"{search.summary}; of the first: {tried[0].reason}")
        search.write(plan.folder)
    remarks.say(search.summary)
    return _plan(plan, search.chosen.method, search.chosen.overrides)


def _plan(
    plan: Plan, method: str, overrides: Mapping[str, Any], folder: Path | None = None
) -> Plan:
    checked = check_overrides(method, overrides)
    config = dataclasses.replace(plan.config, method=method, overrides=checked)
    return dataclasses.replace(plan, config=config, folder=folder or plan.folder)


def _check_folder(folder: Path) -> None:
    """Refuse a folder with a run or a search that is not of this kind."""
    earlier = read_search(folder)
    if earlier is None and (folder / "result.json").exists():
        raise InputError(f"{folder} holds a finished run of another kind; choose another --out")
    if earlier is not None and earlier.kind != "auto":
        raise InputError(f"{folder} holds {FILE} of equida tune; choose another --out")


def _try(
    plan: Plan,
    number: int,
    method: str,
    overrides: Mapping[str, Any],
    request: AdaptRequest,
    remarks: Remarks,
) -> tuple[Tried, dict[str, Any] | None]:
    """Do the run of a candidate, unless it is done already; its result is None where it fails."""
    # All candidates have the same prior: a folder holds one search.
    own = {name: value for name, value in overrides.items() if name not in PRIOR_FIELDS}
    words = "-".join([method, *(f"{name}={value:g}" for name, value in own.items())])
    mine = _plan(plan, method, overrides, plan.folder / "candidates" / words)
    one = Tried(number, method, overrides, "failed", default=not number, folder=str(mine.folder))
    result = mine.existing_result()
    if result is None:
        there = RunFolder(mine.folder).read_config()
        if there and not there.describes_same_run(mine.config):
            raise InputError(
                f"{mine.folder} holds an unfinished run of another configuration"
                f" ({there.difference(mine.config)}); choose another --out"
            )
        try:
            result = _train(mine, request, remarks)
        except InputError as error:  # the loss is not finite; the next candidate may do better
            return dataclasses.replace(one, reason=str(error)), None
    return dataclasses.replace(one, state="finished", seconds=float(result["seconds"])), result


def _train(plan: Plan, request: AdaptRequest, remarks: Remarks) -> dict[str, Any]:
    """The result of a run without what only the chosen one needs: calibration, a look at shares."""
    config, folder = plan.config, plan.folder
    config.check()
    check_priors(config, plan.task)
    fabric = make_fabric(request.accelerator, precision=config.recipe.precision)
    with torch_threads(_threads(plan, request)), watch(config, remarks.mode) as observer:
        trained = train(config, plan.task, folder=folder, fabric=fabric, observers=(observer,))
    return trained.result


def _threads(plan: Plan, request: AdaptRequest) -> int:
    return threads_for(request.threads, on_rows=plan.config.backbone == "none")
