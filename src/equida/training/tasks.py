"""Opening the data that a run's config names."""

import os
from pathlib import Path

import numpy as np

from equida.data import (
    ArrayDomain,
    Domain,
    Task,
    keep_readable,
    load_domain,
    load_task,
    make_task,
    open_domain,
)
from equida.data.domain import DomainT
from equida.data.folders import unlabelled_folder
from equida.data.readable import Unreadable
from equida.errors import InputError
from equida.training.config import TaskSource

ROWS_AT_ONCE = 8192


def open_task(where: TaskSource, classes: tuple[str, ...] | None = None) -> tuple[Task, Unreadable]:
    """The task, and the unreadable samples that were left out because the user said so.

    Args:
        where: what to open.
        classes: in source-free adaptation, the classes of the finished run.
    """
    if not where.source:
        target, left_out = _readable(open_target(where), where)
        target = _among(classes or (), target)
        task = Task(target.name, target, target, target.classes)
        if isinstance(target, ArrayDomain):
            _check_finite(target)
        return task, left_out
    if where.benchmark is not None:
        opened = load_task(where.benchmark, where.source, where.target, where.data)
        name: str | None = opened.name
        source, target = opened.source, _without_labels(opened.target, where)
    else:
        source, target = open_path(where.source), open_target(where)
        name = _name(where.source, where.target) if source.name == target.name else None
    source, left_out = _readable(source, where)
    target, more = _readable(target, where)
    task = make_task(source, target, name=name)
    _check(task)
    return task, [*left_out, *more]


def absent_classes(task: Task) -> list[str]:
    """The classes without a sample in the source."""
    if task.source.labels is None:
        return []
    present = set(np.unique(task.source.labels).tolist())
    return [name for number, name in enumerate(task.classes) if number not in present]


def _check(task: Task) -> None:
    """Refuse what can be trained on, but to no purpose."""
    absent = absent_classes(task)
    if len(absent) > len(task.classes) // 2:
        raise InputError(
            f"source {task.source.name} has samples of {len(task.classes) - len(absent)} of its"
            f" {len(task.classes)} classes; number or name only classes that it has"
        )
    for domain in dict.fromkeys((task.source, task.target)):
        if isinstance(domain, ArrayDomain):
            _check_finite(domain)


def _check_finite(domain: ArrayDomain) -> None:
    for view in range(domain.views):
        for rows in np.array_split(np.arange(len(domain)), -(-len(domain) // ROWS_AT_ONCE)):
            good = domain.rows(rows, view).flatten(1).isfinite()
            if not bool(good.all()):
                row, column = (~good).nonzero()[0].tolist()
                raise InputError(
                    f"{domain.name}: {domain.identity(int(rows[row]))} has a value in column"
                    f" {column} that is not finite; compute it again, or remove it"
                )


def _readable(domain: DomainT, where: TaskSource) -> tuple[DomainT, Unreadable]:
    """The domain without unreadable samples; where they are to be left out, all are decoded, as a
    look at header and end does not find all of them.
    """
    skip = where.skip_unreadable
    return keep_readable(domain, skip=skip, deep=skip)


def open_target(where: TaskSource) -> Domain:
    """The target alone."""
    if where.benchmark is not None:
        domain = load_domain(where.benchmark, where.target, where.data)
    elif where.ignore_target_labels and os.path.isdir(where.target):
        return unlabelled_folder(where.target)
    else:
        domain = open_path(where.target)
    return _without_labels(domain, where)


def _without_labels(domain: DomainT, where: TaskSource) -> DomainT:
    return domain.relabel((), None) if where.ignore_target_labels else domain


def open_path(path: str) -> Domain:
    """The domain at a path; `FILE:DOMAIN` picks one of a feature file's domains."""
    file, domain = split_path(path)
    return open_domain(file, domain=domain)


def split_path(path: str) -> tuple[Path, str | None]:
    """The file and the domain of `FILE:DOMAIN`; of any other path itself and None."""
    file, colon, domain = path.rpartition(":")
    if colon and file and not Path(path).exists():
        return Path(file), domain
    return Path(path), None


def _among(classes: tuple[str, ...], target: Domain) -> Domain:
    """The target under the classes of a finished run, its labels looked up by class name."""
    absent = target.relabel(classes, np.zeros(len(target), np.int64))
    absent.name = "of the finished run"
    return make_task(absent, target).target


def _name(source: str, target: str) -> str | None:
    """A task's name by the last parts of its paths that differ: amazon/images, webcam/images."""
    pairs = zip(reversed(Path(source).parts), reversed(Path(target).parts), strict=False)
    return next((f"{one}2{other}" for one, other in pairs if one != other), None)
