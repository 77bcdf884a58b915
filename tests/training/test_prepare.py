"""What a method computes once before training: given to each batch, written down, read again."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pytest
import torch
from torch import Tensor

from equida import EquidaClassifier
from equida.clustering import ClusterRule, cluster_labels
from equida.data import ArrayDomain, ImageDomain, Task, array_domain
from equida.errors import InputError
from equida.methods import METHODS
from equida.methods.base import TaskRows
from equida.methods.spl import SPL
from equida.training import prepare as module
from equida.training.config import RunConfig
from equida.training.folder import RunFolder
from equida.training.loop import train
from equida.training.prepare import FILE, task_rows
from equida.training.processes import AnyFabric
from equida.training.recipe import Recipe
from equida.training.recorder import Trained
from equida.training.target_check import source_view

Run = Callable[..., Trained]


class Stop:
    """An observer that ends a run as a kill would."""

    def __init__(self, step: int) -> None:
        self.step = step

    def logged(self, step: int, terms: Any) -> None:
        if step > self.step:
            raise KeyboardInterrupt

    def evaluated(self, step: int, figures: Any) -> None: ...


@pytest.mark.parametrize(
    ("method", "fades"), [("spl", False), ("spl+nsm", True), ("spl+nsm --no-fade", False)]
)
def test_each_sample_meets_its_own_label(method: str, fades: bool, run: Run, task: Task) -> None:
    """The term is the cross-entropy of the batch with the labels of its samples, by hand.

    Beside another method its weight falls to 0 over the training.
    """
    terms: list[tuple[float, float]] = []
    seen: list[tuple[Tensor, Tensor, Tensor]] = []
    original = SPL.forward

    def watched(self: SPL, *args: Any) -> dict[str, Tensor]:
        found = original(self, *args)
        target = args[2]
        seen.append((target.samples, target.logits.detach(), self.prepared["labels"]))
        terms.append((found["distill"].item(), args[3]))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SPL, "forward", watched)
        name, *kept = method.split(" ")
        overrides = {"spl.trade_off": 2.0} | ({"spl.fade": False} if kept else {})
        run(name, overrides=overrides, warm_up=0.0, iterations=3)
    target = task.target
    assert isinstance(target, ArrayDomain)
    weights = [2.0 * (1.0 - progress if fades else 1.0) for _, progress in terms]
    assert (weights[0] > weights[-1]) == fades
    for (term, _), weight, (samples, logits, labels) in zip(terms, weights, seen, strict=True):
        assert labels.shape == (48, 4)
        expected = -(labels[samples] * logits.log_softmax(1)).sum(1).mean() * weight
        assert term == pytest.approx(float(expected), rel=1e-5)
    assert len({tuple(samples.tolist()) for samples, *_ in seen}) == 3


@pytest.mark.slow(reason="clusters in ten views, several times")
@pytest.mark.parametrize("method", ["clusters", "spl"])
def test_the_head_learns_what_was_prepared(method: str, run: Run, tmp_path: Path) -> None:
    # On 48 rows, a head that is given soft labels needs some time to be sure of the last ones.
    trained = run(method, folder=tmp_path, iterations=300, learning_rate=0.1, head_multiplier=1.0)
    labels = RunFolder(tmp_path).load_tensors(FILE)["labels"].argmax(1)
    same = trained.predictions.log_probs.argmax(1) == labels
    assert float(same.float().mean()) > 0.9


@pytest.mark.slow(reason="clusters in ten views, several times")
def test_target_labels_are_not_looked_at(run: Run, task: Task, tmp_path: Path) -> None:
    labels = np.random.default_rng(1).integers(0, 4, len(task.target))
    nonsense = dataclasses.replace(task, target=task.target.relabel(task.classes, labels))
    run("clusters", folder=tmp_path / "true")
    run("clusters", on=nonsense, folder=tmp_path / "nonsense")
    first, second = (
        RunFolder(tmp_path / name).load_tensors(FILE)["labels"] for name in ("true", "nonsense")
    )
    assert torch.equal(first, second)


@pytest.mark.slow(reason="clusters in ten views, several times")
def test_a_resumed_run_reads_what_was_prepared(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = run("clusters", folder=tmp_path / "whole").built.objective.state_dict()
    with pytest.raises(KeyboardInterrupt):
        run("clusters", folder=tmp_path / "cut", observers=(Stop(6),))

    def fail(*_: Any) -> None:
        raise AssertionError("prepared again")

    monkeypatch.setattr(METHODS["clusters"].method, "prepare", fail)
    monkeypatch.setattr(module, "_LATEST", WeakKeyDictionary())
    resumed = run("clusters", folder=tmp_path / "cut").built.objective.state_dict()
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def test_the_same_run_again_prepares_nothing_again(
    run: Run, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, the run of a search's choice clustered once more what had just been clustered."""
    seeds: list[int] = []
    original = SPL.prepare

    def counted(self: SPL, rows: TaskRows) -> dict[str, Tensor]:
        seeds.append(rows.seed)
        return original(self, rows)

    monkeypatch.setattr(SPL, "prepare", counted)
    monkeypatch.setattr(module, "_LATEST", WeakKeyDictionary())
    first, second = (run("spl").built.objective.method.prepared["labels"] for _ in range(2))
    assert seeds == [0]
    assert torch.equal(first, second)
    run("spl", on=dataclasses.replace(task, source=task.source.select(range(40))))
    run("spl", overrides={"components": 3})
    assert seeds == [0, 0, 0]


