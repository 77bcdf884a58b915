"""The feature cache: the features of every image of some domains, computed once.

Features are identified by the SHA-256 of the image's bytes. Features from an existing file or an
interrupted call are used again: the same call does nothing, only changed images are computed, and a
killed call continues where it stopped.
"""

import itertools
import math
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from equida.data.batches import derived_seed, read_sample
from equida.data.checks import unreadable_message
from equida.data.domain import ImageDomain
from equida.data.feature_cache import file as cache_file
from equida.data.feature_cache.contents import Contents, Meter
from equida.data.feature_cache.file import (
    Engine,
    Existing,
    ExtractionOptions,
    FeatureSettings,
    made_by,
)
from equida.data.feature_cache.journal import Journal, work_folder
from equida.data.feature_cache.store import FeatureStore
from equida.data.read_ahead import FilesBeingRead, read_ahead
from equida.data.transforms import Transform
from equida.errors import InputError, counted
from equida.files import refuse_to_replace

Forward = Callable[[Tensor], Tensor]
Pixels = NDArray[np.uint8]

# How many batches are decoded while the network works on another.
AHEAD = 2
BLOCK_BYTES = 2**24


@dataclass(frozen=True)
class Extraction:
    """What a call of `write_features` did.

    Attributes:
        images: how many rows the file has.
        computed: how many images the network was run on.
        skipped: every image that was left out, with the reason.
        written: whether the file has changed.
        stored: how many images' features came out of the store that commands share.
        engines: what has computed the features in the file, with versions.
    """

    images: int
    computed: int
    skipped: tuple[tuple[str, str], ...]
    written: bool
    stored: int = 0
    engines: tuple[str, ...] = ()


def write_features(
    path: Path,
    domains: Sequence[ImageDomain],
    settings: FeatureSettings,
    options: ExtractionOptions,
    forward: Forward,
    meter: Meter,
    *,
    store: FeatureStore | None = None,
    engine_name: Callable[[], str] = lambda: "",
    shards: "ShardRunner | None" = None,
    keep_domains: bool = False,
) -> Extraction:
    """Bring the feature file at `path` up to date with the images of `domains`.

    Args:
        path: a .safetensors file, new or made by an earlier call.
        domains: domains of image files, all with the same class list.
        settings: the network, its weights and transforms, as the file records them.
        options: how the features are computed.
        forward: turns normalised images (batch, channels, height, width), always a whole batch of
            them, into features (batch, width).
        meter: shows the progress.
        store: where features of other calls are, and these will be; None: nowhere.
        engine_name: what runs the network, with its version, as far as that is known by now.
        shards: has other processes compute the features, instead of `forward`; None: nobody else.
        keep_domains: refuse a file that holds a domain that is not among these.

    Raises:
        InputError: some images cannot be read (the message names all of them), the domains have
            different classes, or the file cannot be written.
    """
    classes = _check(path, domains)
    with work_folder(path) as folder:
        contents = Contents(path, folder, domains, options.workers, meter)
        existing = Existing.open(path)
        if existing is not None and keep_domains:
            _check_keeps(existing, domains, {contents.of(k) for k in range(len(contents))})
        if existing is not None and not (
            existing.made_with(settings) and made_by(options.engine, existing.engines)
        ):
            existing = None
        journal = Journal(folder, settings, options.batch_size, options.engine)
        stored = {} if existing is None else _positions(existing.content)
        known = stored.keys() | journal.position.keys()
        skip = options.skip_unreadable
        todo = contents.first_of_each(known | journal.unreadable if skip else known)
        shared = store if _storable(settings) else None
        stored_rows = set[bytes]()
        if shared is not None and todo:
            wanted = {contents.of(number) for number in todo}
            stored_rows = _from_store(
                shared, settings, wanted, journal, options.engine, engine_name()
            )
        todo = [number for number in todo if contents.of(number) not in stored_rows]
        if shards is None:
            batches = FeatureBatches(settings, options, forward, engine_name).of(contents, todo)
        else:
            cut = _cut(contents, todo, options.batch_size)
            batches = shards(settings, cut) if todo else iter(())
        reasons, made = _keep(batches, journal, meter, len(todo))
        if reasons and not skip:
            bad = contents.names_of(reasons, ())
            raise InputError(
                unreadable_message(f"{len(bad)} of {counted(len(contents), 'image')}", bad)
            )
        if shared is not None:
            for name, new in made.items():
                records = np.array([journal.position[content] for content in new], np.int64)
                shared.put(settings, options.batch_size, new, journal.features(records), name)
        kept, sources = _sources(contents, stored, journal)
        skipped = contents.names_of(reasons, journal.unreadable)
        if not len(kept):
            raise InputError(f"none of {counted(len(contents), 'image')} can be read")
        engines = _engines(sources, existing, journal)
        first, tensors = cache_file.header(settings, contents.rows(kept, classes), engines)
        written = existing is None or existing.first != first
        if written:
            blocks = _blocks(sources, existing, journal, settings)
            cache_file.write(path, first, tensors, blocks)
        contents.remember()
    computed = len(todo) - len(reasons)
    return Extraction(len(kept), computed, skipped, written, len(stored_rows), engines)


