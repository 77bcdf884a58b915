"""Mistakes and edge cases that a researcher met in Python; what was seen before stands with each
test."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.model_selection import GridSearchCV
from tests.small_data import blobs
from torch import Tensor

import equida
from equida import EquidaClassifier, distributed, plugins, scorers
from equida.clustering import ClusterRule, cluster_labels
from equida.errors import InputError
from equida.evaluation import equity
from equida.evaluation.figures import FIGURES, measure
from equida.evaluation.predictions import DomainPredictions, InputRows
from equida.evaluation.shares import estimate_shares
from equida.evaluation.validators import VALIDATORS
from equida.evaluation.validators.base import validator
from equida.losses import bnm, cwsm, nsm
from equida.methods import Method

SHORT = {"iterations": 4, "evaluate_every": 2, "batch_size": 8}
rng = np.random.default_rng(0)


def pseudo_labels(owns: bool) -> type[Method]:
    class Pseudo(Method):
        owns_cross_entropy = owns

        def forward(self, source: Any, labels: Any, target: Any, progress: float) -> Any:
            return {"cross_entropy": F.cross_entropy(target.logits, target.logits.argmax(1))}

    return Pseudo


def test_a_term_does_not_take_the_place_of_the_sources() -> None:
    """Before: the source's labels were not learned, without a word."""
    data = blobs()
    model = EquidaClassifier(pseudo_labels(owns=False), iterations=2)
    with pytest.raises(InputError, match=r"Pseudo\.forward returned a term 'cross_entropy'"):
        model.fit(data.source, data.labels, X_target=data.target)
    EquidaClassifier(pseudo_labels(owns=True), iterations=2).fit(
        data.source, data.labels, X_target=data.target
    )


ROWS = rng.normal(size=(20, 4))
LABELS = np.arange(20) % 3
BROKEN = np.where(np.eye(20, 4) > 0, np.nan, ROWS)
WRONG: list[tuple[Any, Any, Any, Any, str]] = [
    (ROWS, LABELS - 1, ROWS, None, "labels hold -1; expected numbers from 0 "),
    (ROWS, LABELS, ROWS, 2, "labels hold 2; expected numbers from 0 to 1"),
    (ROWS, LABELS + 0.7, ROWS, None, "labels are float64; expected whole numbers"),
    (ROWS, LABELS.astype(str), ROWS, None, "labels are <U21; expected whole numbers"),
    (ROWS, LABELS[:5], ROWS, None, r"labels have shape \(5,\); expected one for each of 20"),
    (ROWS, LABELS, ROWS[:, :3], None, r"have shapes \(20, 4\) and \(20, 3\); expected"),
    (ROWS, LABELS, ROWS[:0], None, r"have shapes \(20, 4\) and \(0, 4\); expected"),
    (ROWS, LABELS, BROKEN, None, "target has a value that is not finite"),
    (BROKEN, LABELS, ROWS, None, "source has a value that is not finite"),
]


@pytest.mark.parametrize(("source", "labels", "target", "classes", "said"), WRONG)
def test_estimates_and_cluster_labels_say_what_does_not_fit(
    source: Any, labels: Any, target: Any, classes: int | None, said: str
) -> None:
    """Before: shares that sum to a half for labels of -1, NaN, and errors from deep inside."""
    with pytest.raises(InputError, match=said):
        estimate_shares(source, labels, target, classes)
    if labels.dtype.kind != "U":  # no tensor
        with pytest.raises(InputError, match=said.replace("float64", "float64|float32")):
            cluster_labels(source, torch.as_tensor(labels), target, classes or 3)


