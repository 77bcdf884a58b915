"""Batches of a domain: shuffled without end for training, in order for testing.

Everything random is a pure function of the seed and of a batch's number: which samples a batch
holds, and how each of them is augmented. So a run that is resumed at step 700 sees what it would
have seen, whatever the number of workers, and N processes together see what one process would.

Images are read ahead by threads: Pillow decodes and resizes without the interpreter's lock, so that
threads are as fast as processes, and nothing is forked beside a running thread, which can deadlock.
"""

import concurrent.futures
import contextlib
import hashlib
import random
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from equida.data.domain import ArrayDomain
from equida.data.images import UnreadableImage
from equida.data.rows import as_table
from equida.data.samples import Batch, FileSamples, RowSamples, Samples, read
from equida.data.transforms import Transform
from equida.errors import InputError
from equida.torch_modes import cores

if TYPE_CHECKING:
    from PIL import Image


AnyTransform = Transform | Callable[["Image.Image"], Tensor]

PREFETCH = 2
"""Batches that are read ahead for each worker."""
PATIENCE_SECONDS = 600.0
"""How long a batch may take before the run stops and says what it was waiting for."""
GRACE_SECONDS = 5.0
"""How long a thread may take to end when its batches are not wanted any more."""


def derived_seed(*parts: int | str) -> int:
    """A seed of 63 bits that differs wherever one of `parts` does.

    >>> derived_seed(0, 1) == derived_seed(0, 1), derived_seed(0, 1) == derived_seed(1, 0)
    (True, False)
    """
    digest = hashlib.blake2b("/".join(map(str, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


class BatchStream(Iterator[Batch]):
    """Shuffled batches of a domain without end; the incomplete one of each pass is dropped.

    Batch number n is the same whenever and wherever it is made: `BatchStream(..., start=n)` goes on
    where a stream that gave n batches stopped. Attribute `step` is the number of the next batch.

    Args:
        domain: rows, or images together with a `transform`.
        batch_size: samples of a batch over all processes.
        transform: a `Transform`, or any function from a Pillow image to a tensor; what it draws
            from the generators of torch, numpy and random is made reproducible too.
        seed: what the order and the augmentations are derived from.
        start: number of the first batch.
        workers: threads that read and augment ahead; 0: the calling thread. Rows need none, and
            a transform that is not a `Transform` stays in the calling thread, because it may draw
            from global generators.
        pin_memory: put batches where a GPU copies them from without waiting.
        rank: which share of each batch to give, of `world_size` equal ones.
        world_size: how many processes share each batch.

    Raises:
        InputError: the domain has fewer samples than a batch, or a batch cannot be shared equally.
    """

    def __init__(
        self,
        domain: Samples,
        batch_size: int,
        transform: AnyTransform | None = None,
        seed: int = 0,
        start: int = 0,
        workers: int = 0,
        pin_memory: bool = False,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        if batch_size < 1 or batch_size % world_size:
            raise InputError(
                f"batch size is {batch_size}; expected a positive multiple of {world_size},"
                " the number of processes"
            )
        check_size(domain, batch_size)
        self.step = start
        self._plan = _Plan(len(domain), batch_size, seed, rank, world_size)
        self._batches = _batches(
            domain, transform, seed, self._plan.from_batch(start), workers, pin_memory
        )

    @property
    def batches_per_epoch(self) -> int:
        """How many batches one pass over the domain gives."""
        return self._plan.per_epoch

    def samples(self, number: int) -> Tensor:
        """Which samples batch `number` holds, over all processes."""
        return self._plan.samples_of(number)

    def __next__(self) -> Batch:
        batch = next(self._batches)
        self.step += 1
        return batch


def check_size(domain: Samples, batch_size: int) -> None:
    """Raise InputError for a domain that is smaller than a batch."""
    if len(domain) < batch_size:
        raise InputError(
            f"{domain.name} has {len(domain)} samples, fewer than a batch of {batch_size};"
            f" use a batch size of at most {len(domain)}"
        )


def eval_batches(
    domain: Samples,
    transform: AnyTransform | None = None,
    batch_size: int = 64,
    *,
    workers: int = 0,
    pin_memory: bool = False,
) -> Iterator[Batch]:
    """Every sample of a domain once, in order; the last batch may be smaller.

    Args:
        domain: rows (their plain view), or images together with a `transform`.
        transform: as for `BatchStream`.
        batch_size: samples of a batch.
        workers: threads that read ahead.
        pin_memory: as for `BatchStream`.
    """
    everything = torch.arange(len(domain))
    # Of nothing, split would make one empty part.
    parts = everything.split(batch_size) if len(everything) else ()
    draws = (_Draws(-1, samples) for samples in parts)
    return _batches(domain, transform, 0, draws, workers, pin_memory)


class _Draws(NamedTuple):
    """Some samples of one pass over the domain; in pass -1 nothing is random."""

    epoch: int
    samples: Tensor

    def seeds(self, seed: int) -> list[int]:
        """For each sample, what its random numbers are derived from."""
        return [derived_seed(seed, self.epoch, sample) for sample in self.samples.tolist()]


class _Plan:
    """Which samples batch number n holds."""

    def __init__(self, samples: int, batch: int, seed: int, rank: int, world_size: int) -> None:
        self.samples, self.batch, self.seed = samples, batch, seed
        self.per_epoch = samples // batch
        share = batch // world_size
        self.share = slice(rank * share, (rank + 1) * share)

    def from_batch(self, start: int) -> Iterator[_Draws]:
        epoch, first = divmod(start, self.per_epoch)
        while True:
            for batch in self._epoch(epoch)[first:]:
                yield _Draws(epoch, batch[self.share])
            epoch, first = epoch + 1, 0

    def samples_of(self, number: int) -> Tensor:
        epoch, position = divmod(number, self.per_epoch)
        return self._epoch(epoch)[position]

    def _epoch(self, epoch: int) -> list[Tensor]:
        generator = torch.Generator().manual_seed(derived_seed(self.seed, "order", epoch))
        order = torch.randperm(self.samples, generator=generator)
        return list(order.split(self.batch))[: self.per_epoch]


def _batches(
    domain: Samples,
    transform: AnyTransform | None,
    seed: int,
    draws: Iterator[_Draws],
    workers: int,
    pin_memory: bool,
) -> Iterator[Batch]:
    pin_memory = pin_memory and torch.cuda.is_available()
    reader = _Reader(domain, transform, seed)
    rows = _RowReader(domain, seed) if isinstance(domain, RowSamples) else None
    read: Callable[[_Draws], Batch] = rows.read if rows else reader.read
    if pin_memory:
        read = _pinned(read)
    if rows or workers == 0 or not isinstance(transform, Transform):
        return map(read, draws)
    return _read_ahead(read, draws, min(workers, cores()), reader)


def _read_ahead(
    read: Callable[["_Draws"], Batch], draws: Iterator["_Draws"], workers: int, reader: "_Reader"
) -> Iterator[Batch]:
    """The batches in their order, read by threads while the caller works on earlier ones."""
    tasks: SimpleQueue[tuple[_Draws, Future[Batch]] | None] = SimpleQueue()
    # Daemons, so that one that waits for a dead disk for ever does not keep the process alive.
    threads = [Thread(target=_work, args=(read, tasks), daemon=True) for _ in range(workers)]
    for thread in threads:
        thread.start()
    waiting: deque[Future[Batch]] = deque()
    try:
        while True:
            while len(waiting) < PREFETCH * workers and (draw := next(draws, None)) is not None:
                waiting.append(Future())
                tasks.put((draw, waiting[-1]))
            if not waiting:
                return
            yield _patiently(waiting.popleft(), reader)
    finally:
        for batch in waiting:
            batch.cancel()
        for _ in threads:
            tasks.put(None)
        for thread in threads:
            thread.join(GRACE_SECONDS)


def _work(
    read: Callable[["_Draws"], Batch],
    tasks: "SimpleQueue[tuple[_Draws, Future[Batch]] | None]",
) -> None:
    """What a thread does until it is told to stop."""
    _one_torch_thread()
    while (task := tasks.get()) is not None:
        draw, batch = task
        if not batch.set_running_or_notify_cancel():
            continue
        try:
            batch.set_result(read(draw))
        except BaseException as error:
            batch.set_exception(error)


def _patiently(batch: "Future[Batch]", reader: "_Reader") -> Batch:
    """The batch; an end to waiting for a disk or a network share that does not answer."""
    try:
        return batch.result(PATIENCE_SECONDS)
    except concurrent.futures.TimeoutError:
        if batch.done():  # the batch raised it
            raise
        files = ", ".join(sorted(reader.at_work.values())) or "nothing: no thread has started"
        raise InputError(
            f"no batch of {reader.domain.name} came for {PATIENCE_SECONDS:.0f} s; its threads are"
            f" reading {files}; check that the disk answers, then start the same command again"
        ) from None


def _one_torch_thread() -> None:
    """In a thread that reads images, keep torch from starting a team of threads of its own."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(1, user_api="openmp")


def _pinned(read: Callable[["_Draws"], Batch]) -> Callable[["_Draws"], Batch]:
    return lambda draws: Batch(*(tensor.pin_memory() for tensor in read(draws)))


class _RowReader:
    """Draws to batches of rows; this is the path of a step that costs two milliseconds."""

    def __init__(self, domain: Any, seed: int) -> None:
        self.domain, self.seed, self.views = domain, seed, domain.views
        self.labels = _labels(domain)
        one_view = isinstance(domain, ArrayDomain) and self.views == 1
        self.table = as_table(domain.values) if one_view else None

    def read(self, draws: _Draws) -> Batch:
        samples = draws.samples
        if self.table is not None:
            rows, numbers = self.table
            chosen = samples if numbers is None else numbers[samples]
            x = rows.index_select(0, chosen).to(torch.float32)
            return Batch(x, self.labels[samples], samples)
        view: NDArray[np.int64] | int = 0
        if self.views > 1 and draws.epoch >= 0:
            view = np.array([number % self.views for number in draws.seeds(self.seed)], np.int64)
        return Batch(self.domain.rows(samples.numpy(), view), self.labels[samples], samples)


class _Reader:
    """Draws to batches of images, in the calling thread or in several others."""

    def __init__(self, domain: Samples, transform: AnyTransform | None, seed: int) -> None:
        self.domain, self.transform, self.seed = domain, transform, seed
        self.labels = _labels(domain)
        self.at_work: dict[int, str] = {}
        """By thread, the file that it is reading."""

    def read(self, draws: _Draws) -> Batch:
        try:
            x = self._x(draws)
        except UnreadableImage as error:
            advice = "replace it, or leave it out with --skip-unreadable"
            raise UnreadableImage(error.path, f"{error.reason}; {advice}") from None
        return Batch(x, self.labels[draws.samples], draws.samples)

    def _x(self, draws: _Draws) -> Tensor:
        pairs = zip(draws.samples.tolist(), draws.seeds(self.seed), strict=True)
        if isinstance(self.transform, Transform):
            return self.transform.normalize(torch.stack([self._pixels(*pair) for pair in pairs]))
        return torch.stack([self._sample(*pair) for pair in pairs])

    def _pixels(self, index: int, seed: int) -> Tensor:
        transform = self.transform
        assert isinstance(transform, Transform)
        generator = torch.Generator().manual_seed(seed) if transform.random else None
        thread = threading.get_ident()
        self.at_work[thread] = _file_of(self.domain, index)
        try:
            return transform.pixels(read(self.domain, index, transform), generator)
        finally:
            self.at_work.pop(thread, None)

    def _sample(self, index: int, seed: int) -> Tensor:
        sample = self.domain[index]
        if isinstance(sample, Tensor):
            return sample
        if self.transform is None:
            raise InputError(f"{self.domain.name} holds images; give a transform to load them")
        with _global_generators(seed):
            return self.transform(sample)


def _file_of(domain: Samples, index: int) -> str:
    return str(domain.path(index)) if isinstance(domain, FileSamples) else f"sample {index}"


def _labels(domain: Samples) -> Tensor:
    known = domain.labels
    return torch.full((len(domain),), -1) if known is None else torch.from_numpy(known)


@contextlib.contextmanager
def _global_generators(seed: int) -> Iterator[None]:
    """The global generators of torch, numpy and random, seeded; put back afterwards.

    Somebody else's transform draws from these, numpy's old one included.
    """
    states = torch.get_rng_state(), np.random.get_state(), random.getstate()  # noqa: NPY002
    torch.default_generator.manual_seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002
    random.seed(seed)
    try:
        yield
    finally:
        torch.set_rng_state(states[0])
        np.random.set_state(states[1])  # noqa: NPY002
        random.setstate(states[2])