def _check_keeps(existing: Existing, domains: Sequence[ImageDomain], contents: set[bytes]) -> None:
    """Raise InputError where the file would lose all rows of a domain.

    It does not where the domain is given again: with one of its images or, where an image of
    another domain of the file is given, with its name and one of its paths.
    """
    given = {domain.name: set(domain.paths) for domain in domains}
    known = any(held.contents & contents for held in existing.domains.values())
    lost = [
        name
        for name, held in existing.domains.items()
        if not held.contents & contents and not (known and held.paths & given.get(name, set()))
    ]
    if lost:
        raise InputError(
            f"{existing.path} holds features of other images ({', '.join(lost)}), which would be"
            " lost; choose another --out, name all domains in one call, or remove it first"
        )


def _storable(settings: FeatureSettings) -> bool:
    """Whether features are shared: not views, which depend on the domain too and are many, nor
    features by code that may change without its weights."""
    return settings.views == 0 and ":" not in settings.backbone


def _from_store(
    store: FeatureStore,
    settings: FeatureSettings,
    wanted: set[bytes],
    journal: Journal,
    engine: Engine,
    first: str,
) -> set[bytes]:
    """Put what the store has of the images into the journal; their digests.

    Where several engines have computed the same, `first` comes first.
    """
    size, taken = journal.batch_size, set[bytes]()
    names = store.engines(settings, size)
    for name in sorted(names, key=lambda name: (name != first, name)):
        if not made_by(engine, [name]):
            continue
        found = store.get(settings, size, sorted(wanted - taken), name)
        digests = list(found)
        for start in range(0, len(digests), size):
            batch = digests[start : start + size]
            rows = np.stack([found[digest] for digest in batch])
            journal.append(batch, [True] * len(batch), rows, name)
        taken |= found.keys()
    return taken


def _engines(
    sources: NDArray[np.int64], existing: Existing | None, journal: Journal
) -> tuple[str, ...]:
    """What has computed the features at `sources`."""
    old = existing.engines if existing is not None and (sources >= 0).any() else []
    new = journal.engines if (sources < 0).any() else []
    return tuple(sorted({*old, *new}))


def check_feature_file(path: Path) -> None:
    """Raise InputError where features cannot be written into `path`, before any is computed."""
    if path.suffix != ".safetensors" or path.is_dir():
        raise InputError(f"{path} cannot be the feature file; expected a name in .safetensors")
    refuse_to_replace([path], lambda: Existing.is_ours(path))


