"""The classifier of a finished run, and what it predicts for images and rows."""

import csv
import dataclasses
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from equida.data import (
    ArrayDomain,
    Domain,
    ImageDomain,
    UnreadableImage,
    array_domain,
    read_image,
)
from equida.data.checks import check_finite, drop_samples, find_unreadable, named
from equida.data.feature_file import SUFFIXES
from equida.data.images import check_image, is_image_name
from equida.data.lists import image_list
from equida.data.open import LIST_SUFFIXES, open_path, split_path
from equida.data.task import check_columns
from equida.data.transforms import Transform, evaluation_transform
from equida.data.walk import find_images
from equida.errors import InputError, require
from equida.evaluation.calibration import with_temperature
from equida.fields import checked_value
from equida.files import refuse_to_replace
from equida.models.backbone import load_backbone
from equida.models.extractor import Features
from equida.torch_modes import own_draws, own_torch_state
from equida.training.build import make_objective, row_shape
from equida.training.config import RunConfig
from equida.training.evaluate import log_probs_of
from equida.training.folder import RunFolder
from equida.training.objective import Objective
from equida.training.trust import named_code, settle_trust

if TYPE_CHECKING:
    import pandas as pd

LOG = logging.getLogger(__name__)
TOP = ("", "second_", "third_")
"""Prefixes of the columns for the most likely labels of an image."""
MOST_SAMPLES_AT_ONCE = 100_000


class Classifier(nn.Module):
    """Inputs to the logits that the run's method predicts with."""

    def __init__(self, extractor: nn.Module, objective: Objective) -> None:
        super().__init__()
        self.extractor = extractor
        self.objective = objective

    def forward(self, x: Tensor) -> Tensor:
        _, logits = self.objective.predict(self.extractor(x))
        return logits


@dataclass(frozen=True)
class Predictions:
    """What a classifier predicts for some images or rows.

    Attributes:
        classes: class names, in the order of the columns of `probs`.
        paths: the file of each image, or what a row is called.
        probs: the probability of each class, (samples, classes).
        unreadable: path and reason of every image that could not be read; they have no row.
        index: of the data frame whose rows were given; None for anything else.
    """

    classes: tuple[str, ...]
    paths: tuple[str, ...]
    probs: NDArray[np.float32]
    unreadable: tuple[tuple[str, str], ...] = ()
    index: Any = None

    def __len__(self) -> int:
        return len(self.paths)

    @cached_property
    def labels(self) -> list[str]:
        """The most likely class of each sample."""
        return [self.classes[index] for index in self.probs.argmax(1)]

    @cached_property
    def confidences(self) -> NDArray[np.float32]:
        """The probability of each sample's label."""
        largest: NDArray[np.float32] = self.probs.max(1)
        return largest

    @property
    def columns(self) -> list[str]:
        """The head of the table: the three most likely labels with their probabilities."""
        return [
            "image",
            *(f"{rank}{name}" for rank in self._ranks for name in ("label", "confidence")),
        ]

    def rows(self) -> Iterator[list[str]]:
        """The lines of the table, as text."""
        for path, top in zip(self.paths, self._top(), strict=True):
            yield [path, *(cell for name, share in top for cell in (name, f"{share:.4f}"))]

    def to_csv(self, path: str | Path) -> Path:
        """Write the table that `equida predict` prints; returns the file."""
        file: Path = checked_value(path, Path, "path")
        with open_table(file) as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(self.columns)
            writer.writerows(self.rows())
        return file

    def to_frame(self) -> "pd.DataFrame":
        """The table as a pandas DataFrame, with the index of the data frame that was given."""
        pd = require("pandas", "a DataFrame needs pandas", "pandas")
        lines = [
            [path, *(cell for pair in top for cell in pair)]
            for path, top in zip(self.paths, self._top(), strict=True)
        ]
        return pd.DataFrame(lines, columns=self.columns, index=self.index)

    def __repr__(self) -> str:
        bad = f", {len(self.unreadable):,} unreadable" if self.unreadable else ""
        return f"Predictions({len(self):,} samples, {len(self.classes)} classes{bad})"

    def _repr_html_(self) -> str:
        try:
            return str(self.to_frame().to_html(max_rows=20))
        except InputError:
            return f"<code>{self!r}</code>"

    @property
    def _ranks(self) -> tuple[str, ...]:
        return TOP[: len(self.classes)]

    def _top(self) -> Iterator[list[tuple[str, float]]]:
        best = torch.from_numpy(self.probs).topk(len(self._ranks))
        for shares, indices in zip(best.values.tolist(), best.indices.tolist(), strict=True):
            yield [(self.classes[i], share) for i, share in zip(indices, shares, strict=True)]


