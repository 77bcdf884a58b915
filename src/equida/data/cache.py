"""The feature cache: features of every image of some domains, computed once.

A feature is known by the SHA-256 of its image's bytes. What an existing file or an interrupted run
already holds is used again, so that the same call does nothing, a changed image is computed alone,
and a killed run goes on where it was.
"""

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from equida.data import cache_file
from equida.data.cache_file import Existing, Settings
from equida.data.cache_journal import Journal, work_folder
from equida.data.contents import Contents, Meter
from equida.data.loading import derived_seed
from equida.data.samples import FileSamples, read
from equida.data.transforms import Transform
from equida.errors import InputError

Forward = Callable[[Tensor], Tensor]
Pixels = NDArray[np.uint8]

# Batches that are decoded while the network works on another.
AHEAD = 2
BLOCK_BYTES = 2**24


@dataclass(frozen=True)
class Outcome:
    """What a call of `write_features` did.

    Attributes:
        images: rows of the file.
        computed: images that the network was run on.
        skipped: name and reason of every image that was left out.
        written: whether the file changed.
    """

    images: int
    computed: int
    skipped: tuple[tuple[str, str], ...]
    written: bool


def write_features(
    path: Path,
    domains: Sequence[FileSamples],
    settings: Settings,
    forward: Forward,
    meter: Meter,
    *,
    batch_size: int = 64,
    workers: int = 1,
    skip_unreadable: bool = False,
) -> Outcome:
    """Bring the feature file at `path` up to date with the images of `domains`.

    Args:
        path: a .safetensors file, new or made by an earlier call.
        domains: image files, all with the same class list.
        settings: the network, its weights and transforms, as they go into the file.
        forward: normalised images (batch, channels, height, width), always `batch_size` of them, to
            features (batch, width).
        meter: told of the progress.
        batch_size: images per call of `forward`.
        workers: threads that decode images while `forward` runs.
        skip_unreadable: leave unreadable images out instead of stopping.

    Raises:
        InputError: images cannot be read (all of them are named), or do not fit the file.
    """
    classes = _check(path, domains)
    with work_folder(path) as folder:
        contents = Contents(path, folder, domains, workers, meter)
        existing = Existing.open(path)
        if existing is not None and not existing.made_with(settings):
            existing = None
        journal = Journal(folder, settings, batch_size)
        stored = {} if existing is None else _positions(existing.content)
        known = stored.keys() | journal.position.keys()
        todo = contents.first_of_each(known | journal.unreadable if skip_unreadable else known)
        run = _Run(contents, settings, forward, journal, meter, workers, skip_unreadable)
        reasons = run.compute(todo)
        kept, sources = _sources(contents, stored, journal)
        skipped = contents.names_of(reasons, journal.unreadable)
        if not len(kept):
            raise InputError(f"none of {len(contents)} images can be read")
        first, tensors = cache_file.header(settings, contents.rows(kept, classes))
        written = existing is None or existing.first != first
        if written:
            blocks = _blocks(sources, existing, journal, settings)
            cache_file.write(path, first, tensors, blocks)
        contents.remember()
    return Outcome(len(kept), len(todo) - len(reasons), skipped, written)


def _check(path: Path, domains: Sequence[FileSamples]) -> tuple[str, ...]:
    if path.suffix != ".safetensors" or path.is_dir():
        raise InputError(f"{path} cannot be the feature file; expected a name in .safetensors")
    if not sum(map(len, domains)):
        raise InputError(f"no images in {', '.join(domain.name for domain in domains)}")
    for domain in domains:
        if domain.classes != domains[0].classes:
            raise InputError(f"{domain.name} and {domains[0].name} have different classes")
    return domains[0].classes


def _positions(content: NDArray[np.uint8]) -> dict[bytes, int]:
    return {row.tobytes(): number for number, row in enumerate(content)}