def _check(path: Path, domains: Sequence[ImageDomain]) -> tuple[str, ...]:
    check_feature_file(path)
    if not sum(map(len, domains)):
        raise InputError(f"no images in {', '.join(domain.name for domain in domains)}")
    for domain in domains:
        if domain.classes != domains[0].classes:
            raise InputError(f"{domain.name} and {domains[0].name} have different classes")
    return domains[0].classes


def _positions(content: NDArray[np.uint8]) -> dict[bytes, int]:
    return {row.tobytes(): number for number, row in enumerate(content)}


@dataclass(frozen=True)
class ListedImages:
    """Some images, as a process elsewhere needs them.

    Attributes:
        paths: their files, from the root.
        owners: the number of each image's domain.
        contents: the digests of their bytes.
    """

    paths: tuple[str, ...]
    owners: tuple[int, ...]
    contents: tuple[bytes, ...]

    def __len__(self) -> int:
        return len(self.paths)

    def of(self, number: int) -> bytes:
        """The digest of image `number`."""
        return self.contents[number]

    def owner(self, number: int) -> int:
        """The number of the domain that image `number` belongs to."""
        return self.owners[number]

    def sample(self, number: int) -> tuple[ImageDomain, int]:
        """A domain, and the position of image `number` in it."""
        return ImageDomain("", [self.paths[number]], name="shard"), 0


@dataclass(frozen=True)
class ComputedBatch:
    """The features of a batch of images.

    Attributes:
        contents: the digests of the images' bytes.
        reasons: what is wrong with each image, "" where it could be read.
        features: (batch, ...), where the rows of images that could not be read mean nothing; None
            where nothing was computed, because the call will fail.
        engine: what has computed them, with its version.
    """

    contents: list[bytes]
    reasons: list[str]
    features: NDArray[np.generic] | None
    engine: str = ""


ShardRunner = Callable[[FeatureSettings, Sequence[ListedImages]], Iterator[ComputedBatch]]
"""Has other processes compute the features of some batches of images; they come in any order."""


