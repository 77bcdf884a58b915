"""A run on two processes that is told to stop."""

import signal
import sys
import time
from pathlib import Path

import pytest
from tests.processes import Process, alive, children, equida, python, run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


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
    flags = ["-s", f"{toy}:a", "-t", f"{toy}:b", "--iterations", "1000000", "--evaluate-every"]
    flags += ["20", "--batch-size", "8", "--quiet", "--bottleneck", "6", "--devices", "2"]
    command = equida("adapt", *flags, "--accelerator", "cpu", "--out", run)
    with Process(command) as process:
        # Two processes of the run, and one that watches over shared resources.
        process.wait_until(lambda: len(children(process.pid)) == 3, "three processes")
        if not early:
            process.wait_until((run / "checkpoint.pt").exists, "a checkpoint")
        workers = children(process.pid)
        process.send(number, group=group)
        ended = process.wait()
        assert ended.out + ended.err == (
            "equida: interrupted; the same command continues from here\n"
        )
        assert ended.code == code
        end = time.monotonic() + 5
        while any(map(alive, workers)):
            assert time.monotonic() < end, "a process of the run is left"
            time.sleep(0.05)


def test_a_second_signal_does_not_stop_the_first_from_ending_the_command() -> None:
    """`timeout` sends one to the command and one to its group; libraries unblock them."""
    code = """
import signal
from equida.cli import _signals

def interrupted_again():
    signal.raise_signal(signal.SIGTERM)

_signals.remove_unfinished = interrupted_again
_signals.exit_on_signals("interrupted")
signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
signal.raise_signal(signal.SIGTERM)
"""
    ended = run(python(code), limit=120, code=143)
    assert ended.err == "equida: interrupted\n"
