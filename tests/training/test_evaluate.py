"""Which rows an evaluation keeps in memory for validators, and the mean over crops."""

from typing import Any

import numpy as np
import pytest
import torch

from equida.data import array_domain, make_task
from equida.evaluation.predictions import InputRows
from equida.training import evaluate
from equida.training.config import RunConfig
from equida.training.evaluate import input_rows, log_probs_of
from equida.training.loop import train
from equida.training.recipe import Recipe


def test_a_run_and_the_one_that_calibrates_it_keep_the_rows_of_the_target_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[int] = []

    class Counted(InputRows):
        def __init__(self, rows: Any, samples: Any = None) -> None:
            made.append(len(rows))
            super().__init__(rows, samples)

    monkeypatch.setattr(evaluate, "InputRows", Counted)
    random = np.random.default_rng(0)
    domains = [
        array_domain(random.normal(size=(rows, 5)), np.arange(rows) % 3, name=name)
        for name, rows in (("source", 120), ("target", 40))
    ]
    recipe = Recipe(iterations=4, batch_size=8, evaluate_every=2)
    trained = train(RunConfig("nsm", recipe), make_task(*domains), calibrate_confidences=True)
    assert trained.result["calibration"]["trained_again"]
    assert {"knn", "calinski_harabasz"} <= set(trained.result["last"])
    assert made == [40]


def test_rows_are_shared_while_somebody_uses_them_and_not_kept() -> None:
    domain = array_domain(np.eye(4), name="rows")
    first = input_rows(domain)
    assert first is not None
    assert input_rows(domain) is first
    del first
    assert evaluate._IN_USE[domain]() is None


def test_the_mean_over_crops_is_finite_where_the_network_is_sure() -> None:
    logits = torch.tensor([[0.0, -200.0, -1.0], [0.0, -300.0, 2.0]])
    crops = torch.zeros(1, 2, 3, 1, 1)
    found = log_probs_of(lambda x: logits, crops)
    expected = logits.double().softmax(1).mean(0).log()
    torch.testing.assert_close(found[0].double(), expected)
    assert found.isfinite().all()
