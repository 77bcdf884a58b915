"""`equida doctor` without arguments: what is installed and usable."""

import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

from equida.cli import _installation as installation
from equida.cli import main


def test_it_lists_versions_devices_and_extras(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    for expected in ("Python", "torch ", "Devices: cpu", "threads", "torchvision:", *_extras()):
        assert expected in said


def test_every_extra_of_the_package_is_listed() -> None:
    assert set(installation.EXTRAS) == _extras()


def _extras() -> set[str]:
    project = Path(__file__).resolve().parents[2] / "pyproject.toml"
    if not project.is_file():
        pytest.skip("needs pyproject.toml of the source tree")
    extras = tomllib.loads(project.read_text())["project"]["optional-dependencies"]
    return set(extras) - {"dev", "docs", "all"}


def test_a_missing_extra_comes_with_its_pip_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = installation._version
    monkeypatch.setattr(
        installation, "_version", lambda name: None if name == "tensorboard" else real(name)
    )
    assert main(["doctor"]) == 0
    assert "pip install 'equida[tensorboard]'" in capsys.readouterr().out


def test_it_says_what_computes_features(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    onnxruntime = pytest.importorskip("onnxruntime", reason="needs the extra export")
    monkeypatch.setattr(installation, "_devices", lambda: ["cpu"])
    assert main(["doctor"]) == 0
    assert f"computed by onnxruntime {onnxruntime.__version__}\n" in capsys.readouterr().out
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert main(["doctor"]) == 0
    assert "computed by torch" in capsys.readouterr().out


def test_a_missing_requirement_is_a_problem(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = installation._version
    monkeypatch.setattr(
        installation, "_version", lambda name: None if name == "safetensors" else real(name)
    )
    assert main(["doctor"]) == 1
    assert "Missing: safetensors" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("compiled", "said"), [(True, "with its compiled operators"), (False, "not in this build")]
)
def test_the_state_of_torchvisions_operators(
    monkeypatch: pytest.MonkeyPatch, compiled: bool, said: str
) -> None:
    cure = ModuleType("equida.torchvision_ops")
    cure.ensure_operators = lambda: compiled  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "equida.torchvision_ops", cure)
    monkeypatch.setitem(sys.modules, "torchvision", ModuleType("torchvision"))
    monkeypatch.setattr(installation, "_version", lambda _: "1.0")
    assert said in installation.torchvision_state()


def test_torchvision_may_be_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "_version", lambda _: None)
    assert installation.torchvision_state() == "not installed"
