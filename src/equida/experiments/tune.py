"""A search for the setting of a method, and for the method, that a label-free validator prefers.

A search is a folder: `search.json` says what was tried, `study.db` is optuna's database unless
another one is named, `trials/` has a run for each setting, and `chosen/` is an ordinary run with
the setting that was chosen.
"""

import dataclasses
import hashlib
import json
import socket
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from equida import plugins
from equida.data import Domain, benchmark
from equida.errors import InputError, enumerated
from equida.evaluation.validators import DEFAULT_VALIDATOR, VALIDATORS
from equida.experiments.compare import stored_rows
from equida.experiments.execute import Ended, Workers, do_runs, finished_result
from equida.experiments.grid import Judge, PlannedRun, chosen_methods, folder_name
from equida.experiments.study import (
    Setting,
    Study,
    import_optuna,
    search_space,
    sqlite_url,
    storage_errors,
)
from equida.fields import FieldError, check_request
from equida.files import locked, remove, removed_if_unused
from equida.methods import Method
from equida.progress import Bar, duration
from equida.runs.formats import html_table
from equida.runs.read import Run, load_run
from equida.runs.search import Search, State, Tried, read_search, rows
from equida.runs.variant import Variant
from equida.training.aims import check_priors
from equida.training.config import RunConfig
from equida.training.evaluate import kept_figure
from equida.training.folder import RunFolder
from equida.training.launch import launch
from equida.training.plan import Plan, make_plan
from equida.training.request import AdaptRequest, Remarks, default_pair_folder
from equida.training.trust import with_plugins

MOST_TRIALS = 100_000
OTHER = {"recipe": "another recipe", "code": "other code", "data_sha256": "other data"}
"""How a message calls what differs where its values are not to be read."""
UNTOUCHED = 1 / 3
"""The share of a run's steps before which it is not stopped: early scores say little."""


@dataclass(frozen=True)
class TuneRequest:
    """What somebody asks for: the arguments of `equida.tune`, and the flags of `equida tune`."""

    run: AdaptRequest
    """The data, the recipe and the seed. Its method is not looked at, and images are not trained
    on: their features are computed once."""
    out: Path | None = None
    task: str | None = None
    """The task of the benchmark that `run` names, in place of its source and target."""
    method: str | Sequence[str | type[Method]] = "nsm"
    trials: int = 50
    validator: str | None = None
    oracle: bool = False
    storage: str | None = None
    jobs: int = 0
    threads: int = 0
    cluster: str = ""

    def __post_init__(self) -> None:
        check_request(self)


@dataclass(frozen=True, repr=False)
class Tuned:
    """A search that has ended: what was tried, and the run with the setting that was chosen.

    >>> search = Search("tune", "snd", False, (Tried(0, "nsm", {}, "finished", 0.5),))
    >>> Tuned(Path("runs/mine"), search, run=...)
    Tuned(chosen of 1 setting by snd: NSM, 0.5000; runs/mine)
    """

    folder: Path
    search: Search
    run: Run

    @property
    def page(self) -> Path:
        """The file of the page about it, where there is one."""
        return self.folder / "report.html"

    @property
    def method(self) -> str:
        """The method that was chosen."""
        return self.run.method

    @property
    def method_params(self) -> Mapping[str, Any]:
        """Its hyper-parameters that differ from the defaults, as for `equida.adapt`."""
        return self.run.config.overrides

    def __repr__(self) -> str:
        return f"Tuned({self.search.summary}; {self.folder})"

    def _repr_html_(self) -> str:
        heading = ("trial", "setting", self.search.chosen_by, "")
        return html_table(self.search.summary, [heading, *rows(self.search)])


def run_tune(request: TuneRequest, remarks: Remarks) -> Tuned:
    """Try settings until there are as many as are asked for, and do the run with the best one.

    Raises:
        InputError: something is wrong with the request, the data or the storage, or no setting
            could be run to its end.
    """
    methods, workers = _check(request)
    request = _with_pair(request)
    if len(methods) < request.trials and not any(map(search_space, methods)):
        have = "have" if len(methods) > 1 else "has"
        remarks.say(
            f"{enumerated(methods)} {have} no hyper-parameter to search: only the default setting"
            " is tried"
        )
        request = dataclasses.replace(request, trials=len(methods))
    out = request.out or _default_folder(request)
    with removed_if_unused(out):
        return _search(request, methods, workers, RunFolder(out), remarks)


