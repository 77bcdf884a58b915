"""Runs that were made: `Run` is the one class for a run that was read."""

import dataclasses
import html
import logging
import os
from collections.abc import Iterable, Iterator, Mapping, MappingView, Set
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from equida.data.rows import open_safetensors
from equida.errors import InputError
from equida.fields import checked_value
from equida.files import parse_json
from equida.progress import Bar, display_mode
from equida.records import conform
from equida.runs.formats import html_table, pick_rows
from equida.runs.search import Search, read_search
from equida.runs.target import target_remarks
from equida.training.config import RunConfig
from equida.training.folder import RunFolder

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike
    from torch import Tensor, nn

    from equida.data import Domain
    from equida.models.extractor import Features
    from equida.training.predictor import Predictions
    from equida.training.rerun import Repetition

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class StoredPredictions:
    """The target predictions that a run has stored."""

    probs: "Tensor"
    """As the network gives them, where `Run.predict` divides logits by the run's temperature."""
    labels: "Tensor"
    """-1 where unknown."""
    samples: tuple[str, ...]
    """Path or row of each sample."""


@dataclass(frozen=True)
class Pick:
    """The evaluation of a run that a selection chooses."""

    step: int
    accuracy: float | None
    """By the run's metric; None without target labels."""
    equity: float
    discriminability: float
    uses_target_labels: bool = False
    """True for the oracle, which says how much a perfect selection could have gained."""


