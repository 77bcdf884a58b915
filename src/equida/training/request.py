"""What somebody asks for: the request, the data that it names, and where the run goes."""

import dataclasses
import hashlib
import json
import logging
import os
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from equida.data import ArrayDomain, Benchmark, Domain, ImageDomain, Task, benchmark
from equida.data.layouts import find_choices
from equida.data.open import open_path, split_path
from equida.data.shares import checked_shares, subsampled
from equida.data.spec import DataSpec, open_task, task_of
from equida.data.task import ClassRule, columns_of
from equida.data.walk import existing
from equida.errors import InputError, counted, enumerated
from equida.fields import PathText, check_request
from equida.progress import Mode
from equida.training.predictor import classes_of

LOG = logging.getLogger(__name__)
ROWS_AT_ONCE = 8192
UNEVEN = 100.0
"""Columns of a table differ much in scale where one varies so many times as the median column."""
LONGEST_SETTINGS = 40
"""What is longer stands in the name of a folder as a digest."""
UNEVEN_ROWS = 2000
"""About how many rows are looked at for that."""


@dataclass(frozen=True)
class AdaptRequest:
    """What somebody asks for: the arguments of `equida.adapt`, and the flags of `equida adapt`."""

    source: PathText | Domain | None
    target: PathText | Domain | None
    method: str = "nsm"
    dataset: PathText | None = None
    data: PathText | None = None
    backbone: str | None = None
    weights: PathText | None = None
    features: bool | None = False
    """None: where the data are images."""
    recipe: str | None = None
    method_params: Mapping[str, Any] = field(default_factory=dict)
    recipe_params: Mapping[str, Any] = field(default_factory=dict)
    from_run: PathText | None = None
    out: PathText | None = None
    seed: int = 0
    devices: int = 1
    num_nodes: int = 1
    accelerator: str = "auto"
    threads: int = 0
    ignore_target_labels: bool = False
    skip_unreadable: bool = False
    source_shares: str = ""
    target_shares: str = ""
    trust: bool = False
    lists: PathText | None = None
    classes: ClassRule = "shared"
    cache: bool = True
    purpose: str = ""
    """What the run's default folder is called by; "": the method."""

    def __post_init__(self) -> None:
        check_request(self)

    @property
    def in_memory(self) -> bool:
        """Whether some of the data are in memory, so that no path leads to them."""
        return isinstance(self.source, Domain) or isinstance(self.target, Domain)


@dataclass(frozen=True)
class Remarks:
    """Where remarks go that are not results.

    Attributes:
        say: called with each remark.
        mode: how progress is shown.
        advise: whether to estimate how long the run takes, which itself takes a moment.
    """

    say: Callable[[str], None] = LOG.info
    mode: Mode = "silent"
    advise: bool = False

    def warn(self, text: str) -> None:
        """Say what changes how a result is to be read: in a script, too, that shows no progress."""
        (LOG.warning if self.say == LOG.info else self.say)(text)


@dataclass(frozen=True)
class OpenedRequest:
    """The data of a request."""

    task: Task
    spec: DataSpec | None
    """None for data in memory."""
    sha256: str


def data_spec(request: AdaptRequest) -> DataSpec:
    """Where the data of a request are.

    Raises:
        InputError: something is missing to know it.
    """
    assert not isinstance(request.source, Domain)
    assert not isinstance(request.target, Domain)
    for flag, given in (("--data", request.data), ("--lists", request.lists)):
        if given and not request.dataset:
            raise InputError(f"{flag} is the folder or file of a benchmark; say which one with -d")
    if request.from_run:
        if request.source or not request.target:
            raise InputError("--from RUN takes --target (with -d, a benchmark's) and no --source")
    elif not request.source or not request.target:
        raise InputError("say what to adapt from and to: --source DIR --target DIR, or -d -s -t")
    if request.from_run and request.source_shares:
        raise InputError("--from RUN has no source to cut down; leave --source-shares out")
    further = {
        "skip_unreadable": request.skip_unreadable,
        "ignore_target_labels": request.ignore_target_labels,
        **chosen_shares(request.source_shares, request.target_shares),
    }
    pair = (request.source, request.target)
    if not request.dataset:
        # From the root, so that the run can be done again from any folder.
        for path in pair if request.source else ():
            _check_there(path or "")
        source, target = (os.path.abspath(path) if path else "" for path in pair)
        rule = class_rule(request.classes, further)
        return DataSpec(source, target, None, None, classes=rule, **further)
    chosen = benchmark(request.dataset)
    source, target = (chosen.domain(name).key if name else "" for name in pair)
    if source == target:
        raise InputError(f"source and target are both {source}; choose two domains")
    data = os.path.abspath(request.data) if request.data else None
    further["lists"] = chosen_lists(chosen, data, request.lists)
    return benchmark_spec(chosen, source, target, data, request.classes, **further)


