"""Wrong arguments from Python: one line each, before anything is read or written."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.small_data import blobs, write_blobs

import equida
from equida.errors import InputError
from equida.fields import checked_value
from equida.paper.theory.write import write_theory
from equida.paper.write import write_paper
from equida.report.page import write_page
from equida.training.config import RunConfig
from equida.training.recipe import Recipe
from equida.training.request import AdaptRequest

TINY: dict[str, Any] = {"iterations": 2, "batch_size": 8, "evaluate_every": 2}
LONG = "a" * 5000

WRONG: dict[str, list[dict[str, Any]]] = {
    "adapt": [
        {"seed": True}, {"seed": "0"}, {"seed": 1.5}, {"seed": None}, {"seed": np.array([1, 2])},
        {"devices": "a"}, {"devices": 1.5}, {"devices": True}, {"threads": "2"},
        {"num_nodes": 1.5}, {"method_params": ["trade_off"]}, {"method_params": {3: 1.0}},
        {"recipe_params": [1]}, {"recipe_params": "iterations"}, {"recipe_params": {"workers": []}},
        {"backbone": 3}, {"recipe": 3}, {"method": 3}, {"method": []}, {"out": "a\0b"}, {"out": 3},
        {"out": LONG}, {"source": LONG}, {"source": "a\0b"}, {"target": f"x/{LONG}"},
        {"data": 3, "dataset": "office31"}, {"dataset": 3}, {"weights": 3}, {"lists": 3},
        {"from_run": 3}, {"from_run": LONG, "source": None}, {"source_shares": 3},
        {"target_shares": 3}, {"target_shares": LONG}, {"features": "yes"}, {"classes": 3},
        {"classes": "all"}, {"accelerator": 3}, {"cache": "no"}, {"trust": 3},
    ],
    "bench": [
        {"dataset": None}, {"dataset": 3}, {"dataset": LONG}, {"dataset": f"./{LONG}"},
        {"dataset": "a\0b"}, {"methods": []}, {"methods": [3]}, {"methods": 3}, {"methods": ","},
        {"tasks": 3}, {"tasks": [3]}, {"seeds": True}, {"seeds": 1.5}, {"seeds": ["a"]},
        {"seeds": [True]}, {"seeds": None}, {"target_shares": 3}, {"out": 3}, {"out": "a\0b"},
        {"jobs": "2"}, {"jobs": True}, {"recipe_params": [1]}, {"recipe": 3}, {"backbone": 3},
        {"select": 3}, {"sweep": 3}, {"cluster": 3}, {"data": 3},
    ],
    "compare": [
        {"methods": []}, {"seeds": True}, {"out": 3}, {"source": LONG}, {"recipe": 3},
        {"recipe_params": [1]}, {"select": 3}, {"classes": 3}, {"jobs": 1.5},
    ],
    "tune": [
        {"method": []}, {"trials": "3"}, {"trials": True}, {"seed": True}, {"out": 3},
        {"validator": 3}, {"storage": 3}, {"task": 3}, {"recipe_params": [1]}, {"jobs": "a"},
    ],
    "extract_features": [
        {"images": None}, {"images": 3}, {"images": np.zeros(3)}, {"images": LONG},
        {"images": "a\0b"}, {"dtype": "int8"}, {"engine": "tpu"}, {"seed": True}, {"seed": "0"},
        {"batch_size": 1.5}, {"views": "2"}, {"workers": "a"}, {"devices": "a"}, {"backbone": 3},
        {"out": 3}, {"out": "a\0b"}, {"weights": 3}, {"data": 3}, {"domains": 3}, {"domains": "a"},
    ],
    "load_run": [{"path": 3}, {"path": None}, {"path": LONG}, {"path": "a\0b"}],
}  # fmt: skip


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def usual(name: str, folder: Path) -> dict[str, Any]:
    """Arguments with which the call would succeed."""
    made = blobs()
    pair = {"source": (made.source, made.labels), "target": made.target}
    quick = {"recipe_params": TINY, "progress": False}
    if name == "bench":
        file = write_blobs(folder.parent / "toy.npz")
        return {"dataset": str(file), "methods": ["nsm"], "seeds": 1, "jobs": 1, **quick}
    return {
        "adapt": {**pair, **quick},
        "compare": {**pair, **quick, "methods": ["nsm"], "seeds": 1, "jobs": 1},
        "tune": {**pair, **quick, "trials": 1, "jobs": 1},
        "extract_features": {"images": str(folder), "progress": False},
        "load_run": {},
    }[name]


CASES = [(name, wrong) for name, several in WRONG.items() for wrong in several]


@pytest.mark.parametrize(("name", "wrong"), CASES, ids=lambda given: str(given)[:60])
def test_a_wrong_argument_is_one_line_and_leaves_nothing(
    name: str, wrong: dict[str, Any], inside: Path
) -> None:
    call: Callable[..., Any] = getattr(equida, name)
    given = usual(name, inside)
    with pytest.raises(InputError) as error:
        call(**{**given, **wrong})
    assert "\n" not in str(error.value)
    assert 20 < len(str(error.value)) < 300
    assert not list(inside.rglob("*"))


def test_numbers_of_numpy_are_numbers(inside: Path) -> None:
    one = np.int64(1)
    given = usual("adapt", inside)
    params = {name: np.int32(value) for name, value in TINY.items()}
    options = {"seed": one, "devices": one, "num_nodes": one, "threads": one, "trust": np.False_}
    run = equida.adapt(**{**given, **options, "recipe_params": params, "out": "run"})
    assert run.config.seed == 1
    assert type(run.config.seed) is int
    again = equida.adapt(**{**given, "seed": 1, "out": "run"})
    assert again.result == run.result


@pytest.mark.parametrize("seeds", [np.int64(1), np.arange(1), [np.int16(0)], range(1)])
def test_seeds_of_numpy_are_seeds(seeds: Any, inside: Path) -> None:
    given = usual("bench", inside) | {"tasks": ["a2b"], "seeds": seeds, "jobs": np.int64(1)}
    table = equida.bench(**given)
    assert tuple(table.seeds) == (0,)
    (row,) = table.rows
    assert row.cells["a2b"].mean is not None


def test_a_message_says_what_is_allowed() -> None:
    with pytest.raises(InputError, match=r"^seed is 1\.5; it must be a whole number$"):
        checked_value(1.5, int, "seed")
    with pytest.raises(
        InputError, match=r"^x is array\(\[\[0\., 0\.\], .*; it must be a text or n"
    ):
        checked_value(np.zeros((2, 2)), str | None, "x")


def test_class_shares_may_be_longer_than_a_path() -> None:
    """Before: the text of 65 shares was looked for as a file, whose name is too long."""
    shares = ",".join(["0.0153846"] * 65)
    request = AdaptRequest("a", "b", target_shares=shares, source_shares=shares)
    assert request.target_shares == shares


@pytest.mark.parametrize("word", ["source", "estimate"])
def test_a_file_with_the_name_of_a_prior_changes_nothing(word: str, inside: Path) -> None:
    Path(word).write_text("0.5\n0.5\n")
    stored = RunConfig("nsm", Recipe(), overrides={"prior": word}).to_json()
    assert RunConfig.from_json(stored).overrides == {"prior": word}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: write_paper(3), "runs is 3"),  # type: ignore[arg-type]
        (lambda: write_paper([]), "no runs are given"),
        (lambda: write_paper("runs", images={"office31": "gone"}), "gone is not a folder"),
        (lambda: write_theory(seed="1"), "seed is '1'"),  # type: ignore[arg-type]
        (lambda: write_page("runs", None), "out is None"),  # type: ignore[arg-type]
        (lambda: write_page("runs", "a.html", maps="3"), "maps is '3'"),  # type: ignore[arg-type]
    ],
)
def test_functions_that_write_files_check_their_arguments(
    call: Callable[[], object], said: str, inside: Path
) -> None:
    with pytest.raises(InputError, match=said):
        call()
    assert not list(inside.iterdir())
