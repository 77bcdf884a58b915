"""The table of peers: what it says of one that runs, and of one that cannot be had."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks import peers
from benchmarks.bare import DAN, Pass
from benchmarks.peer_loops import METHODS
from benchmarks.peers import Peer, Unavailable, measure, python_of, table_rows
from equida.alignment import mmd

LOOP, LIBRARY = Peer("tuned loop", "peer_loops"), Peer("library", "peer_library", ("library",))
SAID = "\nERROR: No matching distribution found for library\n"


def outcome(method: str, processor: float, accuracy: float) -> dict[str, Any]:
    return {
        "method": method, "version": "1.0", "wall": 9.0, "processor": processor,
        "accuracy": accuracy,
    }  # fmt: skip


def all_methods(processor: float, accuracy: float) -> list[dict[str, Any]]:
    return [outcome(method, processor, accuracy) for method in METHODS]


def test_a_peer_that_cannot_be_installed_has_a_row_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []

    def refuse(command: list[str], **named: Any) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        failed = "pip" in command
        return subprocess.CompletedProcess(command, int(failed), "", SAID if failed else "")

    monkeypatch.setattr(subprocess, "run", refuse)

    def trained(peer: Peer, seed: int) -> list[dict[str, Any]]:
        python_of(peer, tmp_path)
        return all_methods(2.0, 0.5)

    found = measure((LOOP, LIBRARY), trained, rounds=3)
    reason = "not installed: ERROR: No matching distribution found for library"
    assert table_rows(found)[1] == ["library", reason, reason, reason]
    assert len(commands) == 2, "it is not tried again in later rounds"
    assert str(tmp_path / "library") in commands[0]
    assert "constraints.txt" in " ".join(commands[1]), "another torch would bring CUDA"
    assert not (tmp_path / "library" / "complete").exists()


def test_an_environment_is_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def accept(command: list[str], **named: Any) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        (tmp_path / "library").mkdir(exist_ok=True)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", accept)
    assert python_of(LIBRARY, tmp_path) == python_of(LIBRARY, tmp_path)
    assert len(commands) == 2


def test_a_script_that_fails_is_a_reason_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(command: list[str], **named: Any) -> subprocess.CompletedProcess[str]:
        error = "Traceback (most recent call last):\nModuleNotFoundError: No module named 'x'\n"
        return subprocess.CompletedProcess(command, 1, "", error)

    monkeypatch.setattr(subprocess, "run", fail)
    with pytest.raises(Unavailable, match=r"^does not run: ModuleNotFoundError: No module named"):
        peers.train(LIBRARY, Path("python"), Path("rows.npz"), 1, 0, ["bnm"])


def test_cells_have_the_ratio_of_medians_and_the_mean_accuracy() -> None:
    missing = {"method": "bnm", "version": "1.0", "reason": "library has no BNM"}
    rounds = {
        "tuned loop": [all_methods(2.0, 0.8), all_methods(4.0, 0.9), all_methods(30.0, 0.7)],
        "library": [
            [missing, outcome("dann", time, accuracy), outcome("dan", 4.0, 1.0)]
            for time, accuracy in ((9.0, 0.5), (10.0, 0.6), (11.0, 0.7))
        ],
    }
    found = measure((LOOP, LIBRARY), lambda peer, seed: rounds[peer.name][seed], rounds=3)
    assert table_rows(found) == [
        ["tuned loop (1.0)", *["1.00 x, 80.0 %"] * 3],
        ["library (1.0)", "library has no BNM", "2.50 x, 60.0 %", "1.00 x, 100.0 %"],
    ]


def test_the_loops_have_the_discrepancy_of_equida() -> None:
    torch.manual_seed(0)
    source, target = torch.randn(12, 5).double(), 0.5 + torch.randn(12, 5).double()
    head = DAN(torch.nn.Linear(5, 2))
    labels, logits = torch.zeros(12), torch.zeros(12, 2)
    value = head(Pass(source, logits), labels, Pass(target, logits), 1.0, 1.0)
    torch.testing.assert_close(value, mmd(source, target), rtol=1e-9, atol=0.0)