def test_clusters_are_told_what_the_run_expects_of_the_target(
    run: Run, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shares of the look that the run takes anyway, which is not taken twice."""
    found = run("clusters", overrides={"views": 1})
    rows = task_rows(found.built, task)
    view = source_view(task)
    assert view is not None
    assert rows.expected_shares is not None
    assert task.source.labels is not None
    expected = torch.from_numpy(view.estimate.expected_shares(task.source.labels))
    assert torch.equal(rows.expected_shares(), expected)
    rule = ClusterRule(views=1)
    labels = cluster_labels(rows.source, rows.labels, rows.target, 4, 0, rule, expected=expected)
    assert torch.equal(found.built.objective.method.prepared["labels"], labels)
    told = torch.tensor([0.97, 0.01, 0.01, 0.01])
    other = found.built.objective.method.prepare(
        dataclasses.replace(rows, expected_shares=lambda: told)
    )["labels"]
    again = cluster_labels(rows.source, rows.labels, rows.target, 4, 0, rule, expected=told)
    assert torch.equal(other, again)
    assert not torch.equal(other, labels)


def test_rows_that_are_held_out_are_not_looked_at(run: Run, task: Task) -> None:
    """Neither for the labels nor for the class shares that they start from."""
    kept = run("clusters", holdout=0.25, overrides={"views": 1}).built
    assert kept.source is not None
    assert isinstance(kept.source, ArrayDomain)
    assert isinstance(task.source, ArrayDomain)
    trained_on = {row.tobytes() for row in np.asarray(kept.source.rows(range(36)))}
    rows = np.array(task.source.values)
    for row in rows:
        if row.tobytes() not in trained_on:
            row[:] = 50.0
    damaged = array_domain(rows, task.source.labels, name="source")
    on = dataclasses.replace(task, source=damaged.relabel(task.classes, task.source.labels))
    other = run("clusters", on=on, holdout=0.25, overrides={"views": 1}).built
    labels = (built.objective.method.prepared["labels"] for built in (kept, other))
    assert torch.equal(*labels)


def test_images_are_refused_with_the_cure(fabric: AnyFabric) -> None:
    images = ImageDomain("photos", [f"{i}.jpg" for i in range(40)], name="photos")
    labelled = images.relabel(("a", "b"), np.arange(40) % 2)
    config = RunConfig("clusters", Recipe(), backbone="lenet")
    with pytest.raises(InputError, match="photos has images; compute features once"):
        train(config, Task("p2p", labelled, labelled, ("a", "b")), fabric=fabric)


def test_rows_that_are_not_finite_are_named(run: Run, task: Task) -> None:
    target = task.target
    assert isinstance(target, ArrayDomain)
    rows = np.array(target.values)
    rows[7, 2] = np.nan
    poisoned = array_domain(rows, name="photos").relabel(task.classes, None)
    with pytest.raises(InputError, match=r"row 7 of photos has a value that is not finite.*\(1 in"):
        run("clusters", on=dataclasses.replace(task, target=poisoned))


def test_the_estimator_predicts_new_rows() -> None:
    random = np.random.default_rng(0)
    centres = 3.0 * random.normal(size=(3, 6))
    labels = np.arange(60) % 3
    rows, new = (centres[labels] + random.normal(size=(60, 6)) for _ in range(2))
    model = EquidaClassifier("clusters", iterations=100, random_state=0)
    model.fit(rows, labels, X_target=rows[::-1] + 1.0)
    assert np.mean(model.predict(new + 1.0) == labels) > 0.9
