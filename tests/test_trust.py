"""A stranger's files run no code: neither a run folder nor a feature file, unless they are trusted.

The module `stranger` leaves a file behind wherever it is imported, called or unpickled.
"""

import json
import pickle
import shutil
import sys
from pathlib import Path

import pytest
import torch
from tests import processes
from tests.small_data import write_pictures

import equida
from equida import plugins
from equida.cli import main
from equida.errors import InputError

CODE = """
import pathlib
import torch
from torch import nn
from equida.methods import Method

MARKER = pathlib.Path(__file__).with_name("marker")
MARKER.write_text("imported")

def net():
    MARKER.write_text("called")
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(3, 4, 5, 4), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    module.input_size = (3, 32, 32)
    return module

class Theirs(Method):
    def forward(self, source, labels, target, progress):
        MARKER.write_text("trained")
        return {}
"""
FLAGS = ["--iterations", "2", "--batch-size", "4", "--evaluate-every", "2", "--workers", "0"]
STRANGE = "stranger:net"


class Place:
    """The working folder, with two domains and the stranger's runs on them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.marker = folder / "marker"

    def forget(self) -> None:
        """As in a new process: nothing is permitted and nothing of the stranger's is imported."""
        plugins._names.clear()
        plugins.forget("stranger")
        self.marker.unlink(missing_ok=True)

    def edit(self, run: str, **values: object) -> Path:
        """A copy of a run whose record has other values."""
        copy = self.folder / "edited"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(self.folder / run, copy)
        config = json.loads((copy / "config.json").read_text())
        (copy / "config.json").write_text(json.dumps(config | values))
        return copy


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs that the stranger has made, on images and on features, and a feature file."""
    folder = tmp_path_factory.mktemp("stranger")
    write_pictures(folder, ("a", "b"), ("mug", "pen"), count=3)
    (folder / "stranger.py").write_text(CODE)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr(sys, "path", [*sys.path])
        common = ["adapt", "-s", "a", "-t", "b", "--backbone", STRANGE, *FLAGS, "--quiet"]
        assert main([*common, "-o", "images"]) == 0
        assert main([*common, "-o", "features", "--features"]) == 0
        assert main(["features", "a", "--backbone", STRANGE, "--out", "rows.safetensors"]) == 0
    return folder


@pytest.fixture
def place(made: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Place:
    monkeypatch.chdir(made)
    monkeypatch.setattr(plugins, "_names", set())
    monkeypatch.setattr(sys, "path", [*sys.path])
    here = Place(made)
    here.forget()
    return here


def commands(run: str) -> list[list[str]]:
    """Everything that can be done with a run of somebody else's."""
    return [
        ["predict", run, "b"],
        ["export", run, "--out", "exported", "--no-onnx"],
        ["rerun", run, "--quiet"],
        ["adapt", "--from", run, "-t", "b", *FLAGS, "--quiet", "-o", "further"],
    ]