def _search(
    request: TuneRequest,
    methods: tuple[str, ...],
    workers: Workers,
    folder: RunFolder,
    remarks: Remarks,
) -> Tuned:
    with locked(folder.path):
        earlier = read_search(folder.path)
        if (folder.path / "config.json").exists():
            raise InputError(f"{folder.path} holds a run, not a search; choose another --out")
        plan = make_plan(_adapt_request(request, methods, folder.path), remarks)
        configs = _Configs(plan, folder.path)
        code = {each for method in methods for each in configs.of(method, {}).plugins}
        search = _asked(request, methods, plan, code)
        _check_same(folder.path, earlier, search)
        if workers.resolved().elsewhere:
            plugins.require_importable(
                sorted({each.name for each in code} | {plan.config.backbone})
            )
        if search.uses_target_labels:
            remarks.say(f"settings are chosen by {search.chosen_by}")
        url = request.storage or sqlite_url(folder.path / "study.db")
        owner = f"{socket.gethostname()}:{folder.path.absolute()}"
        name = f"equida-{_digest(search.about)}"
        benchmark, seed = plan.config.benchmark, request.run.seed
        with storage_errors(url):
            study = Study(url, name, methods, benchmark, seed, owner)
            if earlier is None:  # not before the storage is there: a wrong one leaves nothing
                search.write(folder.path)
            leader = _Leader(request, study, configs, workers, search)
            search = leader.search_until_done(remarks)
        if search.chosen is None:
            raise InputError(
                f"{search.summary}; the first failed: {search.tried[0].reason}"
                if search.tried
                else f"{folder.path}: {search.summary}"
            )
        run = _chosen_run(search.chosen, configs, request, remarks)
        search.write(folder.path)
        search.write(run.path)
    return Tuned(folder.path, search, run)


def _check(request: TuneRequest) -> tuple[tuple[str, ...], Workers]:
    """The methods and the workers, once all that needs no data has been checked."""
    methods = chosen_methods(request.method)
    if type(request.trials) is not int or not 1 <= request.trials <= MOST_TRIALS:
        expected = f"a whole number from 1 to {MOST_TRIALS}"
        raise FieldError("--trials", request.trials, expected)
    if request.validator is not None:
        VALIDATORS[request.validator]
        if request.oracle:
            raise InputError(
                f"--oracle and --validator {request.validator} both choose; leave one of them out"
            )
    if request.run.from_run:
        raise InputError("a search needs source data; leave --from out")
    import_optuna()
    return methods, Workers(request.jobs, request.threads, request.cluster)


def _with_pair(request: TuneRequest) -> TuneRequest:
    """The request with the two domains of the task that it names."""
    run, task = request.run, request.task
    if task is None:
        if run.dataset and not (run.source and run.target):
            raise InputError(f"say which task of {run.dataset} to search on: --task A2W")
        if run.source is None or run.target is None:
            raise InputError("say what to search on: SOURCE TARGET, or -d DATASET -t TASK")
        return request
    if not run.dataset or run.source or run.target:
        raise InputError(f"--task {task} is one of a data set: give -d, and no SOURCE and TARGET")
    source, target = (domain.key for domain in benchmark(run.dataset).task(task))
    return dataclasses.replace(request, run=dataclasses.replace(run, source=source, target=target))


def _default_folder(request: TuneRequest) -> Path:
    run = request.run
    names = (run.source or "", run.target or "")
    purpose = f"{benchmark(run.dataset).name}-tune" if run.dataset else "tune"
    return default_pair_folder(names[0], names[1], purpose)


