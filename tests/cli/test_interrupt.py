"""A run on two processes that is told to stop."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


def children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in found.read_text().split()] if found.exists() else []


def alive(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


def wait_for(what: Callable[[], bool], seconds: float = 90.0) -> None:
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.parametrize(
    ("early", "number", "group", "code"),
    [
        (False, signal.SIGTERM, False, 143),
        (True, signal.SIGTERM, False, 143),
        (True, signal.SIGINT, True, 130),
    ],
)
def test_the_processes_end_before_the_command_does(
    early: bool, number: int, group: bool, code: int, toy: Path, tmp_path: Path
) -> None:
    """By a scheduler (SIGTERM to the command), or by Ctrl-C, which reaches all of them at once."""
    run = tmp_path / "run"
    command = [sys.executable, "-m", "equida", "adapt", "-s", f"{toy}:a", "-t", f"{toy}:b"]
    command += ["--iterations", "1000000", "--evaluate-every", "20", "--batch-size", "8", "--quiet"]
    command += ["--bottleneck", "6", "--devices", "2", "--accelerator", "cpu", "--out", str(run)]
    process = subprocess.Popen(
        command,
        env=os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        # Whoever runs the tests in the background may ignore it, and have it inherited.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        # Two processes of the run, and one that watches over shared resources.
        started = children
        wait_for(lambda: len(started(process.pid)) == 3)
        if not early:
            wait_for((run / "checkpoint.pt").exists)
        workers = children(process.pid)
        os.killpg(process.pid, number) if group else process.send_signal(number)
        said, _ = process.communicate(timeout=60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert said == "equida: interrupted; the same command continues from here\n"
    assert process.returncode == code
    wait_for(lambda: not any(map(alive, workers)), seconds=5.0)
