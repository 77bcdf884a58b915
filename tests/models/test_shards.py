"""Features by many processes: the bytes that one process writes, also where one of them dies."""

import functools
import multiprocessing
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.dask_cluster import dask_workers
from torch import nn

import equida
from equida import plugins
from equida.cli import main
from equida.data.feature_cache import ExtractionOptions
from equida.errors import InputError
from equida.models import shards
from equida.models.extractor import FeatureExtractor, image_domains
from equida.models.shards import ComputedShard, Shard, compute_shard, shard_runner
from equida.progress import Bar

NETWORK = """
import os, signal
from pathlib import Path
import torch
from torch import nn

HERE = Path(__file__).parent

class Net(nn.Module):
    # Notes each batch of four; where it is not the process that asks, the first one to come to its
    # second batch dies, once.
    input_size = (3, 8, 8)

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.convolution = nn.Conv2d(3, 5, 3)
        self.batches = 0

    def forward(self, images):
        if len(images) == 4:
            self.note()
        return self.convolution(images).mean((2, 3))

    def note(self):
        self.batches += 1
        if self.batches >= 2 and (HERE / "deadly").exists():
            if os.getpid() != int((HERE / "deadly").read_text()):
                try:
                    os.close(os.open(HERE / "died", os.O_CREAT | os.O_EXCL))
                    os.kill(os.getpid(), signal.SIGKILL)
                except FileExistsError:
                    pass
        with open(HERE / "batches", "a") as file:
            file.write(f"{os.getpid()}\\n")
"""
CALL = ["features", "photos", "--batch-size", "4", "--engine", "torch", "--backbone"]


@pytest.fixture
def network(tmp_path: Path) -> str:
    """The network's name; each test has a module of its own, as a process imports one once."""
    name = f"shard_net_{abs(hash(tmp_path))}"
    (tmp_path / f"{name}.py").write_text(NETWORK)
    return f"{name}:Net"