def _adapt_request(request: TuneRequest, methods: Sequence[str], out: Path) -> AdaptRequest:
    """What a single run would ask for; the target's labels are there for the oracle alone."""
    run = request.run
    source, target = (
        stored_rows(given, out, role) if isinstance(given, Domain) else given
        for role, given in (("source", run.source), ("target", run.target))
    )
    return dataclasses.replace(
        run,
        source=source,
        target=target,
        method=methods[0],
        features=None,
        out=str(out),
        ignore_target_labels=run.ignore_target_labels or not request.oracle,
    )


def _asked(
    request: TuneRequest, methods: Sequence[str], plan: Plan, code: Collection[plugins.Plugin]
) -> Search:
    """The search as it begins."""
    config, score = plan.config, request.validator or DEFAULT_VALIDATOR
    if request.oracle:
        score = config.metric
        if plan.task.judged.labels is None:
            raise InputError(
                f"--oracle needs target labels, and {plan.task.target.name} has none; leave it out"
            )
    origin = config.feature_origin
    about = {
        "methods": ",".join(methods),
        "score": score,
        "uses_target_labels": request.oracle,
        "task": plan.task.name,
        "data_sha256": config.data_sha256,
        "classes": len(plan.task.classes),
        "recipe": json.dumps(dataclasses.asdict(config.recipe), sort_keys=True),
        "features": f"{origin.backbone} {origin.weights_sha256}" if origin else config.backbone,
        "code": ",".join(sorted(f"{each.name} {each.sha256}" for each in code)),
        "seed": config.seed,
    }
    return Search("tune", score, request.oracle, (), about)


def _check_same(folder: Path, earlier: Search | None, search: Search) -> None:
    """Refuse a folder that another search is in."""
    if earlier is None:
        return
    if earlier.kind != search.kind:
        raise InputError(f"{folder} holds a run of --method auto; choose another --out")
    for name, value in search.about.items():
        if (there := earlier.about.get(name)) != value:
            values = f"another value of {name} ({there!r} there, {value!r} here)"
            told = OTHER.get(name, values)
            raise InputError(f"{folder} holds a search with {told}; choose another --out")


def _digest(about: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(about, sort_keys=True).encode()).hexdigest()[:12]


class _Configs:
    """The config and the folder of the run for each setting."""

    def __init__(self, plan: Plan, root: Path) -> None:
        self.plan, self.task, self.root = plan, plan.task, root

    def of(self, method: str, overrides: Mapping[str, Any]) -> RunConfig:
        """The config, checked."""
        config = dataclasses.replace(
            self.plan.config, method=method, overrides=dict(overrides), plugins=()
        )
        config.check()
        check_priors(config, self.task)
        return with_plugins(config)

    def planned(self, setting: Setting, judge: Judge) -> PlannedRun:
        config = self.of(setting.method, setting.overrides)
        variant = Variant(setting.method, setting.overrides, shown=setting.overrides)
        folder = self.folder(config, variant)
        return PlannedRun(variant, self.task.name, config.seed, config, folder, judge)

    def folder(self, config: RunConfig, variant: Variant) -> Path:
        return self.root / "trials" / folder_name(config, variant, self.task.name)

    def tried(self, one: Tried) -> Tried:
        """The same with the folder of its run, if that is on this machine."""
        variant = Variant(one.method, one.overrides, shown=one.overrides)
        folder = self.folder(self.of(one.method, one.overrides), variant)
        return dataclasses.replace(one, folder=str(folder) if folder.exists() else "")


