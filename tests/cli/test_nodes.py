"""Two machines, played by two commands on this one."""

import os
import socket
import subprocess
import sys
from pathlib import Path

from safetensors.torch import load_file

from equida.cli import main


def test_two_nodes_train_what_two_devices_train(toy: Path, tmp_path: Path) -> None:
    flags = ["-s", f"{toy}:a", "-t", f"{toy}:b", "--iterations", "6", "--batch-size", "8"]
    flags += ["--evaluate-every", "3", "--bottleneck", "6", "--accelerator", "cpu", "--quiet"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = os.environ | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    environment |= {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "equida", "adapt", *flags, "--num-nodes", "2"]
    nodes = [
        subprocess.Popen(
            [*command, "--out", str(tmp_path / "nodes")],
            env=environment | {"NODE_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        said = [node.communicate(timeout=120)[0] for node in nodes]
    finally:
        for node in nodes:
            node.kill()
    assert [node.returncode for node in nodes] == [0, 0], said
    assert main(["adapt", *flags, "--devices", "2", "--out", str(tmp_path / "devices")]) == 0
    ours, others = (load_file(tmp_path / n / "model.safetensors") for n in ("nodes", "devices"))
    assert all(ours[name].allclose(others[name], atol=1e-6) for name in others)