class _Run:
    """One pass of the network over the images that are not known yet."""

    def __init__(
        self,
        contents: Contents,
        settings: Settings,
        forward: Forward,
        journal: Journal,
        meter: Meter,
        workers: int,
        skip_unreadable: bool,
    ) -> None:
        self.contents, self.settings, self.forward = contents, settings, forward
        self.journal, self.meter, self.skip_unreadable = journal, meter, skip_unreadable
        self.workers = max(workers, 1)
        self.transform = Transform.parse(settings.transform)
        self.views = [Transform.parse(text) for text in settings.view_transforms]

    def compute(self, todo: list[int]) -> dict[bytes, str]:
        """Why images could not be read, by content; the others' features are in the journal."""
        reasons: dict[bytes, str] = {}
        if not todo:
            return reasons
        self.meter.start("features", len(todo))
        for chunk, pixels, found in self._decoded(todo):
            contents = [self.contents.of(number) for number in chunk]
            bad = {c: reason for c, reason in zip(contents, found, strict=True) if reason}
            reasons |= bad
            if reasons and not self.skip_unreadable:
                # Nothing is worth computing any more, but every other bad image is worth a name.
                self.meter.advance(len(chunk))
                continue
            readable = [content not in bad for content in contents]
            features = np.zeros((len(pixels), *self.settings.row_shape), self.settings.dtype)
            if any(readable):
                self._fill(features, pixels)
            self.journal.append(contents, readable, features)
            self.meter.advance(len(chunk))
        if reasons and not self.skip_unreadable:
            raise InputError(self._unreadable(reasons))
        return reasons

    def _fill(self, features: NDArray[np.generic], pixels: Pixels) -> None:
        """Run the network on a batch, view by view.

        The batch always has the same size, the last one filled up with black: how a network's sums
        are split among vector lanes and threads depends on it, and with it the last bits.
        """
        by_view = features.reshape(len(features), -1, self.settings.width)
        for view in range(by_view.shape[1]):
            batch = self.transform.normalize(torch.from_numpy(pixels[:, view]))
            computed = self.forward(batch).float().cpu().numpy()
            with np.errstate(over="ignore"):  # found below, with a better message
                by_view[:, view] = computed
        if not np.isfinite(features).all():
            raise InputError(
                f"features of {self.settings.backbone} are not finite as {self.settings.dtype};"
                " use --dtype float32, and check the weights if they already are"
            )

    def _decoded(self, todo: list[int]) -> Iterator[tuple[list[int], Pixels, list[str]]]:
        """Batches of images with their pixels and what was wrong, decoded ahead of time."""
        batch, side = self.journal.batch_size, self.transform.crop
        shape = (batch, 1 + self.settings.views, side, side, len(self.transform.mean))
        waiting: deque[tuple[list[int], Pixels, list[Future[str]]]] = deque()
        pool = ThreadPoolExecutor(self.workers, "decode")
        try:
            for start in range(0, len(todo), batch):
                chunk, pixels = todo[start : start + batch], np.zeros(shape, np.uint8)
                slots = zip(chunk, pixels, strict=False)
                waiting.append((chunk, pixels, [pool.submit(self._decode, *s) for s in slots]))
                if len(waiting) > AHEAD:
                    yield _finished(*waiting.popleft())
            while waiting:
                yield _finished(*waiting.popleft())
        finally:
            pool.shutdown(cancel_futures=True)

    def _decode(self, number: int, slot: Pixels) -> str:
        """Put one image's views into `slot`; what is wrong with it, or ""."""
        domain, index = self.contents.sample(number)
        try:
            image = read(domain, index, self.transform)
        except MemoryError:
            raise
        except Exception as error:  # damaged bytes make the decoders raise nearly anything
            return str(getattr(error, "reason", "") or error or type(error).__name__)
        slot[0] = self.transform.pixels(image).numpy()
        content = self.contents.of(number).hex()
        for view in range(1, len(slot)):
            generator = torch.Generator()
            generator.manual_seed(derived_seed(self.settings.seed, view, content))
            transform = self.views[self.contents.owner(number)]
            slot[view] = transform.pixels(image, generator).numpy()
        return ""

    def _unreadable(self, reasons: dict[bytes, str]) -> str:
        names = self.contents.names_of(reasons, set())
        listed = "".join(f"\n  {name}: {reason}" for name, reason in names)
        return (
            f"{len(names)} of {len(self.contents)} images cannot be read; replace or delete them,"
            f" or leave them out with --skip-unreadable:{listed}"
        )


def _finished(
    chunk: list[int], pixels: Pixels, jobs: list["Future[str]"]
) -> tuple[list[int], Pixels, list[str]]:
    return chunk, pixels, [job.result() for job in jobs]


def _sources(
    contents: Contents, stored: dict[bytes, int], journal: Journal
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which images have features, and the row of each: of the old file, or -1 - its record."""
    kept, sources = [], []
    for number in range(len(contents)):
        content = contents.of(number)
        if content in journal.position:
            kept.append(number)
            sources.append(-1 - journal.position[content])
        elif content in stored:
            kept.append(number)
            sources.append(stored[content])
    return np.array(kept, np.int64), np.array(sources, np.int64)


def _blocks(
    sources: NDArray[np.int64], existing: Existing | None, journal: Journal, settings: Settings
) -> Iterator[NDArray[np.generic]]:
    """The features of the new file, some megabytes at a time."""
    dtype = np.dtype(settings.dtype)
    size = max(1, BLOCK_BYTES // (dtype.itemsize * math.prod(settings.row_shape)))
    for start in range(0, len(sources), size):
        rows = sources[start : start + size]
        block = np.empty((len(rows), *settings.row_shape), dtype)
        block[rows < 0] = journal.features(-1 - rows[rows < 0])
        if existing is not None:
            block[rows >= 0] = existing.features(rows[rows >= 0])
        yield block
