"""Batches: pure functions of seed and number, whatever reads them."""

import itertools
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from tests.processes import LIMIT
from torch import Tensor

from equida.data import ArrayDomain, Domain, UnreadableImage, array_domain, read_ahead
from equida.data.batches import Batch, BatchStream, eval_batches
from equida.data.transforms import Transform
from equida.errors import InputError

ROOT = Path(__file__).resolve().parents[2]
SMALL = Transform("random-crop", 12, 8)


class Images(Domain):
    """Twenty small images, each of one colour of its own."""

    def __init__(self, count: int = 20, labelled: bool = True) -> None:
        super().__init__("toy", "abc", np.arange(count) % 3 if labelled else None)
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Image.Image:
        pixels = np.random.default_rng(index).integers(0, 256, (16, 16, 3), dtype=np.uint8)
        return Image.fromarray(pixels)

    def identity(self, index: int) -> str:
        return f"sample {index}"

    def _narrow(self, indices: NDArray[np.int64]) -> None:
        raise AssertionError("batches choose samples by their numbers")


class Table(ArrayDomain):
    """Rows in `views` views: value = 100 * view + index."""

    def __init__(self, count: int = 20, views: int = 1) -> None:
        values = np.arange(count)[:, None, None] + 100.0 * np.arange(views)[None, :, None]
        super().__init__(values if views > 1 else values[:, 0], name="table")

    def __getitem__(self, index: int) -> Tensor:
        raise AssertionError("rows are read by the batch")


def _take(stream: BatchStream, count: int) -> list[Batch]:
    return list(itertools.islice(stream, count))


def _same(first: list[Batch], second: list[Batch]) -> bool:
    pairs = zip(first, second, strict=True)
    return all(torch.equal(x, y) for a, b in pairs for x, y in zip(a, b, strict=True))


def test_a_pass_visits_each_sample_at_most_once_and_drops_the_rest() -> None:
    stream = BatchStream(Images(20), 6, SMALL)
    seen = [set(torch.cat([b.indices for b in _take(stream, 3)]).tolist()) for _ in range(4)]
    assert [len(indices) for indices in seen] == [18] * 4
    assert len({tuple(sorted(indices)) for indices in seen}) > 1
    first = next(iter(BatchStream(Images(20), 6, SMALL)))
    assert first.x.shape == (6, 3, 8, 8)
    assert first.labels.tolist() == (first.indices % 3).tolist()


@pytest.mark.parametrize("start", [1, 3, 7])
def test_a_stream_goes_on_from_any_batch(start: int) -> None:
    whole = _take(BatchStream(Images(), 6, SMALL, seed=5), start + 4)
    resumed = BatchStream(Images(), 6, SMALL, seed=5, start=start)
    assert _same(whole[start:], _take(resumed, 4))
    assert resumed.step == start + 4


def test_the_seed_decides_order_and_augmentation() -> None:
    first, again, other = (_take(BatchStream(Images(), 6, SMALL, seed=s), 3) for s in (1, 1, 2))
    assert _same(first, again)
    assert not _same(first, other)


def test_each_pass_augments_anew() -> None:
    batches = _take(BatchStream(Images(6), 6, SMALL), 2)
    order = [batch.indices.argsort() for batch in batches]
    assert not torch.equal(batches[0].x[order[0]], batches[1].x[order[1]])


@pytest.mark.parametrize("workers", [1, 2])
def test_workers_change_nothing(workers: int) -> None:
    alone = _take(BatchStream(Images(), 6, SMALL), 7)
    assert _same(alone, _take(BatchStream(Images(), 6, SMALL, workers=workers), 7))


def _noisy(image: Image.Image) -> Tensor:
    """Somebody else's transform, drawing from all three global generators."""
    noise = [torch.rand(1).item(), random.random(), float(np.random.rand())]  # noqa: NPY002
    return torch.tensor(noise)


def test_the_global_generators_of_a_foreign_transform_are_reproducible_and_put_back() -> None:
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    alone = _take(BatchStream(Images(), 6, _noisy), 4)
    assert torch.equal(torch.rand(1), expected)
    assert _same(alone, _take(BatchStream(Images(), 6, _noisy, workers=2), 4))
    assert len(set(torch.cat([batch.x for batch in alone]).flatten().tolist())) == 4 * 6 * 3


@pytest.mark.parametrize("make", [lambda: (Images(), SMALL), lambda: (Table(), None)])
def test_processes_share_the_batch_that_one_would_see(make: Callable[[], Any]) -> None:
    domain, transform = make()
    whole = _take(BatchStream(domain, 6, transform), 5)
    shares = [
        _take(BatchStream(domain, 6, transform, rank=rank, world_size=3), 5) for rank in range(3)
    ]
    joined = [
        Batch(*(torch.cat(part) for part in zip(*b, strict=True)))
        for b in zip(*shares, strict=True)
    ]
    assert _same(whole, joined)
    stream = BatchStream(domain, 6, transform, rank=1, world_size=3)
    assert all(torch.equal(stream.samples(i), batch.indices) for i, batch in enumerate(whole))


