"""Batches of a domain: shuffled without end for training, in order for testing.

Everything random is a pure function of the seed and of a batch's number: which samples a batch
holds, and how each of them is augmented. So a run that is resumed at step 700 sees what it would
have seen, whatever the number of workers, and N processes together see what one process would.
"""

import contextlib
import hashlib
import random
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from equida.data.samples import Batch, RowSamples, Samples, read
from equida.data.transforms import Transform
from equida.errors import InputError

if TYPE_CHECKING:
    from PIL import Image


AnyTransform = Transform | Callable[["Image.Image"], Tensor]


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
        workers: processes that read and augment ahead; 0: the calling process. Rows need none.
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
        if len(domain) < batch_size:
            raise InputError(
                f"{domain.name} has {len(domain)} samples, fewer than a batch of {batch_size};"
                f" use a batch size of at most {len(domain)}"
            )
        self.step = start
        self._plan = _Plan(len(domain), batch_size, seed, rank, world_size)
        self._batches = _batches(
            domain, transform, seed, self._plan.from_batch(start), workers, pin_memory
        )

    @property
    def batches_per_epoch(self) -> int:
        """How many batches one pass over the domain gives."""
        return self._plan.per_epoch

    def __next__(self) -> Batch:
        batch = next(self._batches)
        self.step += 1
        return batch


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
        workers: processes that read ahead.
        pin_memory: as for `BatchStream`.
    """
    starts = range(0, len(domain), batch_size)
    draws = (
        [_Draw(-1, index) for index in range(start, min(start + batch_size, len(domain)))]
        for start in starts
    )
    return _batches(domain, transform, 0, draws, workers, pin_memory)


class _Draw(NamedTuple):
    """One sample of one pass over the domain; in pass -1 nothing is random."""

    epoch: int
    sample: int


class _Plan:
    """Which samples batch number n holds."""

    def __init__(self, samples: int, batch: int, seed: int, rank: int, world_size: int) -> None:
        self.samples, self.batch, self.seed = samples, batch, seed
        self.per_epoch = samples // batch
        share = batch // world_size
        self.share = slice(rank * share, (rank + 1) * share)

    def from_batch(self, start: int) -> Iterator[list[_Draw]]:
        epoch, first = divmod(start, self.per_epoch)
        while True:
            generator = torch.Generator().manual_seed(derived_seed(self.seed, "order", epoch))
            order = torch.randperm(self.samples, generator=generator).tolist()
            for number in range(first, self.per_epoch):
                batch = order[number * self.batch : (number + 1) * self.batch]
                yield [_Draw(epoch, index) for index in batch[self.share]]
            epoch, first = epoch + 1, 0


def _batches(
    domain: Samples,
    transform: AnyTransform | None,
    seed: int,
    draws: Iterator[list[_Draw]],
    workers: int,
    pin_memory: bool,
) -> Iterator[Batch]:
    reader = _Reader(domain, transform, seed)
    if isinstance(domain, RowSamples) or workers == 0:
        return map(reader.__getitems__, draws)
    loader: DataLoader[Batch] = DataLoader(
        reader,
        batch_sampler=_Once(draws),
        num_workers=workers,
        collate_fn=_as_is,
        pin_memory=pin_memory and torch.cuda.is_available(),
        # Endless streams keep their workers by never ending; nothing has to be restarted.
        prefetch_factor=2,
    )
    return iter(loader)


class _Once(Sequence[list[_Draw]]):
    """An iterator in the shape that a DataLoader wants of a batch sampler."""

    def __init__(self, draws: Iterator[list[_Draw]]) -> None:
        self.draws = draws

    def __iter__(self) -> Iterator[list[_Draw]]:
        return self.draws

    def __len__(self) -> int:
        raise TypeError("the number of batches is not known")

    def __getitem__(self, index: Any) -> Any:
        raise TypeError("batches come in order")


def _as_is(batch: Any) -> Any:
    return batch


class _Reader(Dataset[Batch]):
    """Draws to batches, in the calling process or in a worker."""

    def __init__(self, domain: Samples, transform: AnyTransform | None, seed: int) -> None:
        self.domain, self.transform, self.seed = domain, transform, seed

    def __getitems__(self, draws: list[_Draw]) -> Batch:
        indices = torch.tensor([draw.sample for draw in draws])
        known = self.domain.labels
        labels = torch.full((len(draws),), -1)
        if known is not None:
            labels = torch.from_numpy(known[indices.numpy()])
        return Batch(self._x(draws, indices), labels, indices)

    def _x(self, draws: list[_Draw], indices: Tensor) -> Tensor:
        if isinstance(self.domain, RowSamples):
            return self.domain.rows(indices.numpy(), self._views(draws, self.domain.views))
        if isinstance(self.transform, Transform):
            return self.transform.normalize(torch.stack([self._pixels(draw) for draw in draws]))
        return torch.stack([self._sample(draw) for draw in draws])

    def _views(self, draws: list[_Draw], views: int) -> NDArray[np.int64] | int:
        if views == 1 or draws[0].epoch < 0:
            return 0
        chosen = [derived_seed(self.seed, *draw) % views for draw in draws]
        return np.array(chosen, np.int64)

    def _pixels(self, draw: _Draw) -> Tensor:
        transform = self.transform
        assert isinstance(transform, Transform)
        generator = None
        if transform.random:
            generator = torch.Generator().manual_seed(derived_seed(self.seed, *draw))
        return transform.pixels(read(self.domain, draw.sample, transform), generator)

    def _sample(self, draw: _Draw) -> Tensor:
        sample = self.domain[draw.sample]
        if isinstance(sample, Tensor):
            return sample
        if self.transform is None:
            raise InputError(f"{self.domain.name} holds images; give a transform to load them")
        with _global_generators(derived_seed(self.seed, *draw)):
            return self.transform(sample)


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
