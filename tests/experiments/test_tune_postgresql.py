"""Two machines share a search in a real PostgreSQL server, which listens on loopback alone."""

import contextlib
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.processes import Process, equida, run

from equida.runs.search import read_search

pytest.importorskip("optuna", reason="needs optuna: pip install 'equida[tune]'")
pytest.importorskip("psycopg", reason="needs a driver: pip install 'psycopg[binary]'")

TINY = ("--iterations", 6, "--evaluate-every", 2, "--batch-size", 20, "--bottleneck", 4)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an empty database of a server that this test has started."""
    known = [Path(found).parent for found in [shutil.which("postgres")] if found]
    known += sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not known:
        pytest.skip("needs a PostgreSQL server: apt-get install postgresql")
    # The server refuses to be run by root.
    other: list[str] = []
    if os.geteuid() == 0:
        if subprocess.run(["id", "postgres"], capture_output=True).returncode:
            pytest.skip("root cannot run a PostgreSQL server, and there is no user postgres")
        # It is among the programs of the administrator, which a short PATH leaves out.
        runuser = shutil.which("runuser", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
        if runuser is None:
            pytest.skip("root cannot run a PostgreSQL server, and there is no runuser")
        other = [runuser, "-u", "postgres", "--"]
    place = tmp_path_factory.mktemp("postgresql")
    for folder in (place, *place.parents[:3]):
        with contextlib.suppress(PermissionError):
            folder.chmod(folder.stat().st_mode | 0o011)
    data = place / "data"
    data.mkdir()
    if other:
        shutil.chown(data, "postgres")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = ("-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=")
    run([*other, known[-1] / "initdb", "-D", data, "-U", "equida", "-A", "trust", "-N"], cwd=place)
    server: list[str | Path] = [*other, known[-1] / "postgres", "-D", data, "-p", str(port)]
    with Process([*server, *settings], cwd=place) as process:
        address = f"127.0.0.1:{port}"
        process.wait_until(lambda: "ready to accept" in process.err, "a server that answers")
        yield f"postgresql://equida@{address}/postgres"


def test_two_machines_share_a_search(server: str, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    centres, labels = random.normal(size=(3, 6)), np.arange(60) % 3
    a, b = (centres[labels] + move + random.normal(size=(60, 6)) for move in (0.0, 0.8))
    data = tmp_path / "blobs.npz"
    np.savez(data, a_x=a, a_y=labels, b_x=b, classes=np.array(["x", "y", "z"]))
    common = (f"{data}:a", f"{data}:b", "--method", "nsm,bnm", "--trials", 6, "-j", 1, *TINY)
    commands = [
        equida("tune", *common, "--storage", server, "--quiet", "--out", tmp_path / name)
        for name in ("first", "second")
    ]
    with Process(commands[0]) as first, Process(commands[1]) as second:
        for process in (first, second):
            ended = process.wait()
            assert ended.code == 0, ended.err
    # Each of the two may do one more trial than asked for; what one has done, the other knows.
    found = [read_search(tmp_path / name) for name in ("first", "second")]
    done = [len(list((tmp_path / name / "trials").iterdir())) for name in ("first", "second")]
    assert min(done) >= 1
    assert 6 <= sum(done) <= 8
    assert all(one is not None and 6 <= len(one.tried) <= 8 for one in found)
    assert all(
        (tmp_path / name / "chosen" / "result.json").exists() for name in ("first", "second")
    )
    # A third one, later, has nothing left to try.
    out = tmp_path / "third"
    run(equida("tune", *common, "--storage", server, "--quiet", "--out", out))
    assert not list(out.glob("trials/*"))
    last = read_search(out)
    assert last is not None
    assert last.chosen is not None
    assert last.chosen.score == max(one.score or 0.0 for one in last.tried)