@pytest.mark.parametrize("make", [lambda: (Images(), SMALL), lambda: (Table(), None)])
def test_every_tensor_is_put_where_a_gpu_fetches_it(
    make: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here there is none, so that it is played."""
    pinned = []

    def pin(tensor: torch.Tensor) -> torch.Tensor:
        pinned.append(id(tensor))
        return tensor

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.Tensor, "pin_memory", pin)
    domain, transform = make()
    batches = _take(BatchStream(domain, 6, transform, pin_memory=True), 2)
    assert pinned == [id(tensor) for batch in batches for tensor in batch]
    _take(BatchStream(domain, 6, transform), 2)
    assert len(pinned) == 6


def test_the_share_of_a_process_in_a_small_domain_may_be_empty() -> None:
    class NoImages(Images):
        def __len__(self) -> int:
            return 0

    rows = array_domain(np.zeros((3, 2)), name="rows")
    assert list(eval_batches(NoImages(), SMALL)) == []
    assert list(eval_batches(rows.select(range(0)))) == []


def test_rows_are_read_by_the_batch_without_workers() -> None:
    before = threading.active_count()
    stream = BatchStream(Table(), 5, workers=2)
    batches = _take(stream, 4)
    assert threading.active_count() == before
    assert all(torch.equal(batch.x[:, 0], batch.indices.float()) for batch in batches)
    assert (batches[0].labels == -1).all()


def test_training_draws_among_the_views_and_testing_takes_the_plain_one() -> None:
    stream = BatchStream(Table(views=3), 20)
    views = torch.cat([(b.x[:, 0] - b.indices) / 100 for b in _take(stream, 10)])
    counts = torch.bincount(views.long(), minlength=3)
    assert counts.min() > 40
    (plain,) = eval_batches(Table(views=3), batch_size=64)
    assert torch.equal(plain.x[:, 0], torch.arange(20.0))


@pytest.mark.parametrize("workers", [0, 2])
def test_testing_reads_everything_once_in_order(workers: int) -> None:
    transform = Transform("centre-crop", 12, 8)
    batches = list(eval_batches(Images(), transform, 8, workers=workers))
    assert [len(batch.x) for batch in batches] == [8, 8, 4]
    assert torch.cat([batch.indices for batch in batches]).tolist() == list(range(20))
    assert torch.equal(batches[1].x[0], transform(Images()[8]))


def test_ten_crops_come_as_ten() -> None:
    batch = next(eval_batches(Images(), Transform("ten-crop", 12, 8), 4))
    assert batch.x.shape == (4, 10, 3, 8, 8)


def test_unlabelled_is_minus_one() -> None:
    assert (next(BatchStream(Images(labelled=False), 6, SMALL)).labels == -1).all()


def test_a_batch_larger_than_the_domain_repeats_its_samples_evenly() -> None:
    stream = BatchStream(Images(5), 12, SMALL)
    first, second = _take(stream, 2)
    for batch in (first, second):
        counts = torch.bincount(batch.indices, minlength=5)
        assert sorted(counts.tolist()) == [2, 2, 2, 3, 3]
    assert first.indices.tolist() != second.indices.tolist()
    assert _same(_take(BatchStream(Images(5), 12, SMALL, start=1), 1), [second])
    # A sample that comes twice is not augmented the same way.
    crops = Transform("random-crop", 12, 8)
    batch = next(BatchStream(Images(5), 12, crops))
    twice = [batch.x[batch.indices == number] for number in range(5)]
    assert any(not each[0].equal(each[1]) for each in twice)
    shares = [next(BatchStream(Images(5), 12, crops, rank=r, world_size=2)).x for r in (0, 1)]
    assert torch.cat(shares).equal(batch.x)
    with pytest.raises(InputError, match="toy has no samples"):
        BatchStream(Images(0), 12, SMALL)


def test_a_batch_that_cannot_be_shared() -> None:
    with pytest.raises(InputError, match="batch size is 6; expected a positive multiple of 4"):
        BatchStream(Images(), 6, SMALL, world_size=4)


def test_images_without_a_transform() -> None:
    with pytest.raises(InputError, match="toy holds images; give a transform"):
        next(BatchStream(Images(), 6))


class StuckImages(Images):
    """The sixth image never comes, as from a network share that is gone."""

    def __getitem__(self, index: int) -> Image.Image:
        if index == 5:
            threading.Event().wait(60)
        return super().__getitem__(index)


def test_waiting_for_images_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_ahead, "PATIENCE_SECONDS", 0.3)
    monkeypatch.setattr(read_ahead, "GRACE_SECONDS", 0.1)
    with pytest.raises(
        InputError, match=r"no batch of toy came for 0 s; .* reading sample 5; check"
    ):
        list(eval_batches(StuckImages(), Transform("centre-crop", 12, 8), 4, workers=2))


def test_readers_end_with_their_stream() -> None:
    before = threading.active_count()
    streams = [BatchStream(Images(), 6, SMALL, workers=2) for _ in range(3)]
    assert all(len(next(stream).x) == 6 for stream in streams)
    assert threading.active_count() == before + 6
    streams.clear()
    assert threading.active_count() == before


def test_a_failure_in_a_reader_is_the_callers() -> None:
    class Broken(Images):
        def __getitem__(self, index: int) -> Image.Image:
            raise UnreadableImage("photos/7.jpg", "cut short")

    stream = BatchStream(Broken(), 6, SMALL, workers=2)
    with pytest.raises(UnreadableImage, match=r"photos/7.jpg: cut short; replace it, or leave it"):
        next(stream)


STARTS = """
import faulthandler, sys
faulthandler.dump_traceback_later(100, exit=True)
sys.setswitchinterval(1e-6)
from tests.data.test_batches import Images, SMALL, BatchStream, eval_batches
for number in range(200):
    streams = [BatchStream(Images(), 6, SMALL, seed=seed, workers=2) for seed in (0, 1)]
    for stream in 2 * streams:
        next(stream)
    assert len(list(eval_batches(Images(), SMALL, 8, workers=2))) == 3
print("done")
"""


def test_hundreds_of_starts_do_not_hang() -> None:
    """Threads that change places as often as they can: what a lock would get stuck on."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", STARTS],
        capture_output=True,
        text=True,
        env=environment,
        timeout=LIMIT,
    )
    assert done.stdout == "done\n", done.stderr
