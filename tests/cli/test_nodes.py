"""Processes that others start: by hand on two machines (played on this one), torchrun and srun."""

import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.processes import run_together

from equida.cli import main

SLURM = {"SLURM_JOB_ID": "1", "SLURM_JOB_NAME": "job", "SLURM_NODELIST": "localhost"}


@pytest.fixture
def flags(toy: Path) -> list[str]:
    flags = ["-s", f"{toy}:a", "-t", f"{toy}:b", "--iterations", "6", "--batch-size", "8"]
    flags += ["--evaluate-every", "3", "--bottleneck", "6", "--accelerator", "cpu", "--quiet"]
    # Both look at the share of a process by design.
    return [*flags, "--dropout", "0", "--bottleneck-norm", "no"]


def free_port() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


def adapt(flags: Sequence[object]) -> list[str]:
    return [sys.executable, "-m", "equida", "adapt", *map(str, flags)]


def together(
    commands: Sequence[list[str]], environments: Sequence[Mapping[str, str]], code: int = 0
) -> list[str]:
    """What the commands print on both streams when they run at once; all must end with `code`."""
    port = free_port()
    added = [{"MASTER_PORT": port, **environment} for environment in environments]
    ended = run_together(commands, added)
    said = [each.out + each.err for each in ended]
    assert [each.code for each in ended] == [code] * len(ended), said
    return said


def same_weights(first: Path, second: Path) -> bool:
    ours, others = (load_file(folder / "model.safetensors") for folder in (first, second))
    return all(ours[name].allclose(others[name], atol=1e-6) for name in others)


@pytest.fixture
def alone(flags: list[str], tmp_path: Path) -> Path:
    """What one process trains."""
    assert main(["adapt", *flags, "--out", str(tmp_path / "alone")]) == 0
    return tmp_path / "alone"


def test_two_nodes_train_what_one_process_trains(
    flags: list[str], tmp_path: Path, alone: Path
) -> None:
    """Each with a disk of its own; what is on the first one's decides for both: that the run is
    finished already, or that another one is in the way."""
    commands = [adapt([*flags, "--num-nodes", 2, "--out", tmp_path / n]) for n in ("one", "two")]
    nodes = [{"MASTER_ADDR": "127.0.0.1", "NODE_RANK": str(rank)} for rank in range(2)]
    for _ in range(2):
        said = together(commands, nodes)
        assert "last step" in said[0]
        assert said[1] == ""
        assert same_weights(tmp_path / "one", alone)
    assert not (tmp_path / "two" / "result.json").exists()
    said = together([[*command, "--seed", "1"] for command in commands], nodes, code=2)
    complaint = f"{tmp_path / 'one'} holds a finished run of another configuration"
    differs = "(seed is 0 there and 1 here); choose another --out"
    assert said == [f"equida: {complaint} {differs}\n"] * 2


@pytest.mark.skipif(not torch.distributed.is_available(), reason="needs torch.distributed")
def test_torchrun(flags: list[str], tmp_path: Path, alone: Path) -> None:
    run = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    run += ["--master-port", free_port(), "-m", "equida", "adapt"]
    (said,) = together([[*run, *flags, "--devices", "2", "--out", str(tmp_path / "run")]], [{}])
    assert said.count("last step") == 1
    assert same_weights(tmp_path / "run", alone)


def test_srun_with_a_task_for_each_device(flags: list[str], tmp_path: Path, alone: Path) -> None:
    tasks = {"SLURM_NTASKS": "2", "SLURM_STEP_NUM_TASKS": "2", "SLURM_NTASKS_PER_NODE": "2"}
    numbers = ({"SLURM_PROCID": n, "SLURM_LOCALID": n, "SLURM_NODEID": "0"} for n in ("0", "1"))
    said = together(
        [adapt([*flags, "--devices", 2, "--out", tmp_path / "run"])] * 2,
        [SLURM | tasks | number for number in numbers],
    )
    assert ["last step" in text for text in said] == [True, False]
    assert same_weights(tmp_path / "run", alone)


@pytest.mark.parametrize("devices", [1, 2])
def test_a_job_with_tasks_that_it_does_not_start(
    devices: int, flags: list[str], tmp_path: Path
) -> None:
    """A batch script of four tasks without srun: the command has nothing to do with them."""
    tasks = {"SLURM_NTASKS": "4", "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NODEID": "0"}
    command = adapt([*flags, "--devices", devices, "--out", tmp_path / "run"])
    (said,) = together([command], [SLURM | tasks])
    assert "last step" in said
