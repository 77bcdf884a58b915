"""`equida list` as a user meets it."""

import json

import pytest

from equida.cli import main
from equida.data import BENCHMARKS
from equida.methods import METHODS
from equida.training.recipe import RECIPES, Recipe, register_recipe


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


def test_every_method_with_idea_defaults_ranges_and_reference(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["list", "methods"]) == 0
    out = capsys.readouterr().out
    assert [line.split()[0] for line in out.splitlines() if line[:1].strip()][:-1] == list(METHODS)
    assert "Normalized squares maximization" in out
    assert "trade_off 2 (0.5 to 2.5), r 0.5 (0 to 1), alpha 1 (1 to 2.5)" in out
    assert "on office_home: trade_off 1, alpha 2, eps 1e-06" in out
    assert "Zhang et al. 2022, arXiv 2204.05596" in out
    assert "cdan+nsm" in out


def test_one_method_explains_its_hyper_parameters(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "methods", "mcc"]) == 0
    out = capsys.readouterr().out
    assert "temperature 2.5 (1 to 5): What the logits are divided by" in out
    assert "needs no source data" in out
    assert "nsm" not in out


def test_a_composition_shows_its_parts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "methods", "cdan+nsm"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line[0] != " "]
    assert names == ["cdan", "nsm"]


def test_lines_fit_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "72")
    assert main(["list", "methods"]) == 0
    table = capsys.readouterr().out.split("\n\n")[0]
    assert max(map(len, table.splitlines())) <= 72


def test_json_is_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "methods", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert list(data) == list(METHODS)
    trade_off = data["nsm"]["hyperparameters"][0]
    assert trade_off["default"] == 2.0
    assert trade_off["range"] == {"low": 0.5, "high": 2.5, "log": False}
    assert data["nsm"]["presets"] == {"office_home": {"trade_off": 1.0, "alpha": 2.0, "eps": 1e-6}}


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["list", "method"], "WHAT is 'method'; it must be one of methods, recipes"),
        (["list", "methods", "nms"], "method 'nms' does not exist; did you mean 'nsm'?"),
    ],
)
def test_mistakes_are_one_line(
    argv: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(argv) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert message in error


def test_data_sets_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "datasets", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [domain["key"] for domain in data["digits"]["domains"]] == ["M", "U"]
    assert list(data) == list(BENCHMARKS)


def test_recipes_with_every_field(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "recipes", "paper"]) == 0
    out = capsys.readouterr().out
    assert "iterations 6004: Steps of the optimiser." in out
    assert "weight_decay 0.001: Weight decay of all parameters." in out
    assert main(["list", "recipes", "--json"]) == 0
    assert list(json.loads(capsys.readouterr().out)) == list(RECIPES)


def test_a_new_recipe_is_listed_with_its_idea(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RECIPES, "_entries", dict(RECIPES._entries))
    register_recipe("long", Recipe(iterations=9000), idea="Trains for longer.")
    assert main(["list", "recipes"]) == 0
    assert "Trains for longer." in capsys.readouterr().out


def test_data_sets_with_domains_and_tasks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "datasets"]) == 0
    out = capsys.readouterr().out
    assert "Office-31: 4,110 images, 31 classes" in out
    assert "domains: A (Amazon, 2,817), D (DSLR, 498), W (Webcam, 795)" in out
    assert "tasks: A2W, D2W, W2D, A2D, D2A, W2A" in out
    assert main(["list", "datasets", "visda2017"]) == 0
    out = capsys.readouterr().out
    assert "classes: aeroplane, bicycle, bus, car" in out
    assert "get train.tar and validation.tar" in out