def test_cluster_labels_take_arrays_and_any_whole_numbers() -> None:
    data, rule = blobs(), ClusterRule(views=1, rounds=2)
    source, target, labels = map(torch.from_numpy, data)
    expected = cluster_labels(source, labels, target, 4, rule=rule)
    arrays: Any = data.source, data.labels.astype(np.int32), data.target
    assert torch.equal(cluster_labels(arrays[0], arrays[1], arrays[2], 4, rule=rule), expected)
    for name in ("shares", "expected"):
        wrong: Any = {name: torch.ones(3) / 3}
        with pytest.raises(InputError, match=rf"{name} have shape \(3,\); expected one for each"):
            cluster_labels(source, labels, target, 4, rule=rule, **wrong)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (np.array(["cat", "dog", None, "cat"] * 5, object), "several kinds"),
        (np.array(["cat", "dog", np.nan, "cat"] * 5, object), "NaN"),
        (np.array([1, "1", "x", 1] * 5, object), r"several kinds \(int, str\)"),
        (np.array([True, 2, 3, 2] * 5, object), r"several kinds \(bool, int\)"),
        (np.array([b"a", b"b", b"a", b"b"] * 5), r"the kind bytes_?; expected numbers or text"),
    ],
)
def test_labels_are_checked_alike_however_the_target_is_given(given: Any, said: str) -> None:
    """Before: with sample_domain, missing labels were a class, and kinds were merged."""
    model = EquidaClassifier(iterations=2)
    domain = np.repeat([1, -1], len(given))
    with pytest.raises(ValueError, match=said):
        model.fit(ROWS, given, X_target=ROWS)
    with pytest.raises(ValueError, match=said):
        model.fit(np.concatenate([ROWS, ROWS]), np.concatenate([given, given]), domain)


def test_labels_keep_their_type() -> None:
    """Before: with sample_domain, uint8 became int64."""
    labels = (np.arange(20) % 2).astype(np.uint8)
    model = EquidaClassifier(iterations=2)
    model.fit(np.concatenate([ROWS, ROWS]), np.tile(labels, 2), np.repeat([1, -1], 20))
    assert model.classes_.dtype == np.uint8
    placeholders = np.array([*labels.tolist(), *["?"] * 20], object)
    model.fit(np.concatenate([ROWS, ROWS]), placeholders, np.repeat([1, -1], 20))
    assert model.classes_.tolist() == [0, 1]


def test_columns_far_from_zero_are_standardised() -> None:
    """Before: times in seconds were taken for a constant."""
    rows = np.column_stack([1.7e9 + 70.0 * ROWS[:, 0], ROWS[:, 1], np.full(20, 0.1)])
    model = EquidaClassifier(iterations=2).fit(rows, LABELS, X_target=rows)
    assert model.scale_ == pytest.approx([rows[:, 0].std(), rows[:, 1].std(), 1.0])


def test_a_prior_with_one_large_share_leaves_cwsm_finite() -> None:
    """Before: NaN at r = 1 where a class is absent from the batch."""
    logits = torch.zeros(4, 10)
    logits[:, 0] = -100.0
    logits.requires_grad_()
    loss = cwsm(logits, r=1.0, prior=[0.9] + [0.1 / 9] * 9)
    loss.backward()
    exact = torch.cat([torch.zeros(4, 1), torch.full((4, 9), 1 / 9)], 1).double()
    terms = (exact.square().sum(0) / exact.sum(0).clamp_min(1e-300))[1:] * (10 * 0.1 / 9)
    assert float(loss.detach()) == pytest.approx(-float(terms.sum()) / 10)
    assert logits.grad is not None
    assert bool(logits.grad.isfinite().all())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_measures_of_half_precision_count_in_full(dtype: torch.dtype) -> None:
    """Before: -inf, and 0.9922 in place of 1."""
    one_class = torch.eye(2)[torch.zeros(70_000, dtype=torch.long)].to(dtype)
    assert float(equity(one_class)) == 0.0
    assert float(equity(torch.eye(3)[torch.arange(999) % 3].to(dtype), "soft")) == 1.0


def test_one_class_and_no_rows() -> None:
    """Before: a ZeroDivisionError, and errors from deep inside."""
    inputs = InputRows(torch.from_numpy(ROWS))
    figures = measure(DomainPredictions(torch.zeros(20, 1), inputs=inputs))
    assert figures["knn_balance"] == figures["knn"] == 1.0
    with pytest.raises(InputError, match=r"log_probs have shape \(0, 3\); expected"):
        DomainPredictions(torch.zeros(0, 3))


