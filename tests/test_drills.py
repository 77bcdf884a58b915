"""The drills of CONTRIBUTING.md: additions to a copy of the package, of at most two files each."""

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.processes import python, run
from tests.small_data import write_blobs

import equida

GUIDE = Path(__file__).parents[1] / "CONTRIBUTING.md"

LOSS = '''

def cubes(logits: Tensor) -> Tensor:
    """Maximum cubes: minus the mean over rows of the sum of cubed probabilities.

    Every one-hot matrix is a minimum. Value in [-1, -1/C^2]; lower is better.

    >>> cubes(torch.zeros(3, 2))
    tensor(-0.2500)
    """
    logits = checked(logits)
    return logits.softmax(1).pow(3).sum() / -logits.shape[0]
'''
METHOD = '''
"""Maximum cubes."""

from dataclasses import dataclass

from equida.losses import cubes
from equida.methods.base import Method, register, search


@dataclass(frozen=True)
class CubesConfig:
    trade_off: float = search(1.0, 0.1, 2.5)
    """Weight of the target term against source cross-entropy."""


@register("cubes", CubesConfig, reference="this page")
class Cubes(Method):
    """Maximum cubes: confident target predictions."""

    config: CubesConfig
    source_free = True

    def forward(self, source, labels, target, progress):
        return {"cubes": self.config.trade_off * cubes(target.logits)}
'''
METHOD_WITH_A_HEAD = '''
"""Reconstruct: a head gives the target's features back from its predictions."""

from dataclasses import dataclass

from torch import nn

from equida.methods.base import Method, register, search


@dataclass(frozen=True)
class RebuildConfig:
    trade_off: float = search(0.1, 0.01, 1.0)
    """Weight of the target term against source cross-entropy."""


@register("rebuild", RebuildConfig, reference="CONTRIBUTING.md")
class Rebuild(Method):
    """Rebuild: predictions from which features can be told."""

    config: RebuildConfig

    def __init__(self, config, features, classes, classifier):
        super().__init__(config, features, classes, classifier)
        self.decoder = nn.Linear(classes, features)

    def forward(self, source, labels, target, progress):
        rebuilt = self.decoder(target.logits.softmax(1))
        error = (rebuilt - target.features.detach()).square().mean()
        return {"rebuild": self.config.trade_off * error}
'''
DATA_SET = '''
"""Two noisy clouds."""

from functools import partial

import numpy as np

from equida.data.benchmarks.base import Benchmark, BenchmarkDomain, register_benchmark
from equida.data.domain import ArrayDomain

CLASSES = ("near", "far")


def cloud(name, shift):
    labels = np.arange(24) % 2
    values = 4.0 * np.eye(2)[labels] + np.random.default_rng(0).normal(size=(24, 2)) + shift
    return ArrayDomain(values.astype(np.float32), name=name, classes=CLASSES, labels=labels)


register_benchmark(
    Benchmark(
        name="clouds",
        title="Clouds",
        aliases=(),
        domains=tuple(
            BenchmarkDomain(
                key=key, title=key, folder=key, per_class=(12, 12), load=partial(cloud, key, shift)
            )
            for key, shift in (("P", 0.0), ("Q", 1.0))
        ),
        classes=CLASSES,
        tasks=("P2Q", "Q2P"),
        page="",
        obtain="nothing",
        layout="no folder",
    )
)
'''
VALIDATOR = '''

@validator("confidence", "confidence", "the step with the highest mean confidence on the target")
def confidence(target: DomainPredictions, source: DomainPredictions | None = None) -> float:
    """Mean over samples of the largest probability, in [1/C, 1]."""
    return float(target.log_probs.exp().amax(1).mean())
'''
COLUMN = """
    Figure(
        "used_classes",
        "Used classes",
        "how many classes are predicted at least once",
        lambda target, _: float(len(target.log_probs.argmax(1).unique())),
        column=True,
    ),
"""
SOURCE = """    if form == "flat":
        pooled = nn.Sequential(nn.AdaptiveAvgPool2d(int(inner)), nn.Flatten())
        return _wrapped(pooled, name, weights)
"""


@dataclass(frozen=True)
class Edit:
    """Text that goes into a file of the package: behind `after`, or to its end."""

    file: str
    text: str
    after: str = ""


DRILLS = {
    "loss": [
        Edit("losses/squares.py", LOSS),
        Edit("losses/__init__.py", "cubes, ", "from equida.losses.squares import "),
        Edit("losses/__init__.py", '    "cubes",\n', "__all__ = [\n"),
    ],
    "method": [
        Edit("methods/cubes.py", METHOD),
        Edit("methods/__init__.py", "cubes, ", "iw_max_square, "),
    ],
    "method with a head": [
        Edit("methods/rebuild.py", METHOD_WITH_A_HEAD),
        Edit("methods/__init__.py", "rebuild, ", "iw_max_square, "),
    ],
    "data set": [
        Edit("data/benchmarks/clouds.py", DATA_SET),
        Edit("data/benchmarks/__init__.py", "clouds, ", "from equida.data.benchmarks import "),
    ],
    "validator": [Edit("evaluation/validators/certainty.py", VALIDATOR)],
    "column": [Edit("evaluation/figures.py", COLUMN, "for _figure in (")],
    "backbone source": [
        Edit("models/backbone.py", '"flat", ', "FORMS = ("),
        Edit("models/backbone.py", SOURCE, '    form, _, inner = name.partition(":")\n'),
    ],
}

