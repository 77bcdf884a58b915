"""What a method computes of all data before the first step: once, on one process, written down.

The file `prepared.safetensors` of a run holds it, so that a resumed run goes on with the same, and
everybody can look at it.
"""

import dataclasses
from functools import partial
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from equida.clustering import cluster_labels
from equida.data import ArrayDomain, Domain, Task
from equida.errors import InputError
from equida.evaluation.shares import estimate_shares
from equida.methods.base import TaskRows
from equida.training.build import Built
from equida.training.config import RunConfig
from equida.training.folder import RunFolder
from equida.training.processes import AnyFabric, on_rank_zero
from equida.training.target_check import evenly_spaced, source_view

FILE = "prepared.safetensors"

Prepared = dict[str, Tensor]
_LATEST: WeakKeyDictionary[Domain, WeakKeyDictionary[Domain, tuple[RunConfig, Prepared]]] = (
    WeakKeyDictionary()
)
"""What was prepared, by target and source: a search does the run of its choice right after it has
tried it."""


def prepare_method(
    built: Built, task: Task, fabric: AnyFabric, folder: RunFolder | None, *, resumed: bool
) -> bool:
    """Give the method what it computes of all rows; returns whether there is such a thing.

    Rank zero computes it, without a look at labels of the target, and writes it into `folder`. In a
    run that is `resumed`, what was written down counts.
    """
    method = built.objective.method
    if not method.prepares:
        return False

    def compute() -> Prepared:
        if folder and resumed and (folder.path / FILE).exists():
            return folder.load_tensors(FILE)
        assert built.source is not None, "there is no source in source-free adaptation"
        latest = _LATEST.setdefault(task.target, WeakKeyDictionary())
        config, computed = latest.get(built.source, (None, {}))
        if config != built.config:
            computed = method.prepare(task_rows(built, task))
            latest[built.source] = (built.config, computed)
        if folder:
            folder.save_tensors(FILE, computed)
        return computed

    prepared = on_rank_zero(fabric, compute)
    method.use_prepared({name: value.to(fabric.device) for name, value in prepared.items()})
    return True


def task_rows(built: Built, task: Task) -> TaskRows:
    """All rows of a run's task, with the labels of the source.

    Raises:
        InputError: the samples are image files.
    """
    assert built.source is not None, "there is no source in source-free adaptation"
    labels = torch.from_numpy(np.asarray(built.source.labels))
    source, target = _rows(built.source, built), _rows(task.target, built)
    rows = TaskRows(source, labels, target, built.config.seed)
    # What is held out of the source is not looked at.
    known = dataclasses.replace(task, source=built.source)
    return dataclasses.replace(rows, expected_shares=partial(_expected_shares, known, rows))


def _expected_shares(task: Task, rows: TaskRows) -> Tensor:
    """The class shares to expect in the target: from the look that every run on features takes at
    it; for rows of pixels they are estimated here."""
    view = source_view(task)
    if view:
        estimate = view.estimate
    else:
        few, others = evenly_spaced(len(rows.source)), evenly_spaced(len(rows.target))
        estimate = estimate_shares(
            rows.source[few].numpy(),
            rows.labels[few].numpy(),
            rows.target[others].numpy(),
            len(task.classes),
        )
    return torch.from_numpy(estimate.expected_shares(rows.labels.numpy()))


def cluster_labels_of(rows: TaskRows) -> Tensor:
    """The class of each target sample by clusters of the rows, (samples,)."""
    classes = int(rows.labels.max()) + 1
    expected = rows.expected_shares() if rows.expected_shares else None
    found = cluster_labels(
        rows.source, rows.labels, rows.target, classes, rows.seed, expected=expected
    )
    return found.argmax(1)


def _rows(domain: Domain, built: Built) -> Tensor:
    if not isinstance(domain, ArrayDomain):
        raise InputError(
            f"method {built.config.method!r} looks at all samples as rows before the training, and"
            f" {domain.name} has images; compute features once (--features), or choose another"
        )
    rows = domain.rows(np.arange(len(domain))).flatten(1)
    bad = (~rows.isfinite().all(1)).nonzero()[:, 0].tolist()
    if bad:
        raise InputError(
            f"{domain.identity(bad[0])} of {domain.name} has a value that is not finite; method"
            f" {built.config.method!r} looks at all rows, so remove or mend it ({len(bad)} in all)"
        )
    return rows
