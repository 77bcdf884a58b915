"""Features of a task whose images have none yet, computed into the run's folder."""

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from equida import plugins
from equida.data.domain import ImageDomain
from equida.data.feature_cache import ExtractionOptions, FeatureStore
from equida.data.feature_file import SUFFIXES, FeatureOrigin, feature_origin
from equida.data.folders import unlabelled_folder
from equida.data.open import open_path, split_path
from equida.data.spec import DataSpec
from equida.data.walk import existing
from equida.errors import InputError, counted, enumerated
from equida.files import file_sha256
from equida.models.backbone import ALIASES
from equida.models.extractor import ExtractedDomain, FeatureExtractor, require_images
from equida.progress import Bar
from equida.training.folder import RunFolder
from equida.training.request import (
    AdaptRequest,
    OpenedRequest,
    Remarks,
    default_pair_folder,
    run_words,
)


def with_features(request: AdaptRequest, folder: Path | None, remarks: Remarks) -> AdaptRequest:
    """The request on two feature files, where one domain is a feature file and the other images.

    The features of the images are computed with the network that the feature file names, and
    written into `folder`, by default that of the request. Where both domains are of one kind, the
    request stays as it is.
    """
    pair = {"source": request.source, "target": request.target}
    if request.dataset or not all(isinstance(path, str) and path for path in pair.values()):
        return request
    rows = {
        role: split_path(os.path.abspath(str(path)))[0].suffix in SUFFIXES
        for role, path in pair.items()
    }
    if rows["source"] == rows["target"]:
        return request
    images = "target" if rows["source"] else "source"
    stored = "source" if rows["source"] else "target"
    file, path = split_path(os.path.abspath(str(pair[stored])))[0], str(pair[images])
    origin = feature_origin(existing(file))
    existing(split_path(os.path.abspath(path))[0])
    other = Path(path)
    if origin is None and other.suffix and other.suffix != ".txt" and other.is_file():
        return request  # whatever it is, it is no images: opening it says what is expected
    if origin is None:
        raise InputError(
            f"{file} does not say which network computed its features, so that those of {path}"
            " cannot be computed likewise; make both with: equida features DIR --out FILE"
        )
    if plugins.is_code(origin.backbone) and request.backbone != origin.backbone:
        # What a file names is data: code and files are used only where the user names them too.
        raise InputError(
            f"{file} holds features of {origin.backbone}; to compute those of {path} with it, give"
            f" --backbone {origin.backbone} yourself"
        )
    if request.backbone and ALIASES.get(request.backbone, request.backbone) != origin.backbone:
        raise InputError(
            f"--backbone is {request.backbone!r}, but {file} holds features of {origin.backbone};"
            " leave it out"
        )
    out = folder or Path(
        request.out
        or default_pair_folder(
            str(request.source),
            str(request.target),
            run_words(request),
        )
    )
    ignore = images == "target" and request.ignore_target_labels
    domain = unlabelled_folder(path) if ignore and os.path.isdir(path) else open_path(path)
    check_features_folder(request, origin.backbone, out)
    made = Path(os.path.abspath(out / "features-0.safetensors"))
    weights = Path(request.weights) if request.weights else None
    extractor = FeatureExtractor(origin.backbone, weights, remarks.say)
    options = ExtractionOptions(skip_unreadable=request.skip_unreadable)
    extract_shared(extractor, [require_images(domain)], made, options, remarks, cache=request.cache)
    if feature_origin(made) != origin:
        raise InputError(
            f"{file} holds features of other weights or other preprocessing of {origin.backbone}"
            f" than are used here; give its weights with --weights FILE, or make both files anew"
        )
    # What concerns the images alone has been used here.
    changed: dict[str, Any] = {images: str(made), "backbone": None, "features": False}
    changed |= {"cache": True}
    return dataclasses.replace(request, **changed, out=str(out), weights=None)


def write_task_features(
    request: AdaptRequest, opened: OpenedRequest, backbone: str, folder: Path, remarks: Remarks
) -> DataSpec:
    """Compute the features of both domains; where they are then, instead of the images."""
    check_features_folder(request, backbone, folder)
    weights = Path(request.weights) if request.weights else None
    extractor = FeatureExtractor(backbone, weights, remarks.say)
    options = ExtractionOptions(skip_unreadable=request.skip_unreadable)
    task = opened.task
    domains = list(dict.fromkeys((task.source, task.target, task.judged)))
    of_data_set = opened.spec is not None and opened.spec.data_set is not None
    # The domains of a data set have names of their own; two folders may have the same name.
    groups = [domains] if of_data_set else [[domain] for domain in domains]
    files: list[str] = []
    for group in groups:
        file = Path(os.path.abspath(folder / f"features-{len(files)}.safetensors"))
        images = [require_images(domain) for domain in group]
        extract_shared(extractor, images, file, options, remarks, cache=request.cache)
        files.append(str(file))
    if of_data_set and opened.spec:
        # The features are of the task's own classes already.
        return dataclasses.replace(
            opened.spec,
            data=files[0],
            skip_unreadable=False,
            ignore_target_labels=False,
            source_shares="",
            target_shares="",
        )
    return DataSpec(files[0] if len(files) == 2 else "", files[-1])


def check_features_folder(request: AdaptRequest, backbone: str, folder: Path) -> None:
    """Refuse a folder with a run on features of another network, which would be written over."""
    there = RunFolder(folder).read_config()
    if there is None or there.feature_origin is None:
        return
    origin, weights = there.feature_origin, request.weights
    same = ALIASES.get(backbone, backbone) == origin.backbone
    if weights:
        same = same and file_sha256(Path(weights)) == origin.weights_sha256
    elif not request.from_run:
        same = same and not there.weights
    if not same:
        raise InputError(
            f"{folder} holds a run on features of {origin.backbone} with the weights"
            f" {origin.weights_sha256[:8]}; choose another --out"
        )


def extract_shared(
    extractor: FeatureExtractor,
    images: Sequence[ImageDomain],
    file: Path,
    options: ExtractionOptions,
    remarks: Remarks,
    *,
    cache: bool,
) -> None:
    """Bring a feature file up to date, and say so; with `cache`, by the store of all commands."""
    names = enumerated([domain.name for domain in images])
    remarks.say(
        f"features of {counted(sum(map(len, images)), 'image')} of {names} with {extractor.name}:"
        f" {file}"
    )
    store = FeatureStore.default() if cache else None
    with Bar(remarks.mode, unit="images") as bar:
        done = extractor.extract(images, file, options, bar, store)
    if done.stored and store is not None:
        remarks.say(
            f"features of {done.stored:,} of {counted(done.images, 'image')} were computed before"
            f" ({store.folder}; --no-cache computes them anew)"
        )


def spec_origin(spec: DataSpec) -> FeatureOrigin | None:
    """The network that computed the features that a task is read from, where that is known."""
    file = spec.data or spec.target
    if spec.own and spec.data and os.path.isdir(spec.data):
        file = os.path.join(spec.data, spec.own.domain(spec.target).place)
    return feature_origin(split_path(file)[0])


def task_origin(opened: OpenedRequest) -> FeatureOrigin | None:
    """The network that computed the rows of a task, where that is known."""
    if opened.spec is not None:
        return spec_origin(opened.spec)
    target = opened.task.target
    return target.origin if isinstance(target, ExtractedDomain) else None
