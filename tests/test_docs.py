"""What the README and the site tell users to type works."""

import contextlib
import dataclasses
import importlib
import inspect
import re
import shlex
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pytest
import sklearn
import torch
import torch.nn.functional as F

import equida
from equida import EquidaClassifier, losses
from equida.cli import VERBS, arguments_class
from equida.cli._parse import parse
from equida.methods import METHODS
from equida.training.recipe import RECIPES

ROOT = Path(__file__).parents[1]
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text()
    for path in (
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        *sorted((ROOT / "docs").glob("*.md")),
    )
}
# These are made when the site is built, from the help and the registries themselves.
MADE = {"docs/commands.md", "docs/data_sets.md", "docs/losses.md", "docs/theory.md"}
FRAGMENTS = {"CONTRIBUTING.md"}
"""Pages whose Python shows pieces of files, not programs."""


def blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def commands(text: str) -> list[str]:
    """The calls of equida in shell blocks, and those with flags inside sentences."""
    lines = [line for block in blocks(text, "sh") for line in block.splitlines()]
    quoted = [found for found in re.findall(r"`(equida [^`]+)`", text) if "--" in found]
    calls = [line for line in (*lines, *quoted) if re.match("equida [a-z]", line)]
    return [line for line in calls if "..." not in line]


COMMANDS = [
    (page, line) for page, text in PAGES.items() if page not in MADE for line in commands(text)
]
PROGRAMS = {
    page: "\n".join(blocks(text, "python")) for page, text in PAGES.items() if page not in FRAGMENTS
}
"""The blocks of each page in their order: a later one may use the names of an earlier one."""


@pytest.mark.parametrize(("page", "command"), COMMANDS)
def test_commands_are_understood(page: str, command: str) -> None:
    words = shlex.split(command.replace("…", ""), comments=True)
    words = words[: words.index(">")] if ">" in words else words
    verb, rest = words[1], words[2:]
    assert verb in VERBS, page
    parse(arguments_class(importlib.import_module(f"equida.cli.{verb}"), rest), verb, rest)


def test_there_are_commands_and_programs() -> None:
    assert len(COMMANDS) > 20
    assert len([program for program in PROGRAMS.values() if program]) > 2


def test_every_command_has_a_row_in_python() -> None:
    rows = re.findall(r"^\| `equida (\w+)[^|]*\| (.+) \|$", PAGES["docs/python.md"], re.MULTILINE)
    assert {verb for verb, _ in rows} == set(VERBS)
    for _, text in rows:
        for place in re.findall(r"`(equida[\w.]+)`", text):
            module, _, name = place.rpartition(".")
            assert hasattr(importlib.import_module(module), name), place


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with photos/ and clipart/, as the pages assume them: two classes, noise images."""
    from PIL import Image

    root = tmp_path_factory.mktemp("docs")
    random = np.random.default_rng(0)
    for domain in ("photos", "clipart"):
        for name, brightness in (("mug", 60), ("pen", 190)):
            (root / domain / name).mkdir(parents=True)
            for number in range(9):
                pixels = random.normal(brightness, 25, (32, 32, 3)).clip(0, 255).astype(np.uint8)
                Image.fromarray(pixels).save(root / domain / name / f"{number}.png")
    return root


@pytest.mark.slow(reason="runs the programs of the docs")
@pytest.mark.parametrize("page", [page for page, program in PROGRAMS.items() if program])
def test_programs_run(page: str, folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if page == "docs/tune.md":
        pytest.importorskip("optuna", reason="needs optuna: pip install 'equida[tune]'")
    monkeypatch.chdir(folders)
    with brief_training(monkeypatch), sklearn.config_context():
        exec(compile(PROGRAMS[page], page, "exec"), names_of(page))


@contextlib.contextmanager
def brief_training(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Few steps where a program does not say how many: it is to run, not to learn."""
    defaults = EquidaClassifier.__init__.__kwdefaults__ or {}
    monkeypatch.setitem(defaults, "iterations", 10)
    usual = RECIPES["features"]
    brief = dataclasses.replace(usual.recipe, iterations=20, evaluate_every=10)
    RECIPES.add("features", dataclasses.replace(usual, recipe=brief), replace=True)
    yield
    RECIPES.add("features", usual, replace=True)


def names_of(page: str) -> dict[str, Any]:
    """What the programs of a page take for granted."""
    random = np.random.default_rng(0)
    labels = np.arange(120) % 3
    rows = 3.0 * np.eye(3)[labels] + random.normal(size=(120, 3))
    source_logits, target_logits = torch.randn(2, 8, 3, requires_grad=True)
    names: dict[str, Any] = {
        "F": F,
        "source_logits": source_logits,
        "target_logits": target_logits,
        "labels": torch.arange(8) % 3,
        "X": rows,
        "y": labels,
        "d": np.where(np.arange(120) < 60, 1, -2),
        "X_new": rows[:5],
        "X_source": rows,
        "y_source": labels,
        "X_target": rows + 0.5,
    }
    if page == "docs/own_loop.md":
        names |= {"z_s": source_logits, "z_t": target_logits, "y": torch.arange(8) % 3}
    return names


