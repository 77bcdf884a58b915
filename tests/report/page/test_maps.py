from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from equida.report.page.content import arrange
from equida.report.page.maps import GAP, choose_mapped, shown_samples, spread
from equida.runs.read import read_runs

Writer = Callable[..., Path]


def test_every_task_and_system_gets_a_map_before_a_second_seed_does(
    write: Writer, runs: Path
) -> None:
    for method in ("dann", "nsm"):
        for seed in (0, 1):
            write(method=method, seed=seed)
    finished = arrange(read_runs(runs)).finished
    picked = [(shown.method, shown.seed) for shown in choose_mapped(finished, 3)]
    assert picked == [("nsm", 0), ("dann", 0), ("nsm", 1)]
    assert choose_mapped(finished, 0) == []


def test_samples_are_chosen_evenly() -> None:
    assert shown_samples(3).tolist() == [0, 1, 2]
    few = shown_samples(1797, 400)
    assert len(few) == 400
    assert set(np.diff(few)) == {4, 5}


@pytest.mark.slow(reason="moves many samples")
def test_samples_on_one_another_are_spread_and_stay_with_their_neighbours() -> None:
    corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    places = np.repeat(corners, 100, axis=0)
    moved = spread(places)
    distance = np.linalg.norm(moved[:, None] - moved[None], axis=2)
    np.fill_diagonal(distance, np.inf)
    assert distance.min() > 0.5 * GAP
    assert np.abs(moved - places).max() < 0.25
    assert (moved.min(), moved.max()) == (0.0, 1.0)
    assert np.array_equal(moved, spread(places))


def test_samples_that_are_apart_stay_where_they_are() -> None:
    grid = np.stack(np.meshgrid(np.linspace(0, 1, 6), np.linspace(0, 1, 6)), -1).reshape(-1, 2)
    assert np.abs(spread(grid) - grid).max() < 0.1 * GAP
