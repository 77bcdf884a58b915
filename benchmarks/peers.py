"""The same head on the same rows, trained by equida, by two bare loops and by other libraries.

Bottleneck of 256 with batch normalisation, ReLU and dropout, 1000 steps of 36 + 36 rows, SGD with
Nesterov momentum, learning rate 0.01 (1 + 0.001 step)^-0.75, one thread. The tuned loop is that of
`python -m benchmarks training`; the naive one draws batches by torch's `DataLoader` and has SGD as
it comes. Each library has an environment of its own, which is made with venv and pip below
`.venv-peers` where it is not there yet (a few hundred megabytes); where that is not possible, the
library's row says why. Times are those of training by processor time, as ratios to the tuned loop:
medians of runs in turn, each round in processes of its own.

`python -m benchmarks peers FILE [TASK [ROUNDS]]` takes a task of Office-31 (A2W by default) from a
feature file; without a file the rows are the pixels of the bundled digits, MNIST to UCI.
"""

import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from benchmarks.peer_head import Rows
from benchmarks.peer_loops import METHODS
from equida.data import ArrayDomain, Domain, load_task

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENTS = ROOT / ".venv-peers"
STEPS, ROUNDS = 1000, 3
TITLES = {"bnm": "BNM", "dann": "DANN", "dan": "MMD"}
NOTES = (
    "equida and the loops ramp the method's term over the first 100 steps and, for DANN, the"
    " reversed gradient over the whole run; the libraries have full weights from the first step.",
    "MMD: five Gaussians over all pairs of bottleneck features; in pytorch-adapt their bandwidth is"
    " the median distance of the source batch (`MMDLoss`), in skada there are 33 kernels of"
    " exp(-distance) (`DAN`).",
    "skada normalises both domains as one batch; the others, each domain by itself. Its DANN has"
    " our discriminator, as its own ends in a softmax over one output.",
    "pytorch-adapt draws source rows with replacement, and its steps are hooks in a plain loop.",
)


class Unavailable(Exception):
    """A peer cannot be installed or does not run here; the text says why."""


@dataclass(frozen=True)
class Peer:
    """Somebody who trains the head."""

    name: str
    module: str
    """Below `benchmarks`, the script that runs in the peer's environment."""
    packages: tuple[str, ...] = ()
    """What pip installs there; without any, the environment is this one."""
    arguments: tuple[str, ...] = ()


PEERS = (
    Peer("tuned loop", "peer_loops", arguments=("tuned",)),
    Peer("naive loop", "peer_loops", arguments=("naive",)),
    Peer("equida", "peer_loops", arguments=("equida",)),
    Peer("skada", "peer_skada", ("skada", "skorch", "torch")),
    # Its torchmetrics needs pkg_resources, which later versions of setuptools lack.
    Peer("pytorch-adapt", "peer_pytorch_adapt", ("pytorch-adapt", "setuptools<81")),
)


def run_command(command: Sequence[str | Path], what: str) -> str:
    """What a command prints.

    Raises:
        Unavailable: it fails or cannot be started; the reason is the last line that it says.
    """
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            list(map(str, command)), cwd=ROOT, env=environment, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
    except OSError as error:
        raise Unavailable(f"{what}: {error}") from error
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()]
        raise Unavailable(f"{what}: {said[-1].strip() if said else f'exit {done.returncode}'}")
    return done.stdout


def python_of(peer: Peer, environments: Path) -> Path:
    """The interpreter that has the peer; its environment is made where it is not there yet.

    Raises:
        Unavailable: the environment cannot be made.
    """
    if not peer.packages:
        return Path(sys.executable)
    folder = environments / peer.name
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not (folder / "complete").exists():
        run_command([sys.executable, "-m", "venv", "--clear", folder], "no environment")
        pip: list[str | Path] = [python, "-m", "pip", "install", "--disable-pip-version-check"]
        run_command([*pip, "-c", ROOT / "constraints.txt", *peer.packages], "not installed")
        (folder / "complete").touch()
    return python