@pytest.mark.parametrize("loss", [nsm, cwsm, bnm])
def test_the_bound_of_a_scale_is_reached_where_classes_divide_the_batch(
    loss: Callable[..., Tensor],
) -> None:
    for rows, classes, reached in ((36, 12, True), (36, 31, False), (36, 65, True)):
        best = 80.0 * torch.eye(classes)[torch.arange(rows) % classes]
        value = float(loss(best, normalize="optimum"))
        assert value == pytest.approx(-1.0, abs=1e-5 if reached else 0.1)
        assert reached == (value < -0.999)


@pytest.fixture
def one_process() -> Any:
    store = torch.distributed.HashStore()  # type: ignore[attr-defined]
    torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


def test_a_gradient_of_a_gathered_gradient_is_refused(one_process: None) -> None:
    """Before: half of it, without a word."""
    logits = torch.randn(4, 3, requires_grad=True)
    (first,) = torch.autograd.grad(
        distributed.gather(logits).square().sum(), logits, create_graph=True
    )
    with pytest.raises(RuntimeError, match="once_differentiable"):
        first.square().sum().backward()


def test_a_type_that_cannot_be_gathered_is_named(one_process: None) -> None:
    """Before: `tuple.index(x): x not in tuple`."""
    with pytest.raises(ValueError, match=r"argument 0 is torch\.uint16; expected one of"):
        distributed._gather_all([torch.zeros(2, dtype=torch.uint16)], None)


def test_a_costly_scorer_says_how_to_fit() -> None:
    """Before: the advice could not be followed with X_target."""
    data = blobs()
    model = EquidaClassifier(iterations=4, batch_size=8)
    model.fit(data.source, data.labels, X_target=data.target)
    with pytest.raises(InputError, match=r"fit with recipe_params=\{'keep': 'dev'\}"):
        scorers.dev(model, data.source)
    kept = EquidaClassifier(
        iterations=4, batch_size=8, recipe_params={"keep": "dev", "holdout": 0.2}
    )
    search = GridSearchCV(kept, {"trade_off": [0.5, 1.0]}, scoring=scorers.dev, cv=2)
    search.fit(data.source, data.labels, X_target=data.target)
    assert np.isfinite(search.best_score_)


OWN = """
from equida.evaluation.validators import validator

@validator("own", "Own", "the same everywhere")
def own(target, source=None):
    return 1.0
"""


@pytest.fixture
def own_validator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A validator in a module of the current folder."""
    (tmp_path / "my_validator.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(plugins, "_names", set())
    __import__("my_validator")
    yield
    sys.modules.pop("my_validator")
    for registry in (VALIDATORS, FIGURES):
        registry._entries.pop("own", None)


def test_workers_know_a_validator_of_ones_own(own_validator: None, tmp_path: Path) -> None:
    """Before: its column was empty, `keep` failed in every run, and `select` did not know it."""
    data = blobs()
    pair = (data.source, data.labels), (data.target, data.labels)
    table = equida.compare(
        *pair, methods=["source_only", "nsm"], seeds=1, jobs=2, select="own",
        recipe_params=SHORT | {"keep": "own"}, out=tmp_path / "compared", progress=False,
    )  # fmt: skip
    assert [row.cells["own"].mean for row in table.rows] == [1.0, 1.0]


def test_a_validator_of_a_function_is_refused_where_others_would_need_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    try:

        @validator("local", "Local", "the same everywhere")
        def local(target: Any, source: Any = None) -> float:
            return 1.0

        data = blobs()
        pair = (data.source, data.labels), (data.target, data.labels)
        with pytest.raises(InputError, match="put it into a module of its own"):
            equida.compare(
                *pair, methods=["nsm"], seeds=2, jobs=2, out="compared", progress=False,
                recipe_params=SHORT | {"keep": "local"},
            )  # fmt: skip
    finally:
        for registry in (VALIDATORS, FIGURES):
            registry._entries.pop("local", None)
