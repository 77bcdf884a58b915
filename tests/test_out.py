"""No command writes over a file that equida did not write."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from equida.cli import main
from equida.errors import InputError
from equida.files import json_has, refuse_to_replace

PRECIOUS = "a letter"


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("toy") / "toy.npz"
    rows, labels = np.random.default_rng(0).normal(size=(40, 4)), np.arange(40) % 2
    np.savez(file, a_x=rows, a_y=labels, b_x=rows, b_y=labels)
    return file


def _adapt(toy: Path, out: Path) -> list[str]:
    flags = ["--iterations", "2", "--batch-size", "8", "--bottleneck", "4", "--quiet"]
    return ["adapt", "-s", f"{toy}:a", "-t", f"{toy}:b", "--out", str(out), *flags]


@pytest.fixture(scope="module")
def finished(toy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "run"
    assert main(_adapt(toy, out)) == 0
    return out


Command = Callable[[Path, Path, Path], list[str]]
COMMANDS: dict[str, tuple[str, Command]] = {
    "report": ("r.html", lambda toy, run, out: ["report", str(run), "--maps", "0", "-o", str(out)]),
    "predict": ("p.csv", lambda toy, run, out: ["predict", str(run), str(run), "-o", str(out)]),
    "export": (
        "model.safetensors",
        lambda toy, run, out: ["export", str(run), "--no-onnx", "-o", str(out.parent)],
    ),
    "export onnx": (
        "model.onnx", lambda toy, run, out: ["export", str(run), "--no-onnx", "-o", str(out.parent)]
    ),
    "adapt": ("model.safetensors", lambda toy, run, out: _adapt(toy, out.parent)),
    "adapt log": ("log.jsonl", lambda toy, run, out: _adapt(toy, out.parent)),
    "bench": ("table.csv", lambda toy, run, out: ["bench", "digits", "--out", str(out.parent)]),
    "paper": ("paper.md", lambda toy, run, out: ["paper", str(run), "--out", str(out.parent)]),
    "theory": ("theory.json", lambda toy, run, out: ["theory", "--out", str(out.parent)]),
}  # fmt: skip


@pytest.mark.parametrize("verb", COMMANDS)
def test_a_file_of_somebody_else_stays(
    verb: str, toy: Path, finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name, command = COMMANDS[verb]
    file = tmp_path / name
    file.write_text(PRECIOUS)
    assert main(command(toy, finished, file)) == 2
    said = capsys.readouterr().err
    assert f"equida: {file} already exists and is not a file that this command may replace" in said
    assert "choose another --out, or move it away" in said
    assert file.read_text() == PRECIOUS
    assert [file.name for file in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("verb", ["report", "export", "paper", "adapt"])
def test_what_equida_wrote_is_written_again(
    verb: str, toy: Path, finished: Path, tmp_path: Path
) -> None:
    name, command = COMMANDS[verb]
    for _ in range(2):
        assert main(command(toy, finished, tmp_path / name)) == 0


def test_the_rule(tmp_path: Path) -> None:
    file, folder = tmp_path / "f.json", tmp_path / "folder"
    folder.mkdir()
    refuse_to_replace([file], lambda: False)
    file.touch()
    refuse_to_replace([file], lambda: False)
    file.write_text('{"a": 1}')
    with pytest.raises(InputError, match="is not a file that this command may replace"):
        refuse_to_replace([file], lambda: json_has(file, "a", "b"))
    refuse_to_replace([file], lambda: json_has(file, "a"))
    with pytest.raises(InputError, match="is a folder, not a file; choose another --out"):
        refuse_to_replace([folder], lambda: True)


@pytest.mark.parametrize("existed", [False, True])
@pytest.mark.parametrize(
    "call",
    [
        ["adapt", "no.npz:a", "no.npz:b"],
        ["compare", "no.npz:a", "no.npz:b"],
        ["tune", "no.npz:a", "no.npz:b"],
        ["bench", "office31", "--data", "no.npz"],
        ["features", "no", "--backbone", "tf_efficientnet_lite0"],
    ],
    ids=lambda call: str(call[0]),
)
def test_data_that_do_not_exist_leave_no_folder(
    call: list[str], existed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if existed:
        Path("out").mkdir()
    assert main([*call, "--out", "out"]) == 2
    assert Path("out").exists() is existed


def test_a_storage_that_does_not_exist_leaves_no_folder(toy: Path, tmp_path: Path) -> None:
    out = tmp_path / "search"
    call = ["tune", f"{toy}:a", f"{toy}:b", "--storage", "zz://", "--out", str(out)]
    assert main(call) == 2
    assert not out.exists()