class _Leader:
    """Asks for settings, has their runs done, and tells how they ended.

    Settings are tried in rounds of as many as run at once, and what comes next is decided when the
    round is over: the same seed and the same number of jobs give the same search, whichever run
    ends first.
    """

    def __init__(
        self,
        request: TuneRequest,
        study: Study,
        configs: _Configs,
        workers: Workers,
        search: Search,
    ) -> None:
        self.study, self.configs, self.search = study, configs, search
        self.trials = request.trials
        self.workers = workers.resolved(on_rows=configs.plan.config.backbone == "none")

    def search_until_done(self, remarks: Remarks) -> Search:
        """Try settings until enough have ended."""
        self._note()
        with Bar(remarks.mode, "tune", self.trials) as bar:
            bar.update(min(len(self.search.tried), self.trials))
            while (left := self.trials - len(self.search.tried)) > 0:
                settings = self.study.unfinished()
                wanted = min(left, self.workers.jobs) - len(settings)
                settings += [self.study.ask() for _ in range(wanted)]
                self._round(settings, bar, remarks)
                self._note()
        return self.search

    def _note(self) -> None:
        """Take in what the study knows by now, and write it down."""
        tried = tuple(map(self.configs.tried, self.study.ended()))
        self.search = dataclasses.replace(self.search, tried=tried)
        self.search.write(self.configs.root)

    def _round(self, settings: Sequence[Setting], bar: Bar, remarks: Remarks) -> None:
        judges = {True: Judge(self.search.score), False: self._judge()}
        runs = {one.number: self.configs.planned(one, judges[one.default]) for one in settings}
        planned = {str(run.folder): run for run in runs.values()}
        ended: dict[str, Ended] = {}
        for one in do_runs(list(planned.values()), self.workers):
            ended[one.folder] = one
            bar.advance(1)
            if remarks.mode == "lines":
                remarks.say(self._line(planned[one.folder], one, len(ended), bar))
        for setting in settings:
            run = runs[setting.number]
            self._tell(setting, run, ended[str(run.folder)])

    def _judge(self) -> Judge:
        """Stops a run at an evaluation whose score is below the median of the finished runs."""
        steps = self.configs.plan.config.recipe.iterations
        medians = self.study.medians().items()
        known = {step: value for step, value in medians if steps * UNTOUCHED <= step < steps}
        return Judge(self.search.score, known)

    def _tell(self, setting: Setting, run: PlannedRun, ended: Ended) -> None:
        name = self.search.score
        log = RunFolder(run.folder).read_log()
        evaluated = {line["step"]: line["evaluation"] for line in log if "evaluation" in line}
        scores = {step: figures[name] for step, figures in evaluated.items() if name in figures}
        if ended.failure is not None:
            state: State = "stopped" if ended.stopped and scores else "failed"
            self.study.tell(setting, state, None, scores, ended.failure)
            return
        score, seconds = _score(run, name)
        if score is None:
            reason = f"its {name} cannot be computed"
            self.study.tell(setting, "failed", None, scores, reason, seconds)
        else:
            self.study.tell(setting, "finished", score, scores, "", seconds)

    def _line(self, run: PlannedRun, ended: Ended, count: int, bar: Bar) -> str:
        done = len(self.search.tried) + count
        score, seconds = _score(run, self.search.score)
        shown = "no score" if score is None else f"{score:.4f}"
        said = ended.failure or f"{self.search.chosen_by} {shown} in {duration(seconds)}"
        left = "" if bar.seconds_left is None else f"; about {duration(bar.seconds_left)} left"
        return f"{done}/{self.trials} {run.variant.title}: {said}{left}"


def _score(run: PlannedRun, name: str) -> tuple[float | None, float]:
    """The score of the weights that a finished run keeps, and the seconds that it took."""
    result = finished_result(run.folder)
    if result is None:
        return None, 0.0
    return kept_figure(result, name), float(result["seconds"])


def _chosen_run(chosen: Tried, configs: _Configs, request: TuneRequest, remarks: Remarks) -> Run:
    """The run with the chosen setting, done as `equida adapt` does it.

    The run of the trial may be on another machine, and its confidences are not calibrated.
    """
    config = configs.of(chosen.method, chosen.overrides)
    folder = configs.root / "chosen"
    there = RunFolder(folder).read_config() if (folder / "config.json").exists() else None
    if there is not None and not there.describes_same_run(config):
        remove(folder)  # it is of a setting that another one has overtaken
    plan = dataclasses.replace(configs.plan, config=config, folder=folder)
    if plan.existing_result() is None:
        remarks.say(f"the run with the chosen setting, {chosen.title}: {folder}")
        with locked(folder):
            launch(config, folder, threads=request.threads, task=plan.task, mode=remarks.mode)
    return load_run(folder)
