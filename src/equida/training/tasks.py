"""Opening the data that a run's config names."""

from pathlib import Path

import numpy as np

from equida.data import Domain, Task, keep_readable, load_domain, load_task, make_task, open_domain
from equida.data.domain import DomainT
from equida.data.readable import Unreadable
from equida.training.config import TaskSource


def open_task(where: TaskSource, classes: tuple[str, ...] | None = None) -> tuple[Task, Unreadable]:
    """The task, and the unreadable samples that were left out because the user said so.

    Args:
        where: what to open.
        classes: in source-free adaptation, the classes of the finished run.
    """
    if not where.source:
        target, left_out = _readable(open_target(where), where)
        target = _among(classes or (), target)
        return Task(target.name, target, target, target.classes), left_out
    if where.benchmark is not None:
        opened = load_task(where.benchmark, where.source, where.target, where.data)
        name: str | None = opened.name
        source, target = opened.source, opened.target
    else:
        source, target = open_path(where.source), open_path(where.target)
        name = _name(where.source, where.target) if source.name == target.name else None
    source, left_out = _readable(source, where)
    target, more = _readable(target, where)
    return make_task(source, target, name=name), [*left_out, *more]


def _readable(domain: DomainT, where: TaskSource) -> tuple[DomainT, Unreadable]:
    """The domain without unreadable samples; where they are to be left out, all are decoded, as a
    look at header and end does not find all of them.
    """
    skip = where.skip_unreadable
    return keep_readable(domain, skip=skip, deep=skip)


def open_target(where: TaskSource) -> Domain:
    """The target alone."""
    if where.benchmark is not None:
        return load_domain(where.benchmark, where.target, where.data)
    return open_path(where.target)


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
