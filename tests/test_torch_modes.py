"""Training and prediction are the same in whatever mode the caller has put torch."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tests.small_data import CALL, Blobs, blobs

import equida
from equida import EquidaClassifier
from equida.torch_modes import own_draws

pytestmark = pytest.mark.usefixtures("own_folder")


def results(data: Blobs, out: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """What a run and an estimator predict."""
    run = equida.adapt((data.source, data.labels), data.target, out=out, **CALL)
    model = EquidaClassifier(iterations=4, batch_size=8, random_state=0)
    model.fit(data.source, data.labels, X_target=data.target)
    return run.predict(data.target).probs, model.predict_proba(data.target)


@pytest.mark.parametrize(
    "mode",
    [
        lambda: torch.autocast("cpu", dtype=torch.bfloat16),
        torch.no_grad,
        torch.inference_mode,
        lambda: torch.device("meta"),
    ],
    ids=["autocast", "no_grad", "inference_mode", "meta"],
)
def test_torch_in_another_mode(mode: Callable[[], AbstractContextManager[Any]]) -> None:
    """Before: another result, or a traceback."""
    data = blobs()
    expected = results(data, "outside")
    with mode():
        found = results(data, "inside")
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_networks_can_draw_from_a_generator_of_their_own() -> None:
    """In place, as initialisers do, and as new tensors of every kind."""
    torch.manual_seed(3)
    state = torch.get_rng_state()
    with own_draws():
        assert torch.nn.Linear(4, 3).weight.std() > 0
        assert 2 <= int(torch.randint(2, 5, (9,)).min()) <= int(torch.randint(5, (9,)).max() + 2)
        assert sorted(torch.randperm(5).tolist()) == [0, 1, 2, 3, 4]
        drawn = [torch.rand(50), torch.randn(50), torch.rand_like(torch.zeros(50))]
        assert all(len(each.unique()) > 1 for each in drawn)
        torch.empty(9).uniform_()
        torch.nn.init.trunc_normal_(torch.empty(9))
    assert torch.equal(state, torch.get_rng_state())


def test_another_default_type_in_several_threads() -> None:
    """Before: one thread put it back while another computed."""
    data = blobs()
    run = equida.adapt((data.source, data.labels), data.target, out="run", **CALL)
    torch.set_default_dtype(torch.float64)
    failed: list[BaseException] = []

    def predict() -> None:
        try:
            for _ in range(10):
                run.predict(data.target, progress=False)
        except BaseException as error:
            failed.append(error)

    try:
        threads = [threading.Thread(target=predict) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    assert not failed


def test_torch_with_another_default_type() -> None:
    """Before: "mat1 and mat2 must have the same dtype"."""
    data = blobs()
    torch.set_default_dtype(torch.float64)
    try:
        probs, rows = results(data, "inside")
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)
    expected = results(data, "outside")
    np.testing.assert_array_equal(probs, expected[0])
    np.testing.assert_array_equal(rows, expected[1])