def _check_there(path: str) -> None:
    """Raise InputError where there is nothing at a path, which may be the name of a domain."""
    if os.sep in path or not path:
        return
    try:
        existing(os.path.abspath(split_path(path)[0]))
    except InputError as error:
        raise InputError(f"{error}; a domain of a data set needs the data set, too (-d)") from None


def class_rule(asked: ClassRule, further: Mapping[str, Any]) -> ClassRule:
    """Which classes a task has; a domain that is cut down to some classes leaves the task its own.

    `further` are other fields of the `DataSpec`.
    """
    if asked not in typing.get_args(ClassRule):
        known = ", ".join(typing.get_args(ClassRule))
        raise InputError(f"--classes is {asked!r}; it must be one of {known}")
    return "source" if further.get("source_shares") or further.get("target_shares") else asked


def chosen_lists(chosen: Benchmark, data: str | None, lists: str | None) -> str | None:
    """The folder of the image lists that choose a benchmark's samples; None where it has none."""
    found = find_choices(chosen, Path(data) if data else None, lists)
    return None if found is None else str(found)


def chosen_shares(source: str, target: str) -> dict[str, Any]:
    """The fields of `DataSpec` for the class shares that are asked for, checked."""
    return {
        "source_shares": checked_shares(source, "--source-shares"),
        "target_shares": checked_shares(target, "--target-shares"),
    }


def benchmark_spec(
    chosen: Benchmark,
    source: str,
    target: str,
    data: str | None,
    classes: ClassRule = "shared",
    **further: Any,
) -> DataSpec:
    """Two domains of a data set, registered or found on disk.

    Args:
        chosen: the data set.
        source: the source's key.
        target: the target's key.
        data: the folder or file of a registered data set, or a feature file of a found one.
        classes: which classes a task has where the domains' differ; registered data sets have one
            class list.
        **further: other fields of the `DataSpec`.
    """
    place = os.path.abspath(data) if data else (chosen.root or None)
    rule = class_rule(classes, further)
    return DataSpec(
        source,
        target,
        chosen.registered_name,
        place,
        classes=rule if chosen.own else "source",
        own=chosen.own,
        **further,
    )


def open_request(request: AdaptRequest, spec: DataSpec | None, remarks: Remarks) -> OpenedRequest:
    """The data, opened once; what is left out or missing is remarked."""
    classes = classes_of(Path(request.from_run)) if request.from_run else None
    if spec is not None:
        opened = open_task(spec, classes)
        task, left_out, sha256 = opened.task, opened.left_out, opened.digest
        if not task.left_out:  # the record names no rule that was not needed
            spec = dataclasses.replace(spec, classes="source")
    else:
        task, left_out = _open_memory(request, classes)
        sha256 = domains_sha256(None if request.from_run else task.source, task.target)
    for name, reason in left_out:
        remarks.say(f"left out: {name}: {reason}")
    if task.respelled:
        name, other = task.respelled[0]
        one = len(task.respelled) == 1
        same = f"{'it is' if one else 'they are'} treated as the same class{'' if one else 'es'}"
        remarks.say(
            f"{task.target.named_as('target')} spells"
            f" {counted(len(task.respelled), 'class name')} differently from the source, such as"
            f" {name!r} for {other!r}; {same}"
        )
    if task.left_out:
        remarks.warn(task.left_out)
    if not request.from_run and (absent := task.absent_classes()):
        remarks.warn(
            f"{task.source.named_as('source')} has no sample of {len(absent)} of its"
            f" {len(task.classes)} classes, such as {absent[0]!r}; target samples may still be"
            " predicted as these"
        )
    return OpenedRequest(task, spec, sha256)


