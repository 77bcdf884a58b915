"""Mistakes and odd data that new users met; what was seen before stands with each test."""

import json
import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from tests.small_data import blobs
from torch import Tensor, nn

import equida
from equida import plugins
from equida.cli import main
from equida.errors import InputError
from equida.evaluation.validators.base import VALIDATORS, validator
from equida.losses import cwsm, nsm
from equida.methods.base import Method, NoHyperparameters
from equida.models.backbone import backbone_name
from equida.runs.read import Run

SHORT = {"iterations": 4, "evaluate_every": 2, "batch_size": 8}


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def adapted(source: Any, target: Any, **others: Any) -> Run:
    return equida.adapt(source, target, recipe_params=SHORT, progress=False, **others)


def test_a_target_of_one_row_has_no_scores_that_need_neighbours() -> None:
    """Before: NaN, which is no JSON, stood in the result, picked steps and broke compare."""
    data = blobs()
    run = adapted((data.source, data.labels), data.target[:1], out="run")
    written = (run.path / "result.json").read_text()
    assert "knn" not in json.loads(written, parse_constant=pytest.fail)["picks"]
    assert not math.isnan(run.equity)
    pair = (data.source, data.labels), (data.target[:1], data.labels[:1])
    table = equida.compare(
        *pair, methods=["source_only", "nsm"], seeds=2, jobs=1, recipe_params=SHORT, out="compared",
        classes="source", progress=False,
    )  # fmt: skip
    assert all(row.cells["knn"].mean is None for row in table.rows)
    with pytest.raises(InputError, match="of the first: its knn_balance cannot be computed"):
        adapted((data.source, data.labels), data.target[:1], method="auto", out="auto")


def test_a_source_with_one_sample_a_class_cannot_hold_any_out() -> None:
    """Before: a traceback at the first evaluation."""
    rows = np.random.default_rng(0).normal(size=(30, 4))
    with pytest.raises(InputError, match=r"holdout is 0\.2, which keeps no sample of source apart"):
        equida.adapt(
            (rows, np.arange(30)), rows, recipe_params={**SHORT, "holdout": 0.2}, progress=False
        )


def test_values_whose_squares_overflow_are_refused() -> None:
    """Before: one of them ruined the statistics of its column, and all samples got one class."""
    data = blobs()
    rows = np.array(data.source, np.float64)
    rows[2, 1] = 1e25
    with pytest.raises(InputError, match=r"row 2 .* too large for float32, 1e\+25; scale"):
        adapted((rows, data.labels), data.target)


@pytest.mark.parametrize("name", ["holdout", "label_smoothing"])
def test_settings_of_the_source_have_no_effect_without_it(name: str) -> None:
    data = blobs()
    run = adapted((data.source, data.labels), data.target, out="run")
    with pytest.raises(InputError, match=f"{name} has no effect with --from RUN"):
        equida.adapt(
            None, data.target, from_run=run, out="next", recipe_params={name: 0.2}, progress=False
        )


def test_another_configuration_is_named() -> None:
    data = blobs()
    pair = (data.source, data.labels), data.target
    adapted(*pair, out="run")
    for others, said in (
        ({"method": "bnm"}, "method is 'nsm' there and 'bnm' here"),
        ({"seed": 3}, "seed is 0 there and 3 here"),
        ({"method_params": {"r": 0.75}}, "r is its default there and 0.75 here"),
    ):
        with pytest.raises(InputError, match=f"of another configuration .{said}.; choose another"):
            adapted(*pair, out="run", **others)


