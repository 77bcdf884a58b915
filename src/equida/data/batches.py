"""Batches of a domain: shuffled without end for training, in order for evaluation.

Everything random (which samples a batch holds, how each of them is augmented) is a pure function of
the seed and of the batch's number. So a run that is resumed at step 700 sees what it would have
seen otherwise, whatever the number of workers, and N processes together see what one process would.

Threads read images ahead: Pillow decodes and resizes without the interpreter's lock, so threads are
as fast as processes, and no process is forked beside a running thread, which can deadlock.
"""

import contextlib
import hashlib
import random
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from equida.data.checks import SKIP
from equida.data.domain import ArrayDomain, Domain, ImageDomain
from equida.data.images import UnreadableImage
from equida.data.read_ahead import FilesBeingRead, read_ahead
from equida.data.rows import as_table
from equida.data.transforms import Transform
from equida.errors import InputError
from equida.torch_modes import cores

if TYPE_CHECKING:
    from PIL import Image


AnyTransform = Transform | Callable[["Image.Image"], Tensor]

PREFETCH = 2
"""Batches that are read ahead for each worker."""


class Batch(NamedTuple):
    """Some samples of a domain.

    Attributes:
        x: images or rows as float32, (batch, ...).
        labels: (batch,), -1 where a label is unknown.
        indices: (batch,), the samples' positions in the domain.
    """

    x: Tensor
    labels: Tensor
    indices: Tensor


def read_sample(domain: Domain, index: int, transform: Transform) -> "Image.Image":
    """The image at `index`, at reduced scale where the transform asks for it."""
    if isinstance(domain, ImageDomain):
        reduced = transform.open_reduced(domain.path(index))
        if reduced is not None:
            return reduced
    image = domain[index]
    if isinstance(image, Tensor):
        raise InputError(f"{domain.name} holds rows; its batches need no image transform")
    return image


