"""A process that runs `equida adapt` is killed, again and again, and started again."""

import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.processes import LIMIT

from equida.cli import main

Equida = Callable[..., "subprocess.Popen[str]"]


def wait_for(condition: Callable[[], bool], process: "subprocess.Popen[str]") -> None:
    end = time.monotonic() + LIMIT
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.002)


def killed(process: "subprocess.Popen[str]") -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL


def moments(out: Path) -> list[Callable[[], bool]]:
    """When the config is there, while the first checkpoint is written, and in the middle."""
    return [
        lambda: (out / "config.json").exists(),
        lambda: any(out.glob("checkpoint.pt.*.tmp")) or (out / "checkpoint.pt").exists(),
        lambda: (out / "log.jsonl").read_text().count("evaluation") >= 3,
    ]


def test_weights_after_sigkills_are_bit_identical(
    toy: Path, tmp_path: Path, equida: Equida
) -> None:
    flags = ["-s", f"{toy}:a", "-t", f"{toy}:b", "--iterations", "400", "--batch-size", "12"]
    flags += ["--evaluate-every", "20", "--log-every", "3", "--bottleneck", "16", "--quiet"]
    broken, whole = tmp_path / "broken", tmp_path / "whole"
    for moment in moments(broken):
        process = equida(["adapt", *flags, "--out", str(broken)])
        wait_for(moment, process)
        killed(process)
        assert not (broken / "result.json").exists()
    assert (broken / "checkpoint.pt").exists()
    assert main(["adapt", *flags, "--out", str(broken)]) == 0
    assert main(["adapt", *flags, "--out", str(whole)]) == 0
    first, second = (folder / "model.safetensors" for folder in (broken, whole))
    assert first.read_bytes() == second.read_bytes()
    logs = [(folder / "log.jsonl").read_text() for folder in (broken, whole)]
    assert logs[0] == logs[1]
    names = {"config.json", "log.jsonl", "model.safetensors", "predictions.safetensors"}
    left = {file.name for file in whole.iterdir()}
    assert left == names | {"result.json", "lock"}


@pytest.mark.parametrize("workers", ["0", "2"])
def test_images_with_augmentation_and_dropout(
    workers: str, pictures: Path, tmp_path: Path, equida: Equida
) -> None:
    flags = ["-s", str(pictures / "photos"), "-t", str(pictures / "drawings"), "--quiet"]
    flags += ["--backbone", "tiny_backbone:net", "--iterations", "8", "--batch-size", "4"]
    flags += ["--evaluate-every", "4", "--workers", workers, "--bottleneck", "6"]
    flags += ["--dropout", "0.5", "--learning-rate", "0.01"]
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    assert main(["adapt", *flags, "--out", str(whole)]) == 0
    process = equida(["adapt", *flags, "--out", str(broken)], cwd=pictures)
    wait_for(lambda: (broken / "checkpoint.pt").exists(), process)
    killed(process)
    shutil.rmtree(broken / "tensorboard", ignore_errors=True)
    if not (broken / "result.json").exists():
        assert main(["adapt", *flags, "--out", str(broken)]) == 0
    first, second = (folder / "model.safetensors" for folder in (broken, whole))
    assert first.read_bytes() == second.read_bytes()