@dataclass(frozen=True)
class Predictor:
    """The network of a finished run, in evaluation mode."""

    config: RunConfig
    module: Classifier
    classes: tuple[str, ...]
    transform: Transform | None
    """How images are prepared; None where the run takes rows of unknown origin."""
    shape: tuple[int, ...]
    """The shape of one input, or of each crop where the transform gives several."""
    row_shape: tuple[int, ...]
    """The shape of a row of the features that the run was trained on; () where it was on images."""
    columns: tuple[str, ...] = ()
    """The names of the features that the run was trained on, where they had names."""
    temperature: float = 1.0
    """What log-probabilities are divided by, so that confidences are right on the source."""

    def probs(self, inputs: Tensor) -> Tensor:
        """The probabilities of a batch, (batch, classes); crops of one image are averaged."""
        return self._probs(self.module, inputs)

    def _probs(self, logits: Callable[[Tensor], Tensor], inputs: Tensor) -> Tensor:
        device = next(self.module.parameters()).device
        with torch.inference_mode():
            log_probs = log_probs_of(logits, inputs.to(device))
            return with_temperature(log_probs, self.temperature).exp().cpu()

    @property
    def image_transform(self) -> Transform:
        """How images are prepared; InputError where the run knows rows alone."""
        if self.transform is None:
            raise InputError(
                "the run was trained on features of unknown origin, or of several networks joined,"
                " so it cannot label images; runs on features of one network that equida features"
                " has made can"
            )
        return self.transform

    def _file_batch(self, files: Sequence[Path], transform: Transform) -> Predictions:
        """The predictions for image files, as one batch; unreadable files are listed apart."""
        inputs: list[Tensor] = []
        kept: list[str] = []
        unreadable: list[tuple[str, str]] = []
        for file in files:
            try:
                inputs.append(transform(read_image(file)))
                kept.append(str(file))
            except UnreadableImage as error:
                unreadable.append((str(file), error.reason))
        probs = self.probs(torch.stack(inputs)) if inputs else torch.empty(0, len(self.classes))
        return Predictions(self.classes, tuple(kept), probs.numpy(), tuple(unreadable))

    def predict_batches(self, files: Iterable[Path], batch_size: int) -> Iterator[Predictions]:
        """The predictions for image files, a batch at a time; files are asked for as needed.

        Raises:
            InputError: at once, before the first batch is asked for, where the run knows rows
                alone.
        """
        _check_batch_size(batch_size)
        transform = self.image_transform
        left = iter(files)
        batches = iter(lambda: list(islice(left, batch_size)), [])
        return (self._file_batch(batch, transform) for batch in batches)

    def predict_rows(
        self, rows: ArrayDomain, batch_size: int, *, skip_unreadable: bool = False
    ) -> Iterator[Predictions]:
        """The predictions for rows, a batch at a time: features as the run was trained on, or
        images as arrays.

        Args:
            rows: what is labelled.
            batch_size: rows in a batch.
            skip_unreadable: leave out rows with values that are not finite; the first batch lists
                them and has no predictions.

        Raises:
            InputError: at once, before the first batch is asked for, where the rows do not fit.
        """
        _check_batch_size(batch_size)
        if not len(rows):
            raise InputError(f"{rows.name} has no rows; expected at least one")
        given = row_shape(rows)
        assert given is not None
        if given not in (self.row_shape, self.shape) and not self._takes(given):
            expected = self.row_shape or self.shape
            raise InputError(
                f"{rows.name}: rows have shape {given}; expected {expected}, as the run was trained"
            )
        check_columns(rows.columns, self.columns, rows.name)
        bad = find_unreadable(rows, views=1) if skip_unreadable else {}
        left_out = dataclasses.replace(joined([], self.classes), unreadable=tuple(named(rows, bad)))
        rows = drop_samples(rows, bad) if bad else rows
        check_finite(rows, views=1)
        starts = range(0, len(rows), batch_size)
        batches = (self._row_batch(rows, start, start + batch_size) for start in starts)
        return chain([left_out] if bad else [], batches)

    def _row_batch(self, rows: ArrayDomain, start: int, end: int) -> Predictions:
        indices = np.arange(start, min(end, len(rows)))
        names = tuple(rows.identity(int(index)) for index in indices)
        index = None if rows.index is None else rows.index.take(indices)
        probs = self._row_probs(rows.rows(indices)).numpy()
        return Predictions(self.classes, names, probs, index=index)

    def _takes(self, shape: tuple[int, ...]) -> bool:
        """Whether the network takes images of another size than its own, as many do."""
        if self.row_shape or len(shape) != 3:
            return False
        try:
            return len(self.probs(torch.zeros(2, *shape))) == 2
        except Exception:  # networks refuse sizes in ways of their own
            return False

    def _row_probs(self, x: Tensor) -> Tensor:
        if self.row_shape and tuple(x.shape[1:]) == self.row_shape:
            return self._probs(lambda rows: self.module.objective.predict(rows)[1], x)
        return self.probs(x)