def test_a_folder_of_runs_is_no_run(capsys: pytest.CaptureFixture[str]) -> None:
    data = blobs()
    adapted((data.source, data.labels), data.target, out="runs/first")
    np.savez("rows.npz", X=data.target)
    assert main(["predict", "runs", "rows.npz"]) == 2
    assert "choose a run in it, such as runs/first" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--devices", "0"], "--devices is 0; it must be a whole number from 1"),
        (["--accelerator", "abacus"], "accelerator is 'abacus'; it must be one of auto, cpu"),
    ],
)
def test_wrong_machines(flags: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    data = blobs()
    np.savez("a.npz", X=data.source, y=data.labels)
    np.savez("b.npz", X=data.target)
    assert main(["adapt", "-s", "a.npz", "-t", "b.npz", *flags]) == 2
    assert said in capsys.readouterr().err


def test_a_table_of_another_kind_is_not_taken_for_images(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Before: "does not say which network computed its features"."""
    np.savez("b.npz", X=blobs().target)
    Path("a.csv").write_text("1,2,3\n")
    assert main(["adapt", "-s", "a.csv", "-t", "b.npz"]) == 2
    assert "expected a folder, an image list (.txt) or a feature file" in capsys.readouterr().err


def test_columns_of_very_different_scale_are_remarked(capsys: pytest.CaptureFixture[str]) -> None:
    """Before: the largest alone was learned from, without a word."""
    data = blobs()
    scale = np.where(np.arange(data.source.shape[1]) == 2, 1e4, 1.0)
    for factor, said in ((scale, True), (1.0, False)):
        np.savez("a.npz", X=data.source * factor, y=data.labels)
        np.savez("b.npz", X=data.target * factor)
        argv = ["adapt", "-s", "a.npz", "-t", "b.npz", "--iterations", "2", "--out", f"run{said}"]
        assert main(argv) == 0
        printed = capsys.readouterr()
        assert ("column 2 varies" in printed.err + printed.out) is said


def test_numbered_columns_in_another_order_are_refused() -> None:
    """Before: names that are numbers were no names, and every label was wrong."""
    data = blobs()
    source, target = pd.DataFrame(data.source), pd.DataFrame(data.target)
    with pytest.raises(InputError, match="expected the same in the order '0', '1', '2'"):
        adapted((source, data.labels), target[source.columns[::-1]])
    named = pd.DataFrame(data.target, columns=list("abcdefgh"))
    assert adapted((source, data.labels), named).path, "a frame without names goes with any"


def test_missing_labels_are_no_class() -> None:
    """Before: numpy made the text "nan" of it."""
    data = blobs()
    names: list[Any] = [f"class {label}" for label in data.labels]
    names[3] = float("nan")
    with pytest.raises(InputError, match="row 3 has label nan; expected class names or integers"):
        adapted((data.source, names), data.target)


def test_arrays_of_other_kinds() -> None:
    data = blobs()
    masked = np.ma.masked_array(data.source, data.source > 1)
    with pytest.raises(InputError, match="source: some values are masked"):
        adapted((masked, data.labels), data.target)
    with pytest.raises(InputError, match=r"sparse tensor; make them dense with \.to_dense\(\)"):
        adapted((torch.tensor(data.source).to_sparse(), data.labels), data.target)
    labels = torch.tensor(data.labels, dtype=torch.float32, requires_grad=True)
    run = adapted((torch.tensor(data.source), labels), data.target)
    with pytest.raises(InputError, match="expected X alone"):
        run.predict((data.target, data.labels))


def test_labels_of_several_kinds_in_the_estimator() -> None:
    data = blobs()
    mixed = np.array([None if label > 1 else "a" for label in data.labels])
    with pytest.raises(InputError, match=r"y holds labels of several kinds \(NoneType, str\)"):
        equida.EquidaClassifier().fit(data.source, mixed, X_target=data.target)


def test_fits_in_threads_are_what_fits_alone_are() -> None:
    """Before: threads drew from each other's random numbers."""
    data = blobs()

    def fitted(_: int) -> np.ndarray[Any, Any]:
        model = equida.EquidaClassifier(iterations=20, random_state=0)
        return model.fit(data.source, data.labels, X_target=data.target).predict_proba(data.target)

    state = torch.random.get_rng_state()
    alone = fitted(0)
    with ThreadPoolExecutor(2) as threads:
        for found in threads.map(fitted, range(4)):
            np.testing.assert_array_equal(found, alone)
    assert torch.equal(torch.random.get_rng_state(), state)


class Scaled(nn.Module):
    """A network without weights."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: Tensor) -> Tensor:
        return self.factor * x.mean((2, 3))


def test_networks_without_weights_are_told_apart() -> None:
    """Before: features of the first were taken for those of the second."""
    first, second = backbone_name(Scaled(1.0)), backbone_name(Scaled(2.0))
    assert first != second
    assert backbone_name(Scaled(1.0)) == first
    relu, tanh = (nn.Sequential(nn.Flatten(), kind()) for kind in (nn.ReLU, nn.Tanh))
    assert backbone_name(relu) != backbone_name(tanh)


def test_classes_that_no_file_holds_are_told_apart_by_what_they_do() -> None:
    """Before: a class that a notebook defined anew was the same code, and its old run came back."""

    def defined(factor: int) -> str:
        scope: dict[str, Any] = {"Method": Method, "NoHyperparameters": NoHyperparameters}
        text = (
            "class Mine(Method):\n"
            "    config: NoHyperparameters\n"
            "    def forward(self, source, labels, target, progress):\n"
            f"        return {{'mine': {factor} * target.logits.mean()}}\n"
        )
        exec(compile(text, "<cell>", "exec"), scope)
        return plugins.class_source_sha256(scope["Mine"])

    assert defined(1) == defined(1) != defined(-9)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (lambda z: {"mine": z.mean(1)}, r"returned shape \(8,\) for the term 'mine'"),
        (lambda z: {"mine": 1.0}, "returned 1.0 for the term 'mine'; expected a tensor"),
    ],
)
def test_terms_that_are_no_numbers_are_named(body: Any, said: str) -> None:
    class Mine(Method):
        config: NoHyperparameters

        def forward(self, source: Any, labels: Any, target: Any, progress: float) -> Any:
            return body(target.logits)

    data = blobs()
    with pytest.raises(InputError, match=said):
        adapted((data.source, data.labels), data.target, method=Mine)


def test_a_validator_may_be_made_known_after_the_first_run() -> None:
    """Before: it was left out without a word, or a KeyError after the training."""
    data = blobs()
    adapted((data.source, data.labels), data.target, out="first")
    try:

        @validator("late", "Late", "always the same")
        def late(target: Any, source: Any = None) -> float:
            return 1.0

        run = adapted((data.source, data.labels), data.target, out="second")
        assert "late" in run.picks
    finally:
        VALIDATORS._entries.pop("late")
        from equida.evaluation.figures import FIGURES

        FIGURES._entries.pop("late", None)


@pytest.mark.parametrize("loss", [nsm, cwsm])
@pytest.mark.parametrize("r", ["a", None])
def test_hyper_parameters_that_are_no_numbers(loss: Any, r: Any) -> None:
    with pytest.raises(ValueError, match=r"r is .*; it must be in \[0, 1\]"):
        loss(torch.zeros(4, 3), r=r)


def test_tables_say_where_they_cannot_be_written_and_hold_numbers() -> None:
    data = blobs()
    table = equida.compare(
        (data.source, data.labels), (data.target, data.labels), methods=["nsm"], seeds=1, jobs=1,
        recipe_params=SHORT, out="compared", progress=False,
    )  # fmt: skip
    with pytest.raises(InputError, match="cannot write nowhere/x: No such file or directory"):
        table.to_csv("nowhere/x")
    frame = table.to_frame()
    assert all(frame[column].dtype.kind in "fi" for column in frame.columns)