TRIAL = """
import contextlib, io, json, sys, torch
from pathlib import Path
import equida, equida.losses
from equida.cli import main
from equida.data import load_task
from equida.models.backbone import backbone_name, load_backbone

file, out = sys.argv[1:]
assert equida.__file__.startswith(out), equida.__file__
print("loss", float(equida.losses.cubes(torch.zeros(3, 2))))
for kind in ("methods", "datasets"):
    with contextlib.redirect_stdout(io.StringIO()) as text:
        main(["list", kind, "--json"])
    print("listed", *json.loads(text.getvalue()))
task = load_task("clouds", "P2Q")
print("data", task.source, task.target)
print("backbone", load_backbone(backbone_name("flat:2")).width)
table = equida.bench(
    file, methods=["source_only", "rebuild"], tasks=["a2b"], seeds=1, jobs=1, measures=True,
    select="confidence", recipe_params={"iterations": 4, "batch_size": 8, "evaluate_every": 2},
    out=out + "/runs", progress=False,
)
print("results", *(file.read_text() for file in Path(out, "runs").rglob("result.json")))
print("table", table)
"""


def test_a_drill_touches_at_most_two_files_and_the_guide_says_which() -> None:
    guide = GUIDE.read_text().partition("## Drills")[2].partition("\n## ")[0]
    for name, edits in DRILLS.items():
        files = {edit.file for edit in edits}
        assert 1 <= len(files) <= 2, name
        assert f"**{name}**" in guide
        missing = [file for file in files if file.rpartition("/")[0] not in guide]
        assert not missing, f"{name}: {missing}"


def test_what_the_guide_shows_is_what_is_tried() -> None:
    """Each line that its diffs add is one of the drills'; where a list of names grows, the name."""
    guide = GUIDE.read_text().partition("## Drills")[2].partition("\n## ")[0]
    edits = [edit for each in DRILLS.values() for edit in each]
    shown = re.findall(r"^\+\+\+ b/src/equida/(\S+)\n(.*?)(?=^--- |^```)", guide, re.M | re.S)
    assert {file for file, _ in shown} == {
        edit.file for edit in edits if not edit.file.startswith("data/benchmarks/")
    }
    for file, diff in shown:
        tried = [edit.text for edit in edits if edit.file == file]
        for line in re.findall(r"^\+(.+)$", diff, re.M):
            known = any(line in text.splitlines() for text in tried)
            grown = any(text.strip(", ") in line for text in tried if "\n" not in text)
            assert known or grown, f"{file}: {line}"


@pytest.fixture(scope="module")
def trial(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What a copy of the package prints that has had all drills, by the first word of each line."""
    folder = tmp_path_factory.mktemp("drills")
    copy = folder / "equida"
    here = Path(equida.__file__).parent
    shutil.copytree(here, copy, ignore=shutil.ignore_patterns("__pycache__"))
    for edit in (edit for edits in DRILLS.values() for edit in edits):
        file = copy / edit.file
        before = file.read_text() if file.exists() else ""
        at = before.index(edit.after) + len(edit.after) if edit.after else len(before)
        file.write_text(before[:at] + edit.text + before[at:])
    file = write_blobs(folder / "toy.npz")
    code = f"import sys; sys.path.insert(0, {str(folder)!r}){TRIAL}"
    # The workers of a benchmark find the copy by the variable, as they are processes of their own.
    ended = run(python(code, file, folder), env={"PYTHONPATH": str(folder)}, cwd=folder)
    found: dict[str, str] = {}
    for word, rest in re.findall(r"^(\w+) (.*(?:\n(?!\w).*)*)", ended.out, re.MULTILINE):
        found[word] = found.get(word, "") + "\n" + rest
    return found


def test_a_new_loss_can_be_imported(trial: dict[str, str]) -> None:
    assert float(trial["loss"]) == -0.25  # two classes of probability 1/2: minus 2 / 8


@pytest.mark.parametrize("name", ["cubes", "rebuild", "clouds"])
def test_what_is_new_is_listed(name: str, trial: dict[str, str]) -> None:
    assert name in trial["listed"].split()


def test_a_new_data_set_opens(trial: dict[str, str]) -> None:
    domains = [f"ArrayDomain('{name}', 24 samples, 2 classes)" for name in "PQ"]
    assert trial["data"].strip() == " ".join(domains)


def test_a_new_validator_is_a_figure_of_every_run(trial: dict[str, str]) -> None:
    assert trial["results"].count('"confidence"') >= 2


def test_a_new_backbone_source_is_loaded(trial: dict[str, str]) -> None:
    assert int(trial["backbone"]) == 3 * 2 * 2


def test_a_new_method_and_a_new_column_are_in_the_table(trial: dict[str, str]) -> None:
    assert "Rebuild" in trial["table"] or "REBUILD" in trial["table"]
    assert "Used classes" in trial["table"]