def _check_batch_size(size: int) -> None:
    if not 1 <= size <= MOST_SAMPLES_AT_ONCE:
        raise InputError(f"batch size is {size}; it must be from 1 to {MOST_SAMPLES_AT_ONCE}")


def joined(parts: Sequence[Predictions], classes: tuple[str, ...]) -> Predictions:
    """The predictions of several batches as one."""
    first, *others = [part.index for part in parts if part.index is not None] or [None]
    return Predictions(
        classes,
        tuple(path for part in parts for path in part.paths),
        np.concatenate([np.zeros((0, len(classes)), np.float32), *(part.probs for part in parts)]),
        tuple(entry for part in parts for entry in part.unreadable),
        first.append(others) if others else first,
    )


@contextmanager
def open_table(file: Path) -> Iterator[IO[str]]:
    """The file, opened for a table; names of images may hold bytes that are not text."""
    check_table_place(file)
    try:
        with file.open("w", newline="", encoding="utf-8", errors="surrogateescape") as stream:
            yield stream
    except OSError as error:
        raise InputError(f"cannot write {file}: {error.strerror}; choose another place") from error


def check_table_place(file: Path) -> None:
    """Raise InputError where a file is there that is no table of labels."""
    refuse_to_replace([file], lambda: _is_table(file))


def _is_table(file: Path) -> bool:
    with file.open("rb") as stream:
        return stream.read(100).startswith(b"image,label,confidence")


def rows_given(given: Any) -> ArrayDomain | None:
    """The rows that were given to be labelled, or None for files and folders of images.

    Args:
        given: a path, paths, a domain, features, or an array.
    """
    if isinstance(given, str | Path):
        if split_path(str(given))[0].suffix not in SUFFIXES:
            return None
        given = open_path(str(given))
    if isinstance(given, Features):
        given = given.domain()
    if isinstance(given, ArrayDomain):
        return given
    if isinstance(given, tuple) and len(given) == 2 and np.ndim(given[0]) > np.ndim(given[1]) > 0:
        raise InputError("rows are a pair (X, y); expected X alone: labels are what is predicted")
    if isinstance(given, Domain) or _are_paths(given):
        return None
    return array_domain(given, name="rows")


def paths_given(given: Any) -> list[Path]:
    """The files and folders of images that were given to be labelled."""
    if isinstance(given, str | Path):
        return [Path(given)]
    if isinstance(given, ImageDomain):
        return [given.path(index) for index in range(len(given))]
    return [Path(path) for path in given]


def _are_paths(given: Any) -> bool:
    """Whether it is a list of paths, also as an array or as a column of a table."""
    listed = isinstance(given, list | tuple) or (getattr(given, "ndim", 0) == 1)
    return listed and all(isinstance(each, str | Path) for each in given)


def files_to_label(given: Sequence[Path]) -> Iterator[Path]:
    """The files given, and the images in the folders and image lists given: those of a folder in
    the order of their names, those of a list in its own.

    Raises:
        InputError: nothing is given, something does not exist, or a list cannot be read.
    """
    if not given:
        raise InputError("no images are given; list image files or folders after the run")
    missing = [path for path in given if not path.exists()]
    if missing:
        raise InputError(f"{missing[0]} does not exist; expected images or folders of images")
    if all(map(_is_no_image, given)):
        raise InputError(
            f"{given[0]} is not an image; expected images, folders of images, an image list"
            f" ({', '.join(LIST_SUFFIXES)}) or feature files ({', '.join(SUFFIXES)})"
        )
    listed = {path: image_list(path) for path in given if _is_list(path)}
    return chain.from_iterable(
        paths_given(listed[path]) if path in listed else find_images([path]) for path in given
    )