@dataclass(frozen=True, repr=False)
class Run:
    """A run: how it was made, what came out, and a classifier for new images or rows.

    >>> import tempfile
    >>> import numpy as np
    >>> from equida import adapt
    >>> y = np.arange(24) % 2
    >>> X = 4.0 * np.eye(2)[y]
    >>> with tempfile.TemporaryDirectory() as out:
    ...     run = adapt((X, y), X, recipe_params={"iterations": 2}, out=out, progress=False)
    >>> run.task, run.method, run.seed, run.classes
    ('source2target', 'nsm', 0, ('0', '1'))
    """

    path: Path
    config: RunConfig
    result: dict[str, Any] | None
    """The content of result.json; None while the run is unfinished or where it failed."""
    failure: str | None = None
    """Why it failed, if it did."""
    trust: bool = False
    """Whether code may be run that config.json names: to predict, to export, to repeat the run."""

    @property
    def task(self) -> str:
        """The name of the task, such as "A2W"; of an unfinished run as its config names it."""
        if self.result is not None:
            return str(self.result["task"])
        spec = self.config.task
        if spec is None:
            return "source2target"
        return "2".join(Path(path).name for path in (spec.source, spec.target) if path)

    @property
    def title(self) -> str:
        """The method, the task and the seed in words."""
        return f"{self.method} on {self.task}, seed {self.seed}"

    @property
    def method(self) -> str:
        return self.config.method

    @property
    def seed(self) -> int:
        return self.config.seed

    @property
    def classes(self) -> tuple[str, ...]:
        return tuple(self._finished["classes"])

    @property
    def metric(self) -> str:
        """The accuracy that the task is judged by: "accuracy" or "mean_class_accuracy"."""
        return str(self._finished["metric"])

    @property
    def kept(self) -> str:
        """Which of `picks` has the weights that the run kept and `predict` uses: "last", or the
        validator that the recipe's `keep` names."""
        return str(self._finished.get("kept", "last"))

    @property
    def accuracy(self) -> float | None:
        """On the target after the last step, by `metric`; None without target labels. That of the
        weights that `predict` uses is `picks[kept].accuracy`."""
        return self.picks["last"].accuracy

    @property
    def equity(self) -> float:
        """The equity of the target predictions after the last step."""
        return self.picks["last"].equity

    @property
    def discriminability(self) -> float:
        """The discriminability of the target predictions after the last step."""
        return self.picks["last"].discriminability

    @cached_property
    def picks(self) -> Mapping[str, Pick]:
        """The last step, what each label-free validator would have picked, and the oracle's."""
        evaluations = {"last": self._finished["last"], **self._finished["picks"]}
        return {
            name: Pick(
                int(figures["step"]),
                figures.get(self.metric),
                figures["equity"],
                figures["discriminability"],
                uses_target_labels=name == "oracle",
            )
            for name, figures in evaluations.items()
        }

    @cached_property
    def search(self) -> Search | None:
        """What was tried before the run's setting was chosen, by `equida tune` or by the method
        "auto"; None for every other run."""
        return read_search(self.path)

    @cached_property
    def log(self) -> list[dict[str, Any]]:
        """The lines of log.jsonl."""
        if not self.path.is_dir():
            raise InputError(f"{self.path} is gone; load the run from where it is now")
        return RunFolder(self.path).read_log()

    @property
    def class_shares(self) -> Mapping[str, list[float] | None]:
        """Shares of the target's classes: predicted by the run, aimed at by its method (None for a
        method without equity, or whose parts aim at different ones) and estimated without target
        labels, where that was done."""
        shares = self._finished.get("shares") or {}
        names = ("predicted", "aim", "estimated")
        return {name: shares[name] for name in names if name in shares}

    @property
    def remarks(self) -> list[str]:
        """What the run says of its target without labels: imbalance, harm, what to expect."""
        return target_remarks(self._finished)

    def curves(self) -> "pd.DataFrame | list[dict[str, float]]":
        """The losses and evaluations by step: a DataFrame where pandas is installed, else a list.

        Losses are means since the row before, in columns such as `loss_nsm`; a step without an
        evaluation lacks its figures.
        """
        rows: dict[int, dict[str, float]] = {}
        for line in self.log:
            row = rows.setdefault(line["step"], {"step": line["step"]})
            row |= {f"loss_{name}": value for name, value in line.get("terms", {}).items()}
            figures = line.get("evaluation", {})
            row |= {name: value for name, value in figures.items() if name != "step"}
        try:
            import pandas as pd
        except ImportError:
            return list(rows.values())
        return pd.DataFrame(list(rows.values()))

    @cached_property
    def predictions(self) -> StoredPredictions:
        """The final target predictions.

        Raises:
            InputError: they are damaged or not there.
        """
        return read_predictions(self)

    def predict(
        self,
        images: "str | Path | Iterable[str | Path] | Domain | Features | ArrayLike",
        *,
        batch_size: int = 32,
        skip_unreadable: bool = False,
        accelerator: str = "auto",
        progress: bool | None = None,
    ) -> "Predictions":
        """The labels of new samples.

        Args:
            images: image files and folders of images, which are searched through; or rows like
                those that the run was trained on: an array or a data frame, a feature file, a
                domain, or what `equida.extract_features` returned.
            batch_size: samples that the network sees at once.
            skip_unreadable: leave out rows with values that are not finite, instead of raising an
                error; they are listed in `unreadable`, as images that cannot be read always are.
            accelerator: "cpu", "gpu" or "auto".
            progress: None shows it in a terminal or notebook; True and False force it.
        """
        from equida.torch_modes import plain_modes
        from equida.training.predictor import (
            files_to_label,
            joined,
            paths_given,
            restore,
            rows_given,
        )
        from equida.training.processes import make_fabric

        images = list(images) if isinstance(images, Iterator | Set | MappingView) else images
        rows = rows_given(images)
        files = files_to_label(paths_given(images)) if rows is None else iter(())
        with plain_modes():
            predictor = restore(self.path, trust=self.trust)
            predictor.module.to(make_fabric(accelerator).device)
            if rows is None:
                total, batches = None, predictor.predict_batches(files, batch_size)
            else:
                total = len(rows)
                batches = predictor.predict_rows(rows, batch_size, skip_unreadable=skip_unreadable)
            parts = []
            with Bar(display_mode(progress), "predict", total, unit="samples") as bar:
                for part in batches:
                    parts.append(part)
                    bar.advance(len(part) + len(part.unreadable))
        return joined(parts, predictor.classes)

    def export(self, folder: str | Path, *, onnx: bool = True) -> Path:
        """Write the classifier for use without equida; returns the folder.

        Args:
            folder: where model.safetensors, model.json and model.onnx are written.
            onnx: write model.onnx too (extra `export`).
        """
        from equida.torch_modes import plain_modes
        from equida.training.export import export_run

        with plain_modes():
            return export_run(self.path, Path(folder), onnx=onnx, trust=self.trust).folder

    def repeat(
        self, out: str | Path | None = None, *, progress: bool | None = None
    ) -> "Repetition":
        """Do the run again from its record, and say whether the weights are the same bit for bit.

        Args:
            out: where the second run is kept; None removes it once it has been compared.
            progress: None shows it in a terminal or notebook; True and False force it.

        Raises:
            InputError: the run is unfinished, or was trained on data in memory.
        """
        from equida.torch_modes import own_torch_state
        from equida.training.rerun import repeat_run

        folder = None if out is None else checked_value(out, Path, "out")
        with own_torch_state():
            return repeat_run(self.path, folder, display_mode(progress), trust=self.trust)

    def report(self, file: str | Path, *, progress: bool | None = None) -> Path:
        """Write a self-contained page about the run; returns the file.

        Args:
            file: where the page is written.
            progress: None shows it in a terminal or notebook; True and False force it.
        """
        # The page is drawn in a room above this one: the only import that points upwards.
        from equida.report.page.build import write_page

        out = Path(file)
        write_page(self.path, out, trust=self.trust, progress=progress)
        return out

    def __repr__(self) -> str:
        words = [self.title]
        if self.failure is not None:
            words.append(f"failed: {self.failure}")
        elif self.result is None:
            words.append("unfinished")
        else:
            score = self.accuracy
            words += [] if score is None else [f"{self.metric} {100 * score:.1f} %"]
            words.append(f"equity {self.equity:.3f}")
            words.append(f"discriminability {self.discriminability:.3f}")
            words += [] if self.kept == "last" else [f"last step; {self.kept} chose what is kept"]
        return f"Run({'; '.join(words)}; {self.path})"

    def _repr_html_(self) -> str:
        if self.result is None:
            return f"<code>{html.escape(repr(self))}</code>"
        return html_table(self.title, pick_rows(self))

    @property
    def _finished(self) -> dict[str, Any]:
        if self.result is None:
            state = f"has failed ({self.failure})" if self.failure else "is unfinished"
            raise InputError(f"{self.path} {state}; run it to the end first")
        return self.result