def train(
    peer: Peer, python: Path, file: Path, steps: int, seed: int, methods: Sequence[str]
) -> list[dict[str, Any]]:
    """How each method went, as the peer's script prints it.

    Raises:
        Unavailable: the script fails.
    """
    command: list[str | Path] = [python, "-m", f"benchmarks.{peer.module}", *peer.arguments]
    out = run_command([*command, file, str(steps), str(seed), *methods], "does not run")
    return [json.loads(line) for line in out.splitlines() if line.startswith("{")]


def measure(
    peers: Sequence[Peer],
    trained: Callable[[Peer, int], list[dict[str, Any]]],
    rounds: int,
) -> dict[str, list[dict[str, Any]] | str]:
    """By peer what all rounds found, or why there is nothing; the peers take turns.

    Args:
        peers: whom to ask.
        trained: trains by a peer with a seed; raises `Unavailable`.
        rounds: how often.
    """
    found: dict[str, list[dict[str, Any]] | str] = {peer.name: [] for peer in peers}
    for seed in range(rounds):
        for peer in peers:
            before = found[peer.name]
            if isinstance(before, str):
                continue
            try:
                before += trained(peer, seed)
            except Unavailable as error:
                found[peer.name] = str(error)
    return found


def table_rows(
    found: Mapping[str, list[dict[str, Any]] | str], base: str = "tuned loop"
) -> list[list[str]]:
    """For each peer its name and version, and a cell for each method.

    A cell has the ratio of processor times to the peer called `base`, and the mean accuracy; where
    there is neither, the reason.
    """
    return [
        [_name(peer, outcome), *(_cell(found, peer, base, method) for method in METHODS)]
        for peer, outcome in found.items()
    ]


def _name(peer: str, outcome: list[dict[str, Any]] | str) -> str:
    return peer if isinstance(outcome, str) else f"{peer} ({outcome[0]['version']})"


def _cell(
    found: Mapping[str, list[dict[str, Any]] | str], peer: str, base: str, method: str
) -> str:
    outcome = found[peer]
    if isinstance(outcome, str):
        return outcome
    mine = [each for each in outcome if each["method"] == method]
    if reasons := [each["reason"] for each in mine if "reason" in each]:
        return str(reasons[0])
    accuracy = f"{100 * statistics.fmean(each['accuracy'] for each in mine):.1f} %"
    others = found[base]
    if isinstance(others, str):
        return accuracy
    theirs = [each for each in others if each["method"] == method]
    mine_took, base_took = (
        statistics.median(each["processor"] for each in runs) for runs in (mine, theirs)
    )
    return f"{mine_took / base_took:.2f} x, {accuracy}"


def rows_of(file: str, task: str) -> tuple[Rows, str]:
    """The data, and what they are called."""
    name = "office31" if file else "digits"
    opened = load_task(name, task or ("A2W" if file else "M2U"), data_dir=file or None)
    (x, y), (other, others) = map(_arrays, (opened.source, opened.target))
    named = f"{name} {opened.name}" + (f", {Path(file).name}" if file else "")
    return Rows(*map(torch.from_numpy, (x, y, other, others))), named


def _arrays(domain: Domain) -> tuple[Any, Any]:
    assert isinstance(domain, ArrayDomain)
    values = np.asarray(domain.values, np.float32)
    return values.reshape(len(values), -1), np.asarray(domain.labels, np.int64)


def run(file: str = "", task: str = "", rounds: int = ROUNDS) -> None:
    """Print the table, and what differs between its rows."""
    rows, title = rows_of(file, task)
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "rows.npz"
        rows.save(data)

        def trained(peer: Peer, seed: int) -> list[dict[str, Any]]:
            return train(peer, python_of(peer, ENVIRONMENTS), data, STEPS, seed, METHODS)

        found = measure(PEERS, trained, int(rounds))
    when = datetime.datetime.now(datetime.UTC).date()
    table = Table(title=f"{title}; torch {torch.__version__}, {rounds} rounds, {when}")
    table.add_column("by")
    for method in METHODS:
        table.add_column(f"{TITLES[method]}: time, target accuracy")
    for row in table_rows(found):
        table.add_row(*row)
    console = Console(width=140)
    console.print(table)
    for note in NOTES:
        console.print(f"- {note}", markup=False, highlight=False)