def _open_memory(
    request: AdaptRequest, classes: tuple[str, ...] | None
) -> tuple[Task, list[tuple[str, str]]]:
    if request.dataset or request.data:
        raise InputError("dataset and data name a benchmark; leave them out with data in memory")
    if request.target is None or (request.source is None) != bool(request.from_run):
        raise InputError("give both a source and a target, or a target and from_run")
    source, target = (
        open_path(os.path.abspath(domain)) if isinstance(domain, str) else domain
        for domain in (request.source, request.target)
    )
    assert target is not None
    shares = chosen_shares(request.source_shares, request.target_shares)
    if source is not None:
        source = subsampled(source, shares["source_shares"], "source")
    target = subsampled(target, shares["target_shares"], "target")
    if request.ignore_target_labels:
        target = target.relabel((), None)
    return task_of(
        source,
        target,
        classes=classes or (),
        class_rule=class_rule(request.classes, shares),
        skip_unreadable=request.skip_unreadable,
    )


def domains_sha256(*domains: Domain | None) -> str:
    """A digest of domains in memory: of every value of rows, of the name and size of image files,
    and of the labels by class name.
    """
    digest = hashlib.sha256()
    for domain in domains:
        if domain is None:
            continue
        digest.update(f"{type(domain).__name__}\0{len(domain)}\0".encode())
        digest.update("\n".join(domain.classes).encode("utf-8", "surrogateescape"))
        if domain.labels is not None:
            digest.update(domain.labels.tobytes())
        if isinstance(domain, ArrayDomain):
            digest.update(f"{tuple(domain.values.shape[1:])}".encode())
            for start in range(0, len(domain), ROWS_AT_ONCE):
                rows = np.arange(start, min(start + ROWS_AT_ONCE, len(domain)))
                for view in range(domain.views):
                    digest.update(domain.rows(rows, view).contiguous().numpy().tobytes())
        elif isinstance(domain, ImageDomain):
            for index in range(len(domain)):
                size = os.path.getsize(domain.path(index))
                line = f"{domain.identity(index)}\0{size}\n"
                digest.update(line.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def data_remarks(task: Task, batch_size: int) -> list[str]:
    """What to know of the data before training, a line each."""
    lines = (
        _same_samples(task),
        _small_domains(task, batch_size),
        _uneven_columns(task),
        _several_views(task),
    )
    return [line for line in lines if line]


def _same_samples(task: Task) -> str:
    """In one line, that the target is the source itself; "" where it is not."""
    source, target = task.source, task.target
    if source is target or len(source) != len(target):  # without source data, both are the target
        return ""
    same = False
    if isinstance(source, ImageDomain) and isinstance(target, ImageDomain):
        same = all(source.path(number) == target.path(number) for number in range(len(source)))
    elif isinstance(source, ArrayDomain) and isinstance(target, ArrayDomain):
        parts = np.array_split(np.arange(len(source)), -(-len(source) // ROWS_AT_ONCE))
        same = source.values.shape == target.values.shape and all(
            np.array_equal(source.rows(part, view), target.rows(part, view))
            for part in parts
            for view in range(source.views)
        )
    if not same:
        return ""
    return (
        f"source and target are the same {counted(len(source), 'sample')}: there is nothing to"
        " adapt to, and accuracies are those of samples that were trained on"
    )


def _small_domains(task: Task, batch_size: int) -> str:
    """In one line, which domains are smaller than a batch; "" where none is."""
    small = [
        f"{domain.name} has {counted(len(domain), 'sample')}"
        for domain in dict.fromkeys((task.source, task.target))
        if len(domain) < batch_size
    ]
    if not small:
        return ""
    whose = "its" if len(small) == 1 else "their"
    return f"{enumerated(small)}, fewer than a batch of {batch_size}: {whose} samples are repeated"


def _several_views(task: Task) -> str:
    """In one line, that arrays of three axes are views of samples; "" where there are none.

    Rows that know their files are features of these: nobody takes their views for anything else.
    """
    for domain in (task.source, task.target):
        if not isinstance(domain, ArrayDomain) or domain.paths is not None:
            continue
        shape = domain.values.shape
        if len(shape) == 3:
            return (
                f"{domain.name} has {shape[1]} views of {shape[2]} features for each sample, of"
                " which training draws one and prediction takes the first (an array of three axes"
                " is read as samples, views, features; where all of it is one sample, give"
                f" {shape[1] * shape[2]} columns)"
            )
    return ""


def _uneven_columns(task: Task) -> str:
    """In one line, that the source's columns differ much in scale, or that one lies far from 0; ""
    where they do not.

    Features of networks do not; the columns of a table may. The largest alone are learned from
    then, and what varies little about a large number is lost among its digits.
    """
    source = task.source
    if not isinstance(source, ArrayDomain) or len(source.values.shape) != 2:
        return ""
    rows = source.rows(np.arange(0, len(source), -(-len(source) // UNEVEN_ROWS)))
    rows = rows.double()  # the deviation about a large number is lost in float32
    means, deviations = rows.mean(0).abs(), rows.std(0, correction=0)
    varying = deviations[deviations > 0]
    if not len(varying):
        return ""
    names = columns_of(source)

    def called(column: int) -> str:
        return repr(names[column]) if names else str(column)

    cure = "scale the columns alike before (EquidaClassifier does it by itself)"
    typical, largest = float(varying.median()), int(deviations.argmax())
    if float(deviations[largest]) > UNEVEN * typical:
        times = float(deviations[largest]) / typical
        return f"column {called(largest)} varies {times:.0f} times as much as the median: {cure}"
    # A constant does no harm of its own until it drowns the others.
    allowed = UNEVEN * deviations.clamp_min(typical)
    allowed[deviations == 0] *= UNEVEN
    far = int((means / allowed).argmax())
    if float(means[far]) > float(allowed[far]):
        return (
            f"column {called(far)} is {float(means[far]):,.0f} on average, far from 0 beside what"
            f" columns vary by ({typical:.3g}): {cure}"
        )
    return ""


def default_folder(opened: OpenedRequest, request: AdaptRequest) -> Path:
    """A folder below runs/ whose name says what the run is."""
    protocol = opened.spec.protocol if opened.spec else ""
    data_set = opened.spec.data_set if opened.spec else None
    dataset = data_set.name if data_set else ""
    words = [dataset, opened.task.name, protocol, run_words(request)]
    # Data in memory have no names that would tell one call from the next.
    words += [opened.sha256[:8]] if opened.spec is None else []
    return _below_runs("-".join(word for word in words if word))


def run_words(request: AdaptRequest) -> str:
    """What a folder's name says of a run besides its data."""
    words = [request.purpose or request.method, _settings(request), f"seed{request.seed}"]
    return "-".join(word for word in words if word)


def _settings(request: AdaptRequest) -> str:
    """What is asked for otherwise than by default, so that each setting has a folder of its own.

    >>> _settings(AdaptRequest("a", "b", method_params={"prior": "estimate"}))
    'prior=estimate'
    """
    given = {name: getattr(request, name) for name in ("recipe", "backbone", "weights")}
    given["from"] = Path(request.from_run).name if request.from_run else None
    given["labels"] = "ignored" if request.ignore_target_labels else None
    given |= {**request.recipe_params, **request.method_params}
    asked = {
        name: f"{value:g}" if isinstance(value, float) else value
        for name, value in given.items()
        if value is not None
    }
    text = "-".join(f"{name}={value}" for name, value in sorted(asked.items()))
    if len(text) <= LONGEST_SETTINGS and all(
        isinstance(value, str | int | float) for value in asked.values()
    ):
        return text
    line = json.dumps({name: str(value) for name, value in asked.items()}, sort_keys=True)
    return hashlib.sha256(line.encode()).hexdigest()[:8]


def default_pair_folder(source: str | Domain, target: str | Domain, purpose: str) -> Path:
    """A folder below runs/ for two domains."""
    names = []
    for given in (source, target):
        if isinstance(given, Domain):
            names.append(given.name)
        else:
            file, part = split_path(given)
            names.append(part or Path(os.path.abspath(file)).stem)
    words = ["2".join(names), purpose]
    # Data in memory have no names that would tell one call from the next.
    in_memory = [given for given in (source, target) if isinstance(given, Domain)]
    words += [domains_sha256(*in_memory)[:8]] if in_memory else []
    return _below_runs("-".join(words))


def _below_runs(name: str) -> Path:
    return Path("runs") / "".join(c if c.isalnum() or c in "-_+." else "_" for c in name)