@pytest.mark.parametrize("number", range(4), ids=["predict", "export", "rerun", "adapt"])
def test_a_run_of_a_strangers_backbone_runs_nothing(
    place: Place, number: int, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = commands("images")[number]
    assert main(argv) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1
    assert "names the backbone 'stranger:net'" in said[0]
    assert str(place.folder / "stranger.py") in said[0]
    assert "--trust" in said[0]
    assert not place.marker.exists()
    shutil.rmtree("further", ignore_errors=True)
    assert main([*argv, "--trust"]) == 0
    assert "trusting images/config.json: backbone 'stranger:net' runs" in capsys.readouterr().err
    assert place.marker.read_text() == "called"


@pytest.mark.parametrize("number", [0, 1, 3], ids=["predict", "export", "adapt"])
def test_a_run_on_a_strangers_features_runs_nothing(place: Place, number: int) -> None:
    assert main(commands("features")[number]) == 2
    assert not place.marker.exists()


def test_a_strangers_method_is_not_imported(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    run = str(place.edit("features", method="nsm+stranger:Theirs", overrides={}))
    for argv in commands(run)[:3]:
        assert main(argv) == 2
        assert "'stranger:Theirs'" in capsys.readouterr().err
    assert main(["report", run, "--out", "page.html", "--maps", "0", "--quiet"]) == 0
    assert not place.marker.exists()


def test_a_data_set_is_never_code(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    """It is known by name, and no flag makes code of a name with a colon."""
    task = json.loads(Path("images/config.json").read_text())["task"]
    run = str(place.edit("features", task=task | {"benchmark": "stranger:net"}, backbone="none"))
    for argv in (["rerun", run, "--quiet", "--trust"], ["bench", "stranger:net", "--out", "grid"]):
        assert main(argv) == 2
        said = capsys.readouterr().err.strip().splitlines()[-1]
        assert "data set 'stranger:net' does not exist" in said
        assert "trust" not in said
        assert "module" not in said
    assert not place.marker.exists()


@pytest.mark.parametrize("backbone", ["net.pt2", "net.pt", "hf-hub:a/b", "local-dir:x", "../x"])
def test_only_known_networks_may_be_named_by_a_file(place: Place, backbone: str) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[object, ...]:
            return place.marker.write_text, ("unpickled",)

    for name in ("net.pt2", "net.pt"):
        Path(name).write_bytes(pickle.dumps(Bomb()))
    run = str(place.edit("images", backbone=backbone))
    for argv in commands(run):
        assert main(argv) == 2
    assert not place.marker.exists()


def test_weights_that_a_file_names_are_never_unpickled(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[object, ...]:
            return place.marker.write_text, ("unpickled",)

    torch.save({"0.weight": Bomb()}, "bomb.pth")
    run = str(place.edit("features", weights=str(place.folder / "bomb.pth")))
    assert main(["predict", run, "b", "--trust"]) == 2
    assert "could run code" in capsys.readouterr().err
    assert place.marker.read_text() == "called"  # by the trusted backbone, before its weights


def test_a_feature_file_runs_nothing(place: Place) -> None:
    """It names the network that made it; training and listing need only its rows."""
    rows = "rows.safetensors"
    assert main(["adapt", "-s", rows, "-t", rows, *FLAGS, "--quiet", "-o", "on_rows"]) == 0
    assert main(["features", "a", "--out", rows, "--backbone", "no_such_code:net"]) == 2
    assert main(["predict", "on_rows", "b"]) == 2
    assert not place.marker.exists()
    assert main(["predict", "on_rows", "b", "--trust"]) == 0
    assert place.marker.read_text() == "called"


@pytest.mark.slow(reason="a whole comparison")
def test_a_comparison_beside_a_strangers_run_runs_nothing(place: Place) -> None:
    shutil.copytree("images", "comparison/images")
    grid = ["--methods", "nsm", "--tasks", "U2M", "--seeds", "1", "--jobs", "1", "--quiet"]
    assert main(["bench", "digits", *grid, *FLAGS, "--out", "comparison"]) == 0
    assert main(["report", "comparison", "--out", "page.html", "--maps", "0", "--quiet"]) == 0
    assert not place.marker.exists()


def test_python_dash_m_does_not_look_into_the_current_folder(tmp_path: Path) -> None:
    (tmp_path / "difflib.py").write_text(f"open({str(tmp_path / 'marker')!r}, 'w')")
    package = {"PYTHONPATH": str(Path(equida.__file__).parents[1])}
    processes.run(processes.equida("--version"), cwd=tmp_path, env=package)
    assert not (tmp_path / "marker").exists()


def test_in_python_a_run_is_trusted_when_it_is_loaded(place: Place) -> None:
    with pytest.raises(InputError, match="trust=True"):
        equida.load_run("images").predict("b")
    with pytest.raises(InputError, match="stranger"):
        equida.adapt(None, "b", from_run="images", out="other")
    repr(equida.load_run("images"))
    assert not place.marker.exists()
    trusted = equida.load_run("images", trust=True)
    assert not place.marker.exists()
    assert len(trusted.predict("b")) == 6
    assert place.marker.exists()


def test_the_current_folder_hides_no_installed_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file called like a package that is installed, but not imported yet, is not taken for it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "this_is_mine.py").write_text("value = 1")
    plugins.permit("this_is_mine:value")
    assert plugins.load_object("backbone", "this_is_mine:value") == 1
    assert sys.path[-1] == str(tmp_path)
    (tmp_path / "colorsys.py").write_text("def mine(): ...")
    plugins.permit("colorsys:mine")
    with pytest.raises(InputError, match=r"hides .*colorsys\.py: give your file another name"):
        plugins.load_object("backbone", "colorsys:mine")


def test_code_that_fails_is_one_line_with_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "broken_by_half.py").write_text("\nx = 1 / 0\n")
    plugins.permit("broken_by_half:x")
    with pytest.raises(InputError, match=r"ZeroDivisionError.*broken_by_half\.py:2"):
        plugins.load_object("backbone", "broken_by_half:x")