def test_the_page_of_a_method_has_its_cost_and_where_it_helped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sphinx", reason="needs the extra docs")
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    pages = importlib.import_module("from_registry")
    # Forward and the gradients of both weights, and of the features between them.
    assert pages.operations("source_only") == 2 * 36 * (2 * 1280 * 256 + 3 * 256 * 31)
    monkeypatch.setattr(pages, "operations", lambda name: 10**6)
    shutil.copytree(ROOT / "docs" / "results", tmp_path / "results")
    rows = {
        "source_only": "75.6 97.6 99.5 79.4 66.2 65.2 80.6",
        "jan": "87.4 95.2 99 80 68 66 84.9",
    }
    table = tmp_path / "results" / "office31_efficientnet_lite0.csv"
    lines = table.read_text().splitlines()
    for number, line in enumerate(lines):
        if given := rows.get(line.partition(",")[0]):
            cells = [line.partition(",")[0], *(f"{mean} ± 0.1" for mean in given.split())]
            lines[number] = ",".join([*cells, "0.75", "0.88"])
    table.write_text("\n".join(lines) + "\n")
    shutil.copy(ROOT / "docs" / "method_notes.toml", tmp_path)
    notes = tomllib.loads((tmp_path / "method_notes.toml").read_text())["nsm"]["when"]
    own = set(METHODS)

    class FromAPageOfTheGallery(METHODS["nsm"].method):  # type: ignore[misc]
        pass

    entry = dataclasses.replace(METHODS["nsm"], method=FromAPageOfTheGallery)
    monkeypatch.setitem(METHODS._entries, "mine", entry)
    pages.method_pages(tmp_path)
    written = {file.stem: file.read_text() for file in (tmp_path / "methods").iterdir()}
    assert written.keys() == own | {"index"}
    for name in own:
        assert "## Cost" in written[name]
        assert "## When it helps, and when it hurts" in written[name]
    assert notes in written["nsm"]
    (tmp_path / "method_notes.toml").write_text("")
    pages.method_pages(tmp_path)
    assert notes not in (tmp_path / "methods" / "nsm.md").read_text()
    found = "+4.3 points on average; it helps most on A→W (+11.8) and hurts on D→W (−2.4)."
    assert found in written["jan"]


def public_names() -> dict[str, Any]:
    """What the API reference shows, by its full name."""
    found: dict[str, Any] = {}
    for page in sorted((ROOT / "docs" / "api").glob("*.md")):
        entries = re.findall(r"^\.\. auto(\w+):: (\S+)\n((?:   :.*\n)*)", page.read_text(), re.M)
        for kind, name, lines in entries:
            if kind == "module":
                options = dict(re.findall(r":([\w-]+): ?(.*)", lines))
                module = importlib.import_module(name)
                named = options["members"] or ", ".join(module.__all__)
                left_out = options.get("exclude-members", "").split(", ")
                members = [each for each in named.split(", ") if each not in left_out]
                found |= {f"{name}.{each}": getattr(module, each) for each in members}
            else:
                place, _, last = name.rpartition(".")
                found[name] = getattr(importlib.import_module(place), last)
    return found


def test_every_public_name_has_an_example() -> None:
    names = public_names()
    assert {f"equida.{name}" for name in equida.__all__} - names.keys() == {
        "equida.__version__", "equida.global_batch", "equida.scorers",
    }  # fmt: skip  # the last two have pages of their own
    assert "equida.distributed.global_batch" in names
    without = [
        name
        for name, value in names.items()
        if isinstance(value, type | FunctionType) and ">>>" not in _docs_of(value)
    ]
    assert without == []


def _docs_of(value: Any) -> str:
    """The docstring of a function, or of a class and of its methods."""
    kinds = (FunctionType, property, classmethod, staticmethod)
    held = vars(value).values() if isinstance(value, type) else ()
    members = [each for each in held if isinstance(each, kinds)]
    return "\n".join(inspect.getdoc(each) or "" for each in (value, *members))


def test_the_table_of_losses_has_each_with_what_it_pushes_towards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sphinx", reason="needs the extra docs")
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "_ext"))
    pages = importlib.import_module("from_registry")
    (tmp_path / "method_notes.toml").write_text((ROOT / "docs/method_notes.toml").read_text())
    monkeypatch.setattr(losses, "cubes", _cubes, raising=False)
    monkeypatch.setattr(losses, "__all__", [*losses.__all__, "cubes"])
    pages.loss_page(tmp_path)
    lines = (tmp_path / "losses.md").read_text().splitlines()
    rows = {line.split("`")[1]: line.split(" | ") for line in lines if line.startswith("| [`")}
    assert sorted(rows) == sorted(losses.__all__)
    equal = {name for name, row in rows.items() if "equal class sizes" in row[-1]}
    # One-hot rows minimise these three whatever the sizes of the classes.
    assert {"max_square", "entropy", "mcc", "cubes"} == set(rows) - equal
    assert all("sure predictions" in row[-1] for row in rows.values())
    # A loss that no method is called by, and of which there are no notes.
    assert rows["cubes"][0] == "| [`cubes`](api/losses.md)"
    assert rows["cubes"][1] == "Maximum cubes, of which the notes know nothing."


def _cubes(logits: torch.Tensor) -> torch.Tensor:
    """Maximum cubes, of which the notes know nothing."""
    return -logits.softmax(1).pow(3).sum(1).mean()
