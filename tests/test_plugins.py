"""Methods, data sets, validators and backbones from outside: by flag, by class, and installed."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests import processes
from tests.dask_cluster import dask_workers
from tests.small_data import SHORT, blobs

import equida
from equida import plugins
from equida.cli import main
from equida.errors import InputError
from equida.evaluation.figures import FIGURES
from equida.evaluation.validators import VALIDATORS, validator
from equida.methods import METHODS, Method, build_method, method_name
from equida.methods.base import NoHyperparameters
from equida.training.config import RunConfig

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 300.0
MINE = '''
from dataclasses import dataclass
from torch import nn
from equida.losses import entropy
from equida.methods import Method, register, search

@dataclass(frozen=True)
class MineConfig:
    weight: float = search(0.5, 0.1, 2.0)
    """How much certainty counts."""

class Mine(Method):
    """Certain predictions."""

    config: MineConfig
    source_free = True

    def forward(self, source, labels, target, progress):
        return {"mine": self.config.weight * entropy(target.logits)}

PRESETS = {"digits": {"weight": 1.5}}

@register("registered_mine", MineConfig, reference="Somebody 2026", presets=PRESETS)
class Registered(Mine):
    """As CONTRIBUTING says."""

class Wrong(Method):
    def forward(self, source, labels, target, progress):
        return target.logits.sum()

@dataclass(frozen=True)
class Needy:
    weight: float

class Unset(Method):
    config: Needy

class Odd(Method):
    def __init__(self, weight=1.0):
        super().__init__(None, 1, 2, None)

class Bare(Method):
    def forward(self, source, labels, target, progress):
        return {}

value = 1
'''


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with my_module.py and rows.npz, in which the commands are given."""
    (tmp_path / "my_module.py").write_text(MINE)
    random = np.random.default_rng(0)
    labels = np.arange(40) % 2
    a, b = (random.normal(size=(40, 4)) + 3 * labels[:, None] + shift for shift in (0.0, 0.5))
    np.savez(tmp_path / "rows.npz", a_x=a.astype("f4"), a_y=labels, b_x=b.astype("f4"), b_y=labels)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(plugins, "_names", set())
    monkeypatch.setattr(plugins, "_folders", [])
    yield tmp_path
    plugins.forget("my_module")
    METHODS._entries.pop("registered_mine", None)


ADAPT = ["adapt", "-s", "rows.npz:a", "-t", "rows.npz:b", "--quiet", "--iterations", "4"]
ADAPT += ["--batch-size", "8", "--evaluate-every", "4"]


def config_of(run: str) -> RunConfig:
    return equida.load_run(run).config


@pytest.mark.slow(reason="several runs")
def test_a_method_of_the_current_folder_by_flag(here: Path) -> None:
    argv = [*ADAPT, "--method", "my_module:Mine", "--weight", "0.25", "-o", "run"]
    assert main(argv) == 0
    config = config_of("run")
    assert (config.method, dict(config.overrides)) == ("my_module:Mine", {"weight": 0.25})
    (used,) = config.plugins
    assert (used.kind, used.module, used.distribution) == ("method", "my_module", "")
    terms = equida.load_run("run").log[0]["terms"]
    assert set(terms) == {"cross_entropy", "mine"}