@pytest.fixture
def workplace(tmp_path: Path, network: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sixty-two images of two classes, and their features by one process."""
    for number in range(62):
        path = tmp_path / "photos" / ("mug", "pen")[number % 2] / f"{number:02d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(number).integers(0, 256, (9, 12, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(path)
    monkeypatch.chdir(tmp_path)
    assert main([*CALL, network, "--views", "1", "--out", "alone.safetensors"]) == 0
    assert len((tmp_path / "batches").read_text().split()) == 2 * 16
    (tmp_path / "batches").unlink()
    (tmp_path / "deadly").write_text(str(os.getpid()))
    return tmp_path


def check_after_a_death(folder: Path) -> None:
    """The file is that of one process, and what the dead one had done was done again, no more."""
    assert (folder / "died").exists()
    assert (folder / "shared.safetensors").read_bytes() == (
        folder / "alone.safetensors"
    ).read_bytes()
    workers = (folder / "batches").read_text().split()
    assert str(os.getpid()) not in workers
    # The process died in the second view of its first batch.
    assert len(workers) == 2 * 16 + 1


def test_a_worker_of_a_cluster_that_is_killed_costs_its_shard(
    workplace: Path,
    network: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("distributed", reason="needs the extra cluster")
    call = [*CALL, network, "--views", "1"]
    with dask_workers(workplace) as (address, workers):
        shared = ["--out", "shared.safetensors", "--cluster", address]
        assert main([*call, *shared]) == 0, capsys.readouterr().err
        assert sum(worker.poll() is None for worker in workers) == 1
        check_after_a_death(workplace)
        # Without the last one, nobody would ever end a shard.
        monkeypatch.setattr(shards, "POLL_SECONDS", 0.5)
        monkeypatch.setattr(shards, "PATIENCE_SECONDS", 1.0)
        (workplace / "died").unlink()
        assert main([*call, "--out", "other.safetensors", "--cluster", address]) == 2
    assert "has had no workers for 1 s; the same command again" in capsys.readouterr().err


def test_a_process_that_is_killed_costs_its_shard(
    workplace: Path, network: str, capsys: pytest.CaptureFixture[str]
) -> None:
    others = multiprocessing.active_children()  # such as idle workers of joblib
    call = [*CALL, network, "--views", "1", "--out", "shared.safetensors", "--devices", "2"]
    assert main(call) == 0, capsys.readouterr().err
    check_after_a_death(workplace)
    assert set(multiprocessing.active_children()) <= set(others)


def a_shard(folder: Path, network: str) -> Shard:
    """The first shard of the images, as the process that asks describes it."""
    plugins.permit(network)
    found: list[Shard] = []

    def take(cut: Callable[[int], list[Shard]]) -> Iterator[ComputedShard]:
        found.extend(cut(1))
        return iter(())

    chosen = ExtractionOptions(batch_size=4, engine="torch")
    extractor = FeatureExtractor(network)
    runner = functools.partial(shards._run, extractor, chosen, take)
    with pytest.raises(InputError, match="none of 62 images"):
        extractor.extract(
            image_domains("photos"), folder / "x.safetensors", chosen, Bar("silent"), shards=runner
        )
    return found[0]


def test_a_worker_with_other_files_or_weights_is_refused(workplace: Path, network: str) -> None:
    shard = a_shard(workplace, network)
    assert [len(batch.contents) for batch in compute_shard(shard).batches] == [4] * 4
    other = replace(shard, settings=replace(shard.settings, weights_sha256="0" * 64))
    with pytest.raises(InputError, match=r"has other weights of shard_net_.*expected 00000000"):
        compute_shard(other)
    Path(shard.batches[0].paths[1]).write_bytes(b"something else")
    with pytest.raises(InputError, match=r"photos/mug/02.png is another file on"):
        compute_shard(shard)
    Path(shard.batches[0].paths[1]).unlink()
    with pytest.raises(InputError, match="workers need all images under the same paths"):
        compute_shard(shard)


class Dying:
    """Stands for a process: dies of the shards with some numbers, once or each time."""

    deadly: dict[int, int]
    started: int

    def __init__(self, device: int, threads: int) -> None:
        self.device = device
        self.line, self.theirs = multiprocessing.Pipe()
        self.shard: Shard | None = None
        type(self).started += 1

    def give(self, shard: Shard) -> None:
        self.shard = shard
        if self.deadly.get(shard.number, 0) > 0:
            self.deadly[shard.number] -= 1
            self.theirs.close()
        else:
            self.theirs.send(ComputedShard([], (str(shard.number),)))

    def end(self) -> None:
        self.line.close()


@pytest.mark.parametrize(("deaths", "ends"), [({}, True), ({0: 2, 3: 1}, True), ({2: 3}, False)])
def test_a_shard_is_given_to_three_processes_at_most(
    monkeypatch: pytest.MonkeyPatch, deaths: dict[int, int], ends: bool
) -> None:
    made = [
        Shard(number, (), None, ExtractionOptions(), "", None, plugins.permission())  # type: ignore[arg-type]
        for number in range(5)
    ]
    Dying.deadly, Dying.started = dict(deaths), 0
    monkeypatch.setattr(shards, "_Worker", Dying)
    done = shards._on_devices(2, lambda processes: made)
    if ends:
        assert sorted(shard.remarks[0] for shard in done) == list("01234")
        assert Dying.started == 2 + sum(deaths.values())
    else:
        with pytest.raises(InputError, match="keep dying of the same images"):
            list(done)


def test_wrong_requests_are_one_line(
    workplace: Path,
    network: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for flags, message in (
        (["--devices", "0"], "--devices is 0; it must be a whole number from 1"),
        (["--cluster", "here"], "--cluster is 'here'; expected dask://HOST:PORT"),
        (["--cluster", "dask://127.0.0.1:1", "--devices", "2"], "choose one of them"),
    ):
        assert main([*CALL, network, "--out", "x.safetensors", *flags]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.count("\n") == 1
    with pytest.raises(InputError, match="a module in memory, which other processes do not have"):
        equida.extract_features("photos", backbone=nn.Flatten(), devices=2)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    with pytest.raises(InputError, match="--devices is 2; this machine has 1 GPUs"):
        shard_runner(FeatureExtractor("lenet"), ExtractionOptions(), devices=2)