def load_run(path: str | Path, *, trust: bool = False, backbone: "nn.Module | None" = None) -> Run:
    """The run in a folder, also an unfinished one or one that failed.

    Args:
        path: a folder made by `equida.adapt`, `equida adapt` or `equida bench`.
        trust: run the code that the run's record names (a method or a backbone of its author's
            own) where predicting needs it. Without it such a record is refused.
        backbone: the module that the run was given as its backbone, where it was one in memory.

    >>> import tempfile
    >>> import numpy as np
    >>> from equida import adapt
    >>> y = np.arange(24) % 2
    >>> X = 4.0 * np.eye(2)[y]
    >>> with tempfile.TemporaryDirectory() as out:
    ...     run = adapt((X, y), X, recipe_params={"iterations": 2}, out=out, progress=False)
    ...     load_run(out).result == run.result
    True
    """
    folder = Path(os.path.abspath(checked_value(path, Path, "the run's path")))
    if not (folder / "config.json").is_file():
        raise InputError(f"{folder} is not a run folder; expected one made by equida adapt")
    run = dataclasses.replace(_run(RunFolder(folder)), trust=trust)
    if backbone is not None:
        from equida.models.backbone import give_backbone

        origin = run.config.feature_origin
        give_backbone(backbone, origin.backbone if origin else run.config.backbone)
    return run


def read_runs(root: Path) -> list[Run]:
    """Every run below `root`, in order of their folders.

    A folder whose files cannot be understood is left out with a warning, so that it does not stand
    in the way of the others.
    """
    if not root.is_dir():
        raise InputError(f"{root} is not a folder; expected one with runs, made by equida bench")
    runs = []
    for file in sorted(root.rglob("config.json")):
        try:
            runs.append(_run(RunFolder(file.parent)))
        except InputError as error:
            LOG.warning("left out: %s", error)
    return runs


def read_predictions(run: Run) -> StoredPredictions:
    """The target predictions of a run; unlike `Run.predictions`, they are not kept in memory.

    Raises:
        InputError: they are damaged or not there.
    """
    path = run.path / "predictions.safetensors"
    with open_safetensors(path, "pt") as file:
        samples = parse_json((file.metadata() or {}).get("samples", ""), path)
        conform(samples, list[str], f"{path}: samples")
        probs, labels = file.get_tensor("probs"), file.get_tensor("labels")
    shapes = (len(samples), len(run.classes)), (len(samples),)
    if (probs.shape, labels.shape) != shapes:
        raise InputError(f"{path} does not hold {shapes[0][1]} probabilities for each sample")
    if not probs.is_floating_point() or labels.is_floating_point() or not len(samples):
        raise InputError(f"{path} does not hold probabilities and labels")
    return StoredPredictions(probs, labels, tuple(samples))


def _run(folder: RunFolder) -> Run:
    result = folder.read_result()
    config = folder.read_config()
    if config is None:
        raise InputError(f"{folder.path} has no config.json; expected the folder of a run")
    failed = folder.read_json("failed.json")
    conform(failed, Mapping[str, str] | None, f"{folder.path / 'failed.json'}")
    return Run(folder.path, config, result, failed.get("reason", "?") if failed else None)
