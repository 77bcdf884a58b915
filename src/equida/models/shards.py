"""Features of images by many processes: those of a Dask cluster, or some of this machine.

The images are cut into shards of whole batches, the same batches that one process would compute, so
that the features are the same too. If a process dies, another one computes its shard.
"""

import contextlib
import functools
import hashlib
import math
import multiprocessing
import os
import signal
import socket
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from multiprocessing.connection import wait as wait_for
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import torch

from equida import plugins
from equida.cluster import dask_address, dask_client
from equida.data.feature_cache import (
    ComputedBatch,
    ExtractionOptions,
    FeatureBatches,
    FeatureSettings,
    ListedImages,
    ShardRunner,
)
from equida.errors import InputError
from equida.models.extractor import FeatureExtractor
from equida.torch_modes import MOST_PROCESSES, check_count, cores, threads_asked_for

MOST_BATCHES = 8
"""Batches of a shard: what a process that dies costs at most, and what is in memory at once."""
SHARDS_EACH = 4
"""How many shards each process gets at least, so that all end at about the same time."""
MOST_ATTEMPTS = 3
"""How many processes may die of a shard before the call fails."""
POLL_SECONDS = 5.0
PATIENCE_SECONDS = 30.0
"""How long a cluster may be without workers."""
ONE_AT_A_TIME = threading.Lock()
"""Threads of a cluster's worker would share one network and its cores."""


@dataclass(frozen=True)
class Shard:
    """Some batches of images, and all that a process needs to compute their features."""

    number: int
    batches: tuple[ListedImages, ...]
    settings: FeatureSettings
    options: ExtractionOptions
    backbone: str
    weights: Path | None
    code: plugins.Permission


@dataclass(frozen=True)
class ComputedShard:
    """What a process says of a shard: the features, and remarks for the user."""

    batches: list[ComputedBatch]
    remarks: tuple[str, ...] = ()


def shard_runner(
    extractor: FeatureExtractor, options: ExtractionOptions, devices: int = 1, cluster: str = ""
) -> ShardRunner | None:
    """What computes features in other processes; None where this one does it alone.

    Args:
        extractor: the network.
        options: how features are computed.
        devices: processes of this machine, each with a GPU where there are any.
        cluster: dask://HOST:PORT, whose workers find images and weights under the same paths.

    Raises:
        InputError: there are not so many devices, or both are asked for.
    """
    check_count("--devices", devices, f"a whole number from 1 to {MOST_PROCESSES}", 1)
    gpus = torch.cuda.device_count()
    if gpus and devices > gpus:
        raise InputError(f"--devices is {devices}; this machine has {gpus} GPUs")
    if cluster:
        dask_address(cluster)
        if devices > 1:
            raise InputError("--devices and --cluster are both given; choose one of them")
    elif devices == 1:
        return None
    if extractor.name.startswith("object:"):
        raise InputError(
            "the backbone is a module in memory, which other processes do not have; give a file or"
            " package.module:factory, or leave --devices and --cluster out"
        )
    compute = (
        functools.partial(_on_cluster, cluster)
        if cluster
        else functools.partial(_on_devices, devices)
    )
    return functools.partial(_run, extractor, options, compute)


Compute = Callable[[Callable[[int], list[Shard]]], Iterator[ComputedShard]]


def _run(
    extractor: FeatureExtractor,
    options: ExtractionOptions,
    compute: Compute,
    settings: FeatureSettings,
    batches: Sequence[ListedImages],
) -> Iterator[ComputedBatch]:
    """The features of the batches, in the order in which shards end."""
    code, weights = plugins.permission(), extractor.weights
    weights = Path(os.path.abspath(weights)) if weights else None

    def shards(processes: int) -> list[Shard]:
        size = math.ceil(len(batches) / (SHARDS_EACH * processes))
        size = min(MOST_BATCHES, size)
        return [
            Shard(number, cut, settings, options, extractor.name, weights, code)
            for number, start in enumerate(range(0, len(batches), size))
            for cut in (tuple(batches[start : start + size]),)
        ]

    said: set[str] = set()
    for done in compute(shards):
        for remark in done.remarks:
            if remark not in said:
                extractor.say(remark)
            said.add(remark)
        yield from done.batches


def compute_shard(shard: Shard) -> ComputedShard:
    """The features of the images of a shard, in this process."""
    plugins.grant(shard.code)
    with ONE_AT_A_TIME:
        _check_files(shard)
        extractor, remarks = _network(shard.backbone, shard.weights)
        found = extractor.backbone.weights_sha256
        if found != shard.settings.weights_sha256:
            raise InputError(
                f"{socket.gethostname()} has other weights of {shard.backbone} (SHA-256"
                f" {found[:12]}; expected {shard.settings.weights_sha256[:12]}); give --weights"
                " FILE, a path that leads to the same file everywhere"
            )
        engine = shard.options.engine
        at_work = FeatureBatches(
            shard.settings,
            shard.options,
            functools.partial(extractor.features, engine=engine),
            functools.partial(extractor.engine_name, engine),
        )
        made = [
            batch for images in shard.batches for batch in at_work.of(images, range(len(images)))
        ]
        return ComputedShard(made, tuple(remarks))