def derived_seed(*parts: int | str) -> int:
    """A seed of 63 bits that is different whenever one of `parts` is.

    >>> derived_seed(0, 1) == derived_seed(0, 1), derived_seed(0, 1) == derived_seed(1, 0)
    (True, False)
    """
    digest = hashlib.blake2b("/".join(map(str, parts)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


class BatchStream(Iterator[Batch]):
    """Shuffled batches of a domain without end; the incomplete batch of each pass is dropped.

    A domain that is smaller than a batch is gone through several times for each batch; how often
    two samples are in it differs by one at most.

    Batch number n is always the same: `BatchStream(..., start=n)` continues where a stream that
    gave n batches stopped. The attribute `step` is the number of the next batch.

    Args:
        domain: rows, or images together with a `transform`.
        batch_size: samples of a batch over all processes.
        transform: a `Transform`, or any function from a Pillow image to a tensor; random numbers
            that it draws from torch, numpy and random are made reproducible too.
        seed: the order and the augmentations are derived from it.
        start: the number of the first batch.
        workers: threads that read and augment ahead; 0: the calling thread does it. Rows need no
            threads, and a transform that is not a `Transform` stays in the calling thread, because
            it may draw from global generators.
        pin_memory: put batches into memory from which a GPU can copy without waiting.
        rank: which of the `world_size` equal shares of each batch this process gets.
        world_size: how many processes share each batch.

    Raises:
        InputError: the domain is empty, or the processes cannot share a batch equally.
    """

    def __init__(
        self,
        domain: Domain,
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
        if len(domain) == 0:
            raise InputError(f"{domain.name} has no samples; expected at least one")
        self.step = start
        self._plan = _Plan(len(domain), batch_size, seed, rank, world_size)
        self._batches = _batches(
            domain, transform, seed, self._plan.from_batch(start), workers, pin_memory
        )

    def samples(self, number: int) -> Tensor:
        """The samples of batch `number`, over all processes."""
        return self._plan.samples_of(number)

    def __next__(self) -> Batch:
        batch = next(self._batches)
        self.step += 1
        return batch


def eval_batches(
    domain: Domain,
    transform: AnyTransform | None = None,
    batch_size: int = 64,
    *,
    workers: int = 0,
) -> Iterator[Batch]:
    """Every sample of a domain once, in order; the last batch may be smaller.

    Args:
        domain: rows (their plain view), or images together with a `transform`.
        transform: as for `BatchStream`.
        batch_size: samples of a batch.
        workers: threads that read ahead.
    """
    everything = torch.arange(len(domain))
    # An empty domain has no batches, but split would make an empty one.
    parts = everything.split(batch_size) if len(everything) else ()
    draws = (_Draws(-1, samples) for samples in parts)
    return _batches(domain, transform, 0, draws, workers)


class _Draws(NamedTuple):
    """Some samples of one pass (epoch) over the domain; in pass -1 nothing is random."""

    epoch: int
    samples: Tensor
    repeats: Tensor | None = None
    """How often each sample came in the batch before; None: never."""

    def seeds(self, seed: int) -> list[int]:
        """The seed of each sample's random numbers."""
        repeats = [0] * len(self.samples) if self.repeats is None else self.repeats.tolist()
        return [
            derived_seed(seed, self.epoch, sample, *([repeat] if repeat else ()))
            for sample, repeat in zip(self.samples.tolist(), repeats, strict=True)
        ]


class _Plan:
    """The samples of each batch, by the batch's number."""

    def __init__(self, samples: int, batch: int, seed: int, rank: int, world_size: int) -> None:
        self.samples, self.batch, self.seed = samples, batch, seed
        self.per_epoch = max(1, samples // batch)
        share = batch // world_size
        self.share = slice(rank * share, (rank + 1) * share) if world_size > 1 else None

    def from_batch(self, start: int) -> Iterator[_Draws]:
        epoch, first = divmod(start, self.per_epoch)
        while True:
            for batch in self._epoch(epoch)[first:]:
                yield _Draws(epoch, self._mine(batch), self._repeats())
            epoch, first = epoch + 1, 0

    def samples_of(self, number: int) -> Tensor:
        epoch, position = divmod(number, self.per_epoch)
        return self._epoch(epoch)[position]

    def _epoch(self, epoch: int) -> list[Tensor]:
        generator = torch.Generator().manual_seed(derived_seed(self.seed, "order", epoch))
        passes = max(1, -(-self.batch // self.samples))
        order = torch.cat(
            [torch.randperm(self.samples, generator=generator) for _ in range(passes)]
        )
        if passes > 1:
            return [order[: self.batch]]
        return list(order.split(self.batch))[: self.per_epoch]

    def _repeats(self) -> Tensor | None:
        if self.samples >= self.batch:
            return None
        return self._mine(torch.arange(self.batch) // self.samples)

    def _mine(self, batch: Tensor) -> Tensor:
        return batch if self.share is None else batch[self.share]


def _batches(
    domain: Domain,
    transform: AnyTransform | None,
    seed: int,
    draws: Iterator[_Draws],
    workers: int,
    pin_memory: bool = False,
) -> Iterator[Batch]:
    pin_memory = pin_memory and torch.cuda.is_available()
    reader: _Reader | _RowReader = (
        _RowReader(domain, seed)
        if isinstance(domain, ArrayDomain)
        else _Reader(domain, transform, seed)
    )
    read: Callable[[_Draws], Batch] = _pinned(reader.read) if pin_memory else reader.read
    if not isinstance(reader, _Reader) or workers == 0 or not isinstance(transform, Transform):
        return map(read, draws)
    workers = min(workers, cores())
    return read_ahead(
        read,
        draws,
        workers,
        ahead=PREFETCH * workers,
        what=f"batch of {domain.name}",
        at_work=reader.at_work,
        prepare=_one_torch_thread,
    )


def _one_torch_thread() -> None:
    """Keep torch from starting threads of its own in a thread that reads images."""
    from threadpoolctl import threadpool_limits

    threadpool_limits(1, user_api="openmp")


def _pinned(read: Callable[["_Draws"], Batch]) -> Callable[["_Draws"], Batch]:
    return lambda draws: Batch(*(tensor.pin_memory() for tensor in read(draws)))


class _RowReader:
    """Reads batches of rows. It must be fast: a training step on rows takes two milliseconds."""

    def __init__(self, domain: ArrayDomain, seed: int) -> None:
        self.domain, self.seed, self.views = domain, seed, domain.views
        self.labels = _labels(domain)
        self.table = as_table(domain.values) if self.views == 1 else None

    def read(self, draws: _Draws) -> Batch:
        samples = draws.samples
        if self.table is not None:
            rows, numbers = self.table
            chosen = samples if numbers is None else numbers[samples]
            x = rows.index_select(0, chosen).to(torch.float32)
            return Batch(x, self.labels.index_select(0, samples), samples)
        view: NDArray[np.int64] | int = 0
        if self.views > 1 and draws.epoch >= 0:
            view = np.array([number % self.views for number in draws.seeds(self.seed)], np.int64)
        return Batch(self.domain.rows(samples.numpy(), view), self.labels[samples], samples)


class _Reader:
    """Reads batches of images, in the calling thread or in several others."""

    def __init__(self, domain: Domain, transform: AnyTransform | None, seed: int) -> None:
        self.domain, self.transform, self.seed = domain, transform, seed
        self.labels = _labels(domain)
        self.at_work = FilesBeingRead()

    def read(self, draws: _Draws) -> Batch:
        try:
            x = self._x(draws)
        except UnreadableImage as error:
            advice = f"replace it, or leave it out with {SKIP}"
            raise UnreadableImage(error.path, f"{error.reason}; {advice}") from None
        return Batch(x, self.labels[draws.samples], draws.samples)

    def _x(self, draws: _Draws) -> Tensor:
        pairs = zip(draws.samples.tolist(), draws.seeds(self.seed), strict=True)
        if isinstance(self.transform, Transform):
            return self.transform.normalize(torch.stack([self._pixels(*pair) for pair in pairs]))
        return torch.stack([self._sample(*pair) for pair in pairs])

    def _pixels(self, index: int, seed: int) -> Tensor:
        domain, transform = self.domain, self.transform
        assert isinstance(transform, Transform)
        generator = torch.Generator().manual_seed(seed) if transform.random else None
        file = domain.path(index) if isinstance(domain, ImageDomain) else domain.identity(index)
        with self.at_work.reading(file):
            return transform.pixels(read_sample(domain, index, transform), generator)

    def _sample(self, index: int, seed: int) -> Tensor:
        sample = self.domain[index]
        if isinstance(sample, Tensor):
            return sample
        if self.transform is None:
            raise InputError(f"{self.domain.name} holds images; give a transform to load them")
        with _global_generators(seed):
            return self.transform(sample)


def _labels(domain: Domain) -> Tensor:
    known = domain.labels
    return torch.full((len(domain),), -1) if known is None else torch.from_numpy(known)


@contextlib.contextmanager
def _global_generators(seed: int) -> Iterator[None]:
    """Seed the global generators of torch, numpy and random, and restore them afterwards.

    A transform from elsewhere may draw from any of them, numpy's legacy generator included.
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
