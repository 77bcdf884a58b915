"""The figures of a run: what cannot be computed is left out, and what is new is found."""

import json
import math
from typing import Any

import numpy as np
import pytest
import torch
from tests.small_data import CALL, SHORT, blobs

import equida
from equida.errors import InputError
from equida.evaluation.figures import FIGURES, measure
from equida.evaluation.predictions import DomainPredictions, InputRows
from equida.evaluation.validators import VALIDATORS, validator


@pytest.mark.usefixtures("own_folder")
def test_a_target_of_one_row_has_no_scores_that_need_neighbours() -> None:
    """Before: NaN, which is no JSON, stood in the result, picked steps and broke compare."""
    data = blobs()
    run = equida.adapt((data.source, data.labels), data.target[:1], out="run", **CALL)
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
        equida.adapt((data.source, data.labels), data.target[:1], method="auto", out="auto", **CALL)


def test_one_class_and_no_rows() -> None:
    """Before: a ZeroDivisionError, and errors from deep inside."""
    inputs = InputRows(torch.from_numpy(np.random.default_rng(0).normal(size=(20, 4))))
    figures = measure(DomainPredictions(torch.zeros(20, 1), inputs=inputs))
    assert figures["knn_balance"] == figures["knn"] == 1.0
    with pytest.raises(InputError, match=r"log_probs have shape \(0, 3\); expected"):
        DomainPredictions(torch.zeros(0, 3))


@pytest.mark.usefixtures("own_folder")
def test_a_validator_may_be_made_known_after_the_first_run() -> None:
    """Before: it was left out without a word, or a KeyError after the training."""
    data = blobs()
    equida.adapt((data.source, data.labels), data.target, out="first", **CALL)
    try:

        @validator("late", "Late", "always the same")
        def late(target: Any, source: Any = None) -> float:
            return 1.0

        run = equida.adapt((data.source, data.labels), data.target, out="second", **CALL)
        assert "late" in run.picks
    finally:
        VALIDATORS._entries.pop("late")
        FIGURES._entries.pop("late", None)