def test_its_hyperparameters_are_checked_and_listed(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*ADAPT, "--method", "my_module:Mine", "--weight", "-1"]) == 2
    assert "weight is -1; it must be" in capsys.readouterr().err
    assert main(["list", "methods", "my_module:Mine"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Certain predictions." in said
    assert "weight 0.5 (0.1 to 2): How much certainty counts." in said
    assert main(["list", "methods", "my_module:Mine", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["my_module:Mine"]["source_free"] is True


def test_compositions_name_their_flags_by_the_class(here: Path) -> None:
    argv = [*ADAPT, "--method", "nsm+my_module:Mine", "--mine-weight", "2", "--nsm-r", "0.3"]
    assert main([*argv, "-o", "run"]) == 0
    assert dict(config_of("run").overrides) == {"my_module:Mine.weight": 2.0, "nsm.r": 0.3}
    method = build_method("nsm+my_module:Mine", 4, 2, torch.nn.Linear(4, 2), {"Mine.weight": 2.0})
    assert method.config["my_module:Mine"].weight == 2.0


def test_a_registered_class_brings_its_presets(here: Path) -> None:
    name = method_name("my_module:Registered")
    assert METHODS[name].reference == "Somebody 2026"
    assert METHODS[name].presets["digits"] == {"weight": 1.5}
    # Its registered name is known where the module is imported, and goes by its place elsewhere.
    assert method_name("nsm+registered_mine") == "nsm+my_module:Registered"


def test_classes_in_python(here: Path) -> None:
    sys.path.append(str(here))
    import my_module  # type: ignore[import-not-found]

    random = np.random.default_rng(0)
    X, y = random.normal(size=(30, 3)), np.arange(30) % 2
    model = equida.EquidaClassifier(
        my_module.Mine, method_params={"weight": 0.1}, iterations=3, random_state=0
    )
    model.fit(X, y, X_target=X + 1)
    assert "mine" in model.history_[0]["terms"]
    run = equida.adapt(
        "rows.npz:a",
        "rows.npz:b",
        method=my_module.Bare,
        recipe_params={"iterations": 2, "batch_size": 8},
        out="run",
        progress=False,
    )
    assert run.method == "my_module:Bare"
    assert len(run.predict("rows.npz:b", progress=False)) == 40


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("my_module:value", "is a int; expected a subclass of equida.methods.Method"),
        ("my_module:MineConfig", "is a class; expected a subclass"),
        ("my_module:Absent", "'my_module' has no 'Absent'"),
        ("no_such_module_here:Mine", "cannot import 'no_such_module_here'"),
        ("my_module.py:Mine", "expected package.module:name"),
        ("my_module:Wrong", "Wrong.forward returned a Tensor; expected a dictionary"),
        ("my_module:Odd", "Odd.__init__ takes (weight=1.0) besides self (too many positional"),
        ("my_module:Unset", "missing 1 required positional argument: 'weight'"),
        ("nms", "did you mean 'nsm'"),
    ],
)
def test_wrong_names_are_one_line(
    here: Path, name: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*ADAPT, "--method", name]) == 2
    said = capsys.readouterr().err.strip()
    assert message in said
    assert "\n" not in said


@pytest.mark.slow(reason="several runs")
def test_edited_code_is_another_run_and_rerun_says_so(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = [*ADAPT, "--method", "my_module:Mine", "-o", "run"]
    assert main(argv) == 0
    capsys.readouterr()
    assert main(["rerun", "run", "--quiet"]) == 0  # named by a flag of this process
    assert "has changed" not in capsys.readouterr().out
    (here / "my_module.py").write_text(MINE.replace('"mine": ', '"mine": 2 * '))
    plugins.forget("my_module")
    METHODS._entries.pop("registered_mine", None)
    assert main(argv) == 2
    assert "holds a run of other code" in capsys.readouterr().err
    assert main(["rerun", "run", "--quiet"]) == 1
    said = capsys.readouterr().out
    assert "the code of method 'my_module:Mine' has changed (source " in said


def test_a_worker_does_not_run_other_code_than_was_asked_for(here: Path) -> None:
    name = method_name("my_module:Mine")
    METHODS[name]
    known = plugins.plugin("method", name, "my_module")
    plugins.check_same([known])
    (here / "my_module.py").write_text(MINE + "\n")
    plugins.check_same([known])  # what was imported is still what was asked for
    other = plugins.Plugin("method", name, "0" * 64, "my_module")
    METHODS._entries.pop("registered_mine", None)
    with pytest.raises(InputError, match="has other code here"):
        plugins.check_same([other])


def test_a_class_of_a_notebook_works_here_and_is_refused_elsewhere(here: Path) -> None:
    class Local(Method):
        """Of this function."""

        def forward(self, *_: Any) -> dict[str, torch.Tensor]:
            return {}

    fields = {"iterations": 2, "batch_size": 8}
    options: dict[str, Any] = {"recipe_params": fields, "out": "run", "progress": False}
    assert equida.adapt("rows.npz:a", "rows.npz:b", method=Local, **options).result is not None
    options |= {"methods": [Local], "tasks": "U2M", "seeds": 1, "jobs": 2}
    with pytest.raises(InputError, match="put it into a module of its own"):
        equida.bench("digits", **options)


SCRIPT = """
import equida
from equida.errors import InputError
from equida.methods import Method

class Mine(Method):
    def forward(self, source, labels, target, progress):
        return {"mine": target.logits.var()}

if __name__ == "__main__":
    options = {"recipe_params": {"iterations": 2, "batch_size": 8}, "progress": False}
    run = equida.adapt("rows.npz:a", "rows.npz:b", method=Mine, out="run", **options)
    assert len(run.config.plugins[0].sha256) == 64
    assert len(equida.load_run("run").predict("rows.npz:b", progress=False)) == 40
    try:
        equida.adapt("rows.npz:a", "rows.npz:b", method=Mine, devices=2, out="two", **options)
    except InputError as error:
        print(error)
"""


def test_a_class_of_a_script(here: Path) -> None:
    (here / "script.py").write_text(SCRIPT)
    done = processes.run([sys.executable, "script.py"])
    assert "which other processes cannot import; put it into a module of its own" in done.out


def test_the_page_needs_no_code_and_describes_it_where_it_is_trusted(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = [*ADAPT, "--method", "nsm+my_module:Mine", "--mine-weight", "2", "-o", "run"]
    assert main(argv) == 0
    plugins._names.clear()
    plugins.forget("my_module")
    report = ["report", "run", "--out", "page.html", "--maps", "0", "--quiet"]
    assert main(report) == 0
    page = (here / "page.html").read_text()
    assert "--method nsm+my_module:Mine --mine-weight 2" in page
    assert "my_module" not in sys.modules
    assert "Certain predictions." not in page
    assert main([*report, "--trust"]) == 0
    assert "method 'my_module:Mine' runs" in capsys.readouterr().err
    assert "Certain predictions." in (here / "page.html").read_text()


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which the plug-in of the examples is installed, and a broken one."""
    site = tmp_path_factory.mktemp("site")
    source = tmp_path_factory.mktemp("source") / "plugin"
    import shutil

    shutil.copytree(ROOT / "examples" / "plugin", source)
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    words += ["--no-build-isolation", "--disable-pip-version-check", "--target", str(site)]
    processes.run([*words, source])
    broken = site / "broken_plugin-1.0.dist-info"
    broken.mkdir()
    (broken / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-plugin\nVersion: 1.0\n")
    groups = ("methods", "benchmarks", "validators", "backbones")
    lines = [f"[equida.{group}]\nbroken = no_such_module:thing\n" for group in groups]
    (broken / "entry_points.txt").write_text("".join(lines))
    return os.environ | {
        "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(site)]),
        "OMP_NUM_THREADS": "1",
        "COLUMNS": "120",
        "DASK_DISTRIBUTED__WORKER__USE_FILE_LOCKING": "False",
    }


def equida_command(environment: dict[str, str], *words: str) -> processes.Ended:
    return processes.run([sys.executable, "-m", "equida", *words], env=environment)


GRID = ["bench", "turned", "--seeds", "1", "--iterations", "20", "--evaluate-every", "20"]
GRID += ["--batch-size", "24", "--quiet", "--format", "json"]


def results(out: Path) -> dict[str, dict[str, Any]]:
    found = {}
    for file in out.rglob("result.json"):
        config = json.loads((file.parent / "config.json").read_text())
        found[f"{config['method']} {config['overrides']}"] = json.loads(file.read_text()) | config
    return found


def test_an_installed_plugin_in_two_workers(installed: dict[str, str], tmp_path: Path) -> None:
    words = [*GRID, "--tasks", "P2T", "--methods", "nsm,cosine,bnm+cosine", "-j", "2"]
    words += ["--sweep", "scale=5,10", "--out", str(tmp_path / "runs")]
    done = equida_command(installed, *words)
    assert [line for line in done.err.splitlines() if "broken" in line]
    assert "Traceback" not in done.err
    made = results(tmp_path / "runs")
    assert len(made) == 5
    for name, run in made.items():
        assert "coverage" in run["picks"], name
        by_kind = {each["kind"]: each for each in run["plugins"]}
        assert by_kind["data set"]["name"] == "turned"
        if "cosine" in name:
            used = by_kind["method"]
            assert (used["distribution"], used["version"]) == ("equida-turned", "0.1")
            assert (used["module"], len(used["sha256"])) == ("equida_turned.method", 64)


def test_lists_say_where_a_plugin_comes_from(installed: dict[str, str]) -> None:
    done = equida_command(installed, "list", "methods")
    said = " ".join(done.out.split())
    assert "from equida-turned 0.1" in said
    assert "cannot import 'no_such_module'" in said
    assert "from broken-plugin 1.0" in said
    done = equida_command(installed, "list", "datasets", "turned")
    assert "Turned clouds: 480 images, 6 classes" in done.out, done.err


def test_a_plugin_on_a_dask_worker(installed: dict[str, str], tmp_path: Path) -> None:
    """An installed method and one of the current folder, on a worker started elsewhere."""
    pytest.importorskip("distributed", reason="needs the extra cluster")
    (tmp_path / "my_module.py").write_text(MINE)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    with dask_workers(elsewhere, 1, installed) as (address, _):
        words = [*GRID, "--tasks", "P2T", "--methods", "cosine,my_module:Mine", "--cluster"]
        command = [sys.executable, "-m", "equida", *words, address, "--out", "runs"]
        processes.run(command, env=installed, cwd=tmp_path)
        assert set(results(tmp_path / "runs")) == {"cosine {}", "my_module:Mine {}"}


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


OWN = """
from equida.evaluation.validators import validator

@validator("own", "Own", "the same everywhere")
def own(target, source=None):
    return 1.0
"""


@pytest.fixture
def own_validator(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A validator in a module of the current folder."""
    (own_folder / "my_validator.py").write_text(OWN)
    monkeypatch.setattr(plugins, "_names", set())
    __import__("my_validator")
    yield
    sys.modules.pop("my_validator")
    for registry in (VALIDATORS, FIGURES):
        registry._entries.pop("own", None)


@pytest.mark.usefixtures("own_validator")
def test_workers_know_a_validator_of_ones_own() -> None:
    """Before: its column was empty, `keep` failed in every run, and `select` did not know it."""
    data = blobs()
    pair = (data.source, data.labels), (data.target, data.labels)
    table = equida.compare(
        *pair, methods=["source_only", "nsm"], seeds=1, jobs=2, select="own",
        recipe_params=SHORT | {"keep": "own"}, out="compared", progress=False,
    )  # fmt: skip
    assert [row.cells["own"].mean for row in table.rows] == [1.0, 1.0]


@pytest.mark.usefixtures("own_folder")
def test_a_validator_of_a_function_is_refused_where_others_would_need_it() -> None:
    try:

        @validator("local", "Local", "the same everywhere")
        def local(target: Any, source: Any = None) -> float:
            return 1.0

        data = blobs()
        pair = (data.source, data.labels), (data.target, data.labels)
        with pytest.raises(InputError, match="put it into a module of its own"):
            equida.compare(
                *pair, methods=["nsm"], seeds=2, jobs=2, out="compared", progress=False,
                recipe_params=SHORT | {"keep": "local"},
            )  # fmt: skip
    finally:
        for registry in (VALIDATORS, FIGURES):
            registry._entries.pop("local", None)