def _is_no_image(path: Path) -> bool:
    """Whether a file neither is called an image or an image list nor can be read as an image."""
    if not path.is_file() or is_image_name(path.name) or _is_list(path):
        return False
    return check_image(path) is not None


def _is_list(path: Path) -> bool:
    return path.suffix in LIST_SUFFIXES and path.is_file()


def restore(
    folder: Path, *, trust: bool = False, say: Callable[[str], None] = LOG.info
) -> Predictor:
    """The network that a finished run ended with.

    Args:
        folder: the run's.
        trust: whether code may be run that the run's record names.
        say: told of that code.
    """
    run = finished_run(folder)
    config = run.read_config()
    assert config is not None, "a finished run has its config"
    settle_trust(folder / "config.json", named_code(config), trust, say)
    classes = classes_of(folder)
    state = run.load_tensors("model.safetensors")
    rows = None if config.backbone != "none" else (_row_width(state, config),)
    with own_draws():
        objective, backbone = make_objective(config, len(classes), rows, pretrained=False)
    try:
        objective.load_state_dict(state)
    except RuntimeError:
        raise InputError(
            f"{folder / 'model.safetensors'} does not hold the network that config.json describes;"
            " repeat the run, or copy it again"
        ) from None
    extractor: nn.Module = nn.Identity()
    transform: Transform | None = None
    shape: tuple[int, ...] = rows or ()
    if backbone is not None:
        shape = backbone.input_size
        transform = evaluation_transform(
            backbone.mean, backbone.std, shape[1], ten_crop=config.recipe.ten_crop
        )
    elif config.feature_origin is not None:
        # A function of the user's own may seed torch's generator, and mean it.
        own = own_torch_state if ":" in config.feature_origin.backbone else own_draws
        with own():
            extractor, transform, shape = _extractor(config)
    module = Classifier(extractor, objective).eval()
    result = run.read_result()
    assert result is not None, "a finished run has a result"
    columns = tuple(result.get("columns") or ())
    temperature = run.temperature()
    return Predictor(config, module, classes, transform, shape, rows or (), columns, temperature)


def _extractor(config: RunConfig) -> tuple[nn.Module, Transform, tuple[int, ...]]:
    """The backbone that computed the run's features, if it is the same one here."""
    origin = config.feature_origin
    assert origin is not None
    weights = Path(config.weights) if config.weights else None
    backbone = load_backbone(origin.backbone, weights=weights)
    if backbone.weights_sha256 != origin.weights_sha256:
        raise InputError(
            f"the run's features were made with other weights of {origin.backbone} "
            f"(SHA-256 {origin.weights_sha256[:12]}) than those found here "
            f"({backbone.weights_sha256[:12]})"
        )
    return backbone.module, Transform.parse(origin.transform), backbone.input_size


def classes_of(folder: Path) -> tuple[str, ...]:
    """The class names of a finished run."""
    result: dict[str, Any] | None = finished_run(folder).read_result()
    assert result is not None, "a finished run has a result"
    return tuple(result["classes"])


def finished_run(folder: Path) -> RunFolder:
    """The folder of a finished run.

    Raises:
        InputError: it is not one; the message says what is missing.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is not a run folder; expected one made by equida adapt")
    for name in ("config.json", "result.json", "model.safetensors"):
        if (folder / name).exists():
            continue
        if (folder / "config.json").exists():
            raise InputError(
                f"{folder} is unfinished: it has no {name}; run equida adapt to the end"
            )
        below = sorted(folder.glob("*/result.json"))
        hint = f"; choose a run in it, such as {below[0].parent}" if below else ""
        raise InputError(f"{folder} is not a run folder: it has no {name}{hint}")
    return RunFolder(folder)


def _row_width(state: dict[str, Tensor], config: RunConfig) -> int:
    layer = "bottleneck.0" if config.recipe.bottleneck else "classifier"
    weight = state.get(f"network.{layer}.weight")
    if weight is None or weight.ndim != 2:
        raise InputError(
            f"model.safetensors has no matrix network.{layer}.weight, as config.json describes it;"
            " repeat the run, or copy it again"
        )
    return int(weight.shape[1])