class FeatureBatches:
    """The network at work on batches of images.

    Args:
        settings: the network and its transforms.
        options: how many images there are in a batch, how many threads decode them, and whether
            images that cannot be read are left out. If they are not, nothing is computed after the
            first; the rest is only decoded, in order to name all of them.
        forward: as for `write_features`.
        engine_name: what runs the network.
    """

    def __init__(
        self,
        settings: FeatureSettings,
        options: ExtractionOptions,
        forward: Forward,
        engine_name: Callable[[], str] = lambda: "",
    ) -> None:
        self.settings, self.options = settings, options
        self.forward, self.engine_name = forward, engine_name
        self.transform = Transform.parse(settings.transform)
        self.at_work = FilesBeingRead()
        self.views = [Transform.parse(text) for text in settings.view_transforms]

    def of(self, images: Contents | ListedImages, todo: Sequence[int]) -> Iterator[ComputedBatch]:
        """The features of the images with the numbers `todo`, batch by batch."""
        failed = False
        for chunk, pixels, reasons in self._decoded(images, todo):
            failed = failed or (any(reasons) and not self.options.skip_unreadable)
            contents = [images.of(number) for number in chunk]
            if failed:
                yield ComputedBatch(contents, reasons, None)
                continue
            features = np.zeros((len(pixels), *self.settings.row_shape), self.settings.dtype)
            engine = ""
            if not all(reasons):
                self._fill(features, pixels)
                engine = self.engine_name()
            yield ComputedBatch(contents, reasons, features, engine)

    def _fill(self, features: NDArray[np.generic], pixels: Pixels) -> None:
        """Run the network on a batch, view by view.

        All batches have the same size, the last one is filled up with black images: the size
        decides how sums are split among vector lanes and threads, and so the last bits.
        """
        by_view = features.reshape(len(features), -1, self.settings.width)
        for view in range(by_view.shape[1]):
            batch = torch.from_numpy(self.transform.normalize_planes(pixels[:, view]))
            computed = self.forward(batch).float().cpu().numpy()
            with np.errstate(over="ignore"):  # the check below has a better message
                by_view[:, view] = computed
        if not np.isfinite(features).all():
            raise InputError(
                f"features of {self.settings.backbone} are not finite as {self.settings.dtype};"
                " use --dtype float32, and check the weights if they already are"
            )

    def _decoded(
        self, images: Contents | ListedImages, todo: Sequence[int]
    ) -> Iterator[tuple[Sequence[int], Pixels, list[str]]]:
        """Batches of images with their pixels and errors, decoded ahead of time."""
        batch, side = self.options.batch_size, self.transform.crop
        shape = (batch, 1 + self.settings.views, side, side, len(self.transform.mean))
        begun: deque[tuple[Sequence[int], Pixels]] = deque()

        def slots() -> Iterator[tuple[int, Pixels]]:
            for start in range(0, len(todo), batch):
                begun.append((todo[start : start + batch], np.zeros(shape, np.uint8)))
                yield from zip(*begun[-1], strict=False)

        reasons = read_ahead(
            lambda slot: self._decode(images, *slot),
            slots(),
            self.options.workers,
            ahead=(1 + AHEAD) * batch,
            what="image",
            at_work=self.at_work,
        )
        for start in range(0, len(todo), batch):
            found = list(itertools.islice(reasons, min(batch, len(todo) - start)))
            yield *begun.popleft(), found

    def _decode(self, images: Contents | ListedImages, number: int, slot: Pixels) -> str:
        """Put the views of one image into `slot`; returns what is wrong with the image, or ""."""
        domain, index = images.sample(number)
        try:
            with self.at_work.reading(domain.path(index)):
                image = read_sample(domain, index, self.transform)
        except MemoryError:
            raise
        except Exception as error:  # damaged bytes make the decoders raise nearly anything
            return str(getattr(error, "reason", "") or error or type(error).__name__)
        slot[0] = self.transform.pixels(image).numpy()
        content = images.of(number).hex()
        for view in range(1, len(slot)):
            generator = torch.Generator()
            generator.manual_seed(derived_seed(self.settings.seed, view, content))
            transform = self.views[images.owner(number)]
            slot[view] = transform.pixels(image, generator).numpy()
        return ""


def _cut(contents: Contents, todo: Sequence[int], batch_size: int) -> list[ListedImages]:
    """The images `todo` in the batches that this process would compute them in."""
    return [
        ListedImages(
            tuple(os.path.abspath(contents.path(number)) for number in chunk),
            tuple(contents.owner(number) for number in chunk),
            tuple(contents.of(number) for number in chunk),
        )
        for start in range(0, len(todo), batch_size)
        for chunk in (todo[start : start + batch_size],)
    ]


def _keep(
    batches: Iterator[ComputedBatch], journal: Journal, meter: Meter, total: int
) -> tuple[dict[bytes, str], dict[str, list[bytes]]]:
    """Put batches into the journal.

    Returns:
        Why images could not be read, by their content, and the contents of the others by the engine
        that has computed their features.
    """
    reasons: dict[bytes, str] = {}
    made: dict[str, list[bytes]] = {}
    if total:
        meter.start("features", total)
    for batch in batches:
        pairs = list(zip(batch.contents, batch.reasons, strict=True))
        reasons |= {content: reason for content, reason in pairs if reason}
        if batch.features is not None:
            readable = [not reason for reason in batch.reasons]
            journal.append(batch.contents, readable, batch.features, batch.engine)
            made.setdefault(batch.engine, []).extend(c for c, reason in pairs if not reason)
        meter.advance(len(batch.contents))
    return reasons, made


def _sources(
    contents: Contents, stored: dict[bytes, int], journal: Journal
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Which images have features, and where: the row of the old file, or -1 - the record."""
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
    sources: NDArray[np.int64],
    existing: Existing | None,
    journal: Journal,
    settings: FeatureSettings,
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