def _check_files(shard: Shard) -> None:
    """Raise InputError where this machine has other files than the one that asks."""
    for images in shard.batches:
        for path, content in zip(images.paths, images.contents, strict=True):
            try:
                with open(path, "rb") as file:
                    same = hashlib.file_digest(file, "sha256").digest() == content
            except OSError:
                # Its digest is that of its name, where nobody can open it.
                same = os.path.lexists(path)
            if not same:
                raise InputError(
                    f"{path} is another file on {socket.gethostname()}, or absent; workers need all"
                    " images under the same paths"
                )


@functools.lru_cache(maxsize=1)
def _network(backbone: str, weights: Path | None) -> tuple[FeatureExtractor, list[str]]:
    """The network, loaded once in a process, and what it has to say."""
    remarks: list[str] = []
    return FeatureExtractor(backbone, weights, remarks.append), remarks


def _on_cluster(cluster: str, cut: Callable[[int], list[Shard]]) -> Iterator[ComputedShard]:
    with dask_client(cluster) as client:
        from distributed import CancelledError, KilledWorker, TimeoutError, wait
        from distributed.comm.core import CommClosedError

        again = "; the same command again continues from what was computed"
        left: Any = client.map(
            compute_shard, cut(len(client.scheduler_info()["workers"])), pure=False
        )
        lonely = 0.0
        try:
            while left:
                try:
                    # What has ended is not kept: it would stay in the workers' memory.
                    ended, left = wait(left, POLL_SECONDS, "FIRST_COMPLETED")  # type: ignore[no-untyped-call]
                except TimeoutError:
                    alone = not client.scheduler_info()["workers"]
                    lonely = lonely + POLL_SECONDS if alone else 0.0
                    if lonely >= PATIENCE_SECONDS:
                        raise InputError(
                            f"{cluster} has had no workers for {lonely:.0f} s{again}"
                        ) from None
                    continue
                while ended:
                    yield ended.pop().result()
        except KilledWorker:
            raise InputError(_deadly("workers of the cluster")) from None
        except (CancelledError, CommClosedError):
            raise InputError(f"the scheduler at {cluster} is gone{again}") from None


def _deadly(what: str) -> str:
    return (
        f"{what} keep dying of the same images; most often that is a lack of memory: use a smaller"
        " --batch-size. The same command again continues from what was computed"
    )


class _Worker:
    """A process of this machine and the shard that it is at."""

    def __init__(self, device: int, threads: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.device = device
        self.line, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(
            target=_serve, args=(theirs, device, threads), daemon=True
        )
        self.shard: Shard | None = None
        self.process.start()
        theirs.close()  # so that the end of the process is the end of the line

    def give(self, shard: Shard) -> None:
        self.shard = shard
        with contextlib.suppress(OSError):  # it has died; waiting for its answer tells
            self.line.send(shard)

    def end(self) -> None:
        self.line.close()
        self.process.kill()
        self.process.join()


def _on_devices(devices: int, cut: Callable[[int], list[Shard]]) -> Iterator[ComputedShard]:
    """Shards by processes of this machine; one that dies is replaced."""
    left = deque(cut(devices))
    threads = threads_asked_for() or max(1, cores() // devices)
    deaths: Counter[int] = Counter()
    workers = [_Worker(device, threads) for device in range(min(devices, len(left)))]
    try:
        for worker in workers:
            worker.give(_lighter(left.popleft(), devices))
        while workers:
            (line, *_) = wait_for([worker.line for worker in workers])
            worker = next(worker for worker in workers if worker.line is line)
            assert worker.shard is not None
            try:
                answer: ComputedShard | Exception = worker.line.recv()
            except (EOFError, OSError):
                deaths[worker.shard.number] += 1
                if deaths[worker.shard.number] >= MOST_ATTEMPTS:
                    raise InputError(_deadly("processes")) from None
                left.appendleft(worker.shard)
                workers.remove(worker)
                worker.end()
                workers.append(_Worker(worker.device, threads))
                workers[-1].give(left.popleft())
                continue
            if isinstance(answer, Exception):
                raise answer
            if left:
                worker.give(_lighter(left.popleft(), devices))
            else:
                workers.remove(worker)
                worker.end()
            yield answer
    finally:
        for worker in workers:
            worker.end()


def _lighter(shard: Shard, devices: int) -> Shard:
    """The shard with its part of the threads that decode."""
    workers = max(1, shard.options.workers // devices)
    return replace(shard, options=replace(shard.options, workers=workers))


def _serve(line: "Connection[Any, Any]", device: int, threads: int) -> None:
    """Compute the shards that come, until the line ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one ends it
    threading.Thread(target=_end_with_parent, daemon=True).start()
    torch.set_num_threads(threads)
    if torch.cuda.is_available():
        torch.cuda.set_device(device)
    while True:
        try:
            shard = line.recv()
        except (EOFError, OSError):
            return
        try:
            answer: ComputedShard | Exception = compute_shard(shard)
        except Exception as error:
            answer = error if isinstance(error, InputError) else RuntimeError(repr(error))
        try:
            line.send(answer)
        except OSError:
            return


def _end_with_parent() -> None:
    """End this process when the one that started it is gone."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for([parent.sentinel])
        os._exit(1)
