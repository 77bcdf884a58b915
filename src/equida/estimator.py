"""The scikit-learn estimator: domain adaptation on arrays, by the same training loop."""

import dataclasses
import math
import numbers
import warnings
from collections.abc import Mapping
from enum import Enum
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils import _safe_indexing, assert_all_finite, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _num_samples,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)
from torch import Tensor

from equida.class_shares import label_text
from equida.data import Task, array_domain, make_task
from equida.errors import InputError
from equida.evaluation.predictions import DomainPredictions, InputRows
from equida.fields import FieldError
from equida.methods import Method, check_overrides, method_name
from equida.methods.auto import AUTO, auto_candidates, checked_prior
from equida.runs.target import target_remarks
from equida.torch_modes import check_count, own_torch_state, plain_modes, torch_threads
from equida.training.build import split
from equida.training.config import RunConfig
from equida.training.effect import check_effect
from equida.training.evaluate import auto_score
from equida.training.loop import train
from equida.training.processes import AnyFabric, make_fabric
from equida.training.recipe import Recipe, recipe
from equida.training.recorder import Trained
from equida.training.request import AdaptRequest
from equida.training.target_check import describe_target, looks_imbalanced, source_view

METHOD_PARAMETERS = ("trade_off", "r", "alpha", "prior")
RECIPE_PARAMETERS = (
    "iterations", "batch_size", "learning_rate", "weight_decay", "bottleneck", "dropout",
)  # fmt: skip
DEVICES = {"auto": "auto", "cpu": "cpu", "cuda": "gpu", "mps": "mps"}
LEARNED = (
    "classes_", "mean_", "scale_", "objective_", "result_", "history_", "tried_",
    "n_features_in_", "feature_names_in_",
)  # fmt: skip
"""What a fit sets."""
ROWS_AT_ONCE = 4096


@dataclasses.dataclass(frozen=True)
class TargetLook:
    """What a fitted classifier says of its target without labels (docs/imbalanced_targets.md)."""

    shares: Mapping[str, Any]
    """Class shares in the order of `classes_`: `predicted`, `estimated` and `aim`, which is None
    for a method without equity; and W, as `imbalance`, with the `agreement` behind it."""
    harm: Mapping[str, Any]
    """The classifier beside one that knows the source alone."""
    remarks: list[str]
    """What calls for a word, a line each."""


class EquidaClassifier(
    ClassNamePrefixFeaturesOutMixin, ClassifierMixin, TransformerMixin, BaseEstimator
):
    """A classifier that learns on labelled source rows and adapts to unlabelled target rows.

    The network is linear - batch normalisation - ReLU - dropout - linear, trained by SGD on source
    cross-entropy plus the method's terms. Target labels are never read.

    A search over parameters must not select on target labels either: `equida.scorers` has scores
    of the target predictions that need no label, and a splitter that folds the source. With
    `X_target=`, scikit-learn scores held-out source rows. With `sample_domain=` it tells `score`
    which rows are the source's only where metadata routing is enabled; else `score` warns.

    Args:
        method: a name that `equida list methods` shows, or several with "+" between them; or a
            method of your own, as its class or as "package.module:Class". "auto" trains a few
            settings and takes the one that a label-free validator prefers (docs/tune.md).
        trade_off: weight of the method's term against source cross-entropy; None: the method's
            default, as for the two that follow.
        r: pressure towards equal class sizes, for methods that have it (nsm, cwsm).
        alpha: flatness near the minimum, for methods that have it (nsm).
        prior: the class shares to aim at, for methods with equity (nsm, cwsm, bnm, fbnm, im,
            clusters), for every such part of a composition and every candidate of "auto":
            "uniform", "source", "estimate" (of the target, without its labels), shares in the order
            of `classes_`, or a dictionary of labels with shares. All but an estimate are mixed with
            equal shares by the method's `prior_strength` (a half, or three quarters; 1 takes them
            as they are). None: equal shares; for "auto" the estimated ones where the target looks
            imbalanced.
        method_params: the method's other hyper-parameters by name; "part.name" in a composition,
            such as {"nsm.trade_off": 1.0} in "cdan+nsm".
        iterations: steps of the optimiser.
        batch_size: rows of each domain in a step; at most as many as the smaller domain has.
        learning_rate: learning rate at the first step.
        weight_decay: weight decay of all parameters.
        bottleneck: width of the hidden layer; 0: no hidden layer, a linear classifier.
        dropout: share of hidden units dropped in training.
        recipe_params: the other fields of `equida.training.recipe.Recipe` by name, such as
            {"holdout": 0.1, "keep": "bnm"}.
        standardize: give every feature mean 0 and variance 1 over the rows of both domains
            together. The same map is applied to both domains: it makes units comparable and keeps
            the shift between the domains. Turn it off for rows that are already scaled.
        random_state: an integer is the seed of the run, as `--seed` of `equida adapt`.
        device: the device to train on: "auto", "cpu", "cuda" or "mps". The fitted network stays on
            the CPU and predicts there, so that it can be unpickled anywhere.
        n_jobs: threads of the CPU; None: 1, which suits batches of this size best; -1: as many as
            torch is set to use.
        verbose: print a line for each evaluation.

    Attributes:
        classes_: the source's labels, sorted.
        n_features_in_: number of features.
        feature_names_in_: their names, where the data had names.
        result_: the content of a run's result.json: the measures of the last step (equity,
            discriminability and label-free scores of the target predictions) and the step that
            each label-free validator would have picked.
        history_: the content of a run's log.jsonl, a dictionary for each line.
        tried_: with the method "auto", what was tried: a dictionary with the method, its overrides
            and its score for each; `result_["method"]` is the one that was chosen.
        objective_: the trained network and method.
        mean_, scale_: mean and scale by which each feature was standardised; None without
            `standardize`.

    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (20, 2)), rng.normal(8, 1, (20, 2))])
    >>> y = ["low"] * 20 + ["high"] * 20
    >>> model = EquidaClassifier(iterations=50, random_state=0).fit(X, y, X_target=X + 2)
    >>> model.predict([[1, 3], [11, 9]])
    array(['low', 'high'], dtype='<U4')
    """

    # What scikit-learn's searches and pipelines pass on where metadata routing is enabled.
    __metadata_request__fit: ClassVar = {"sample_domain": True, "X_target": True}
    __metadata_request__predict: ClassVar = {"sample_domain": True}
    __metadata_request__predict_proba: ClassVar = {"sample_domain": True}
    __metadata_request__score: ClassVar = {"sample_domain": True}

    def __init__(
        self,
        method: str | type[Method] = "nsm",
        *,
        trade_off: float | None = None,
        r: float | None = None,
        alpha: float | None = None,
        prior: Any = None,
        method_params: Mapping[str, Any] | None = None,
        iterations: int = 1000,
        batch_size: int = 36,
        learning_rate: float = 0.01,
        weight_decay: float = 1e-3,
        bottleneck: int = 256,
        dropout: float = 0.5,
        recipe_params: Mapping[str, Any] | None = None,
        standardize: bool = True,
        random_state: Any = None,
        device: str = "auto",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.method = method
        self.trade_off = trade_off
        self.r = r
        self.alpha = alpha
        self.prior = prior
        self.method_params = method_params
        self.iterations = iterations
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.bottleneck = bottleneck
        self.dropout = dropout
        self.recipe_params = recipe_params
        self.standardize = standardize
        self.random_state = random_state
        self.device = device
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_domain: ArrayLike | None = None,
        X_target: ArrayLike | None = None,
    ) -> "EquidaClassifier":
        """Learn on the source, adapt to the target and return self.

        The target is given by `sample_domain` or by `X_target`. With neither there is nothing to
        adapt to: the classifier is trained on X and y alone, as by the method "source_only", and a
        warning says so.

        Args:
            X: rows of the source, or of both domains.
            y: one label per row. The labels of target rows may be anything: they are not read.
            sample_domain: one number per row, positive for source and negative for target.
            X_target: rows of the target. In a pipeline prefer `sample_domain`: the earlier steps
                transform X, but not X_target.
        """
        self._forget()
        try:
            with plain_modes():
                self._fit_domains(X, y, sample_domain, X_target)
        except BaseException:  # what is half of this fit would be taken for a classifier
            self._forget()
            raise
        return self

    def _forget(self) -> None:
        """Remove what a fit has learned."""
        for name in LEARNED:
            self.__dict__.pop(name, None)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "objective_")

    def _fit_domains(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_domain: ArrayLike | None,
        X_target: ArrayLike | None,
    ) -> None:
        overrides = self._overrides()
        rows, y, target = self._domains(X, y, sample_domain, X_target, reset=True)
        self.classes_, labels = _classes(y)
        config = self._config("source_only" if target is None else self._method_name(), overrides)
        if target is None and self.method != "source_only":
            warnings.warn(
                "there are no target rows: the classifier is trained on X and y alone, and nothing "
                "is adapted; pass sample_domain= or X_target= to fit",
                stacklevel=3,
            )
        task = self._task(rows, labels, rows if target is None else target)
        asked = AdaptRequest(None, None, recipe_params=self.recipe_params or {})
        check_effect(asked, task, None, say=lambda text: warnings.warn(text, stacklevel=4))
        self._fit(_fitting(config, task), task)
        self._fitted_with_domains = sample_domain is not None

    def look_at_target(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_domain: ArrayLike | None = None,
        X_target: ArrayLike | None = None,
    ) -> TargetLook:
        """How large the target's classes look, and whether adaptation may have hurt.

        It is what `equida adapt` says after a run (docs/imbalanced_targets.md), without target
        labels. `fit` looks only with "auto" and "clusters": a classifier that knows the source
        alone is trained for it, which takes as long as a fit where rows are wide, and searches fit
        often. The arguments are those of `fit`; the target may be another one.
        """
        check_is_fitted(self)
        rows, y, target = self._domains(X, y, sample_domain, X_target, reset=False)
        if target is None:
            raise InputError("there are no target rows; pass sample_domain= or X_target=")
        known, labels = _classes(y)
        if unknown := sorted(set(known.tolist()) - set(self.classes_.tolist())):
            raise InputError(
                f"y has the label {unknown[0]!r}, which fit has not seen; pass what fit was given"
            )
        task = make_task(
            array_domain(
                self._inputs(rows),
                np.searchsorted(self.classes_, known)[labels],
                classes=[label_text(label) for label in self.classes_],
                name="source",
            ),
            array_domain(self._inputs(target), name="target"),
        )
        _, logits = self._outputs(target)
        predictions = DomainPredictions(logits.log_softmax(1))
        with torch_threads(self._threads()):
            view = source_view(task)
            aim = self.result_["shares"]["aim"]
            found = describe_target(predictions, view, aim) | {"method": self.result_["method"]}
        remarks = target_remarks(found, advice='prior="estimate"')
        return TargetLook(found["shares"], found["harm"], remarks)

    def predict(self, X: ArrayLike, sample_domain: ArrayLike | None = None) -> NDArray[Any]:
        """The label of each row.

        Args:
            X: rows of either domain.
            sample_domain: not needed, as one network predicts both domains; checked where given.
        """
        _, logits = self._forward(X, sample_domain)
        labels: NDArray[Any] = self.classes_[logits.argmax(1).numpy()]
        return labels

    def predict_proba(
        self, X: ArrayLike, sample_domain: ArrayLike | None = None
    ) -> NDArray[np.float64]:
        """The probability of each class, (rows, classes), in the order of `classes_`.

        Args:
            X: rows of either domain.
            sample_domain: not needed, as one network predicts both domains; checked where given.
        """
        _, logits = self._forward(X, sample_domain)
        return logits.softmax(1).numpy()

    def score(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        sample_domain: ArrayLike | None = None,
    ) -> float:
        """Accuracy on the rows of the source, whose labels are known.

        Args:
            X: rows.
            y: one label per row.
            sample_weight: one weight per row.
            sample_domain: one number per row, positive for source and negative for target: target
                rows do not count. Where there are only target rows, and where it is None after a
                fit with `sample_domain`, all rows count, with a warning: labels of target rows may
                be placeholders.
        """
        check_is_fitted(self)
        if sample_domain is not None:
            source = np.flatnonzero(source_rows(sample_domain, _num_samples(X)))
            if len(source):
                X = _safe_indexing(X, source)
                y = _labels_of(y, source)
                if sample_weight is not None:
                    sample_weight = _safe_indexing(sample_weight, source)
            else:
                self._warn_of_placeholders(y, "all rows are target rows")
        elif self._fitted_with_domains:
            self._warn_of_placeholders(y, "score is not told which rows are the source's")
        return float(super().score(X, y, sample_weight))

    def _warn_of_placeholders(self, y: ArrayLike, why: str) -> None:
        """Warn that labels of target rows may be counted; refuse those that are not classes."""
        known = set(self.classes_.tolist())
        for label in column_or_1d(y).tolist():
            if label not in known:
                raise InputError(
                    f"y has the label {label!r}, which no source row has, and {why}; score takes "
                    "labels that are known: pass sample_domain= with source rows among X"
                )
        warnings.warn(
            f"{why}: all labels count, also placeholders of target rows. Pass sample_domain= with "
            "source rows to score; in a search, enable the metadata routing of scikit-learn, or "
            "fit with X_target=",
            stacklevel=3,
        )

    def transform(self, X: ArrayLike) -> NDArray[Any]:
        """The output of the hidden layer for each row, (rows, bottleneck)."""
        features, _ = self._forward(X)
        single = getattr(X, "dtype", None) == np.float32
        return features.to(torch.float32 if single else torch.float64).numpy()

    def predictions(self, X: ArrayLike, y: ArrayLike | None = None) -> DomainPredictions:
        """What the network says of rows, as label-free validators look at it.

        Args:
            X: rows of one domain.
            y: their labels, where they are known; a label that is not a class counts as unknown.
        """
        features, logits = self._forward(X)
        rows = validate_data(self, _plain_rows(X), reset=False, dtype=(np.float64, np.float32))
        labels = None
        if y is not None:
            numbers = {label: number for number, label in enumerate(self.classes_.tolist())}
            labels = torch.tensor([numbers.get(label, -1) for label in column_or_1d(y).tolist()])
        inputs = InputRows(torch.from_numpy(self._inputs(rows)))

        def network(standardized: Tensor) -> Tensor:
            with torch.inference_mode():
                return self.objective_.predict(standardized.double())[1].log_softmax(1)

        return DomainPredictions(logits.log_softmax(1), labels, features, inputs, network=network)

    @property
    def _n_features_out(self) -> int:
        return int(self.objective_.network.features)

    def _domains(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_domain: ArrayLike | None,
        X_target: ArrayLike | None,
        *,
        reset: bool,
    ) -> tuple[NDArray[Any], ArrayLike, NDArray[Any] | None]:
        """Rows of the source, their labels, and rows of the target, None where there are none."""
        types = (np.float64, np.float32)
        y, X_target = _plain_labels(y), _plain_rows(X_target)
        rows = validate_data(self, _plain_rows(X), reset=reset, dtype=types, ensure_min_samples=2)
        if y is None:
            raise ValueError("EquidaClassifier requires y to be passed, but the target y is None")
        check_consistent_length(rows, y)
        if X_target is not None and sample_domain is not None:
            raise InputError("sample_domain and X_target are both given; give one of them")
        if sample_domain is not None:
            source = _is_source(sample_domain, len(rows))
            return rows[source], _labels_of(y, np.flatnonzero(source)), rows[~source]
        if X_target is None:
            return rows, y, None
        try:
            return rows, y, validate_data(self, X_target, reset=False, dtype=types)
        except ValueError as error:
            raise ValueError(f"X_target: {error}") from error

    def _overrides(self) -> dict[str, Any]:
        """The hyper-parameters of the method that the user has set, checked."""
        named = {name: getattr(self, name) for name in METHOD_PARAMETERS}
        named = {name: value for name, value in named.items() if value is not None}
        overrides = _merged(named, self.method_params, "method_params")
        if self._method_name() == AUTO:
            return checked_prior(overrides, f"the method {AUTO!r}")
        return check_overrides(self._method_name(), overrides)

    def _method_name(self) -> str:
        if not isinstance(self.method, str | type):
            raise FieldError("method", self.method, "the name of a method, such as 'nsm'")
        return method_name(self.method)

    def _config(self, method: str, overrides: dict[str, Any]) -> RunConfig:
        named = {name: getattr(self, name) for name in RECIPE_PARAMETERS}
        # Without a backbone there is nothing that should learn more slowly than the head.
        fields = _merged({**named, "head_multiplier": 1.0}, self.recipe_params, "recipe_params")
        chosen = self.random_state
        if not isinstance(chosen, numbers.Integral):
            chosen = check_random_state(chosen).randint(np.iinfo(np.int32).max)
        used = overrides if method == self._method_name() else {}
        return RunConfig(method, recipe("features", fields), overrides=used, seed=int(chosen))

    def _task(self, source: NDArray[Any], labels: NDArray[Any], target: NDArray[Any]) -> Task:
        self.mean_ = self.scale_ = None
        if self.standardize:
            both = source if target is source else np.concatenate([source, target])
            self.mean_ = both.mean(0, dtype=np.float64)
            with np.errstate(over="ignore"):  # what is lost is told below
                deviation = both.std(0, dtype=np.float64)
            # The deviation of a constant feature is only a rounding error.
            rounding = 1e-7 if both.dtype == np.float32 else 1e-13
            constant = deviation <= rounding * np.abs(self.mean_)
            lost = ~np.isfinite(deviation)
            if lost.any():
                raise InputError(
                    f"column {int(np.argmax(lost))} has values that are too large to be squared;"
                    " scale it down"
                )
            self.scale_ = np.where(constant, 1.0, deviation)
        names = [label_text(label) for label in self.classes_]
        return make_task(
            array_domain(self._inputs(source), labels, classes=names, name="source"),
            array_domain(self._inputs(target), name="target"),
        )

    def _inputs(self, rows: NDArray[Any]) -> NDArray[np.float32]:
        if self.mean_ is not None:
            rows = (rows - self.mean_) / self.scale_
        with np.errstate(over="ignore"):
            made = rows.astype(np.float32)
        if not np.isfinite(made).all():
            row, column = np.argwhere(~np.isfinite(made))[0].tolist()
            raise InputError(
                f"row {row} has a value in column {column} that is too large for float32"
                f" ({rows[row, column]:.3g}{', standardized' if self.mean_ is not None else ''});"
                " scale it, or leave the row out"
            )
        return made

    def _fit(self, config: RunConfig, task: Task) -> None:
        """Train; with "auto" each candidate, of which the default validator chooses one."""
        if config.method != AUTO:
            self._keep(*self._train(config, task))
            return
        self.tried_, chosen = [], -math.inf
        failures = []
        with torch_threads(self._threads()):
            imbalanced = not config.overrides and looks_imbalanced(task)
        for method, overrides in auto_candidates(config.overrides, imbalanced=imbalanced):
            checked = check_overrides(method, overrides)
            candidate = dataclasses.replace(config, method=method, overrides=checked)
            tried: dict[str, Any] = {"method": method, "overrides": dict(overrides)}
            self.tried_.append(tried | {"score": None})
            try:
                trained, history = self._train(candidate, task)
            except InputError as error:  # the loss is not finite; the next one may do better
                failures.append(error)
                continue
            _, score = auto_score(trained.result)
            self.tried_[-1]["score"] = score
            if score is not None and score > chosen:
                chosen = score
                self._keep(trained, history)
        if chosen == -math.inf:
            raise failures[0]

    def _keep(self, trained: Trained, history: "_History") -> None:
        self.objective_ = trained.built.objective.cpu().double().eval()
        self.result_ = trained.result
        self.history_ = history.lines

    def _train(self, config: RunConfig, task: Task) -> tuple[Trained, "_History"]:
        history = _History(config.recipe.iterations, bool(self.verbose))
        fabric = self._fabric(config.recipe)
        with own_torch_state(), torch_threads(self._threads()):
            trained: Trained = train(config, task, fabric=fabric, observers=(history,))
        return trained, history

    def _threads(self) -> int:
        words = "a whole number of threads, -1 for as many as torch is set to use, or None"
        if self.n_jobs is None:
            return 1
        if self.n_jobs == 0:
            raise FieldError("n_jobs", 0, words)
        return check_count("n_jobs", self.n_jobs, words, -1)

    def _fabric(self, used: Recipe) -> AnyFabric:
        if self.device not in DEVICES:
            raise FieldError("device", self.device, f"one of {', '.join(DEVICES)}")
        found = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
        if not found.get(self.device, True):
            raise InputError(f"device is {self.device!r}, which torch does not find; use 'auto'")
        return make_fabric(DEVICES[self.device], precision=used.precision)

    def _forward(
        self, X: ArrayLike, sample_domain: ArrayLike | None = None
    ) -> tuple[Tensor, Tensor]:
        """Hidden features and logits of every row.

        They are computed in double precision, so that the probabilities of a row do not depend on
        the other rows.
        """
        check_is_fitted(self)
        rows = validate_data(self, _plain_rows(X), reset=False, dtype=(np.float64, np.float32))
        if sample_domain is not None:
            source_rows(sample_domain, len(rows))
        return self._outputs(rows)

    def _outputs(self, rows: NDArray[Any]) -> tuple[Tensor, Tensor]:
        """The same for rows that were checked."""
        with plain_modes(), torch.inference_mode(), torch_threads(self._threads()):
            outputs = [
                self.objective_.predict(torch.from_numpy(self._inputs(part)).double())
                for part in np.array_split(rows, range(ROWS_AT_ONCE, len(rows), ROWS_AT_ONCE))
            ]
        features, logits = zip(*outputs, strict=True)
        return torch.cat(features), torch.cat(logits)


class _History:
    """An observer that keeps the lines of log.jsonl and prints them where the user wants that."""

    def __init__(self, iterations: int, verbose: bool) -> None:
        self.iterations, self.verbose = iterations, verbose
        self.lines: list[dict[str, Any]] = []

    def logged(self, step: int, terms: Mapping[str, float]) -> None:
        self.lines.append({"step": step, "terms": dict(terms)})

    def evaluated(self, step: int, figures: Mapping[str, float]) -> None:
        if self.verbose:
            terms = self.lines[-1]["terms"]
            shown = {k: figures[k] for k in ("equity", "discriminability")}
            values = "  ".join(f"{name} {value:.3f}" for name, value in {**terms, **shown}.items())
            print(f"step {step}/{self.iterations}  {values}", flush=True)
        self.lines.append({"step": step, "evaluation": dict(figures)})


def _merged(named: dict[str, Any], others: Mapping[str, Any] | None, name: str) -> dict[str, Any]:
    """The parameters that have a name of their own, and those in the dictionary called `name`."""
    if not isinstance(others, Mapping | None):
        raise FieldError(name, others, "a dictionary, or None")
    twice = sorted(set(named) & set(others or {}))
    if twice:
        raise InputError(f"{twice[0]!r} is set in {name} and by itself; set it once")
    return named | dict(others or {})


def source_rows(sample_domain: ArrayLike, count: int) -> NDArray[np.bool_]:
    """An array that is True for the rows of the source."""
    domains = np.asarray(sample_domain)
    if domains.shape != (count,) or domains.dtype.kind not in "iuf":
        raise InputError(
            f"sample_domain is {domains.dtype} of shape {domains.shape}; expected a number for each"
            f" of {count} rows, positive for source and negative for target"
        )
    source: NDArray[np.bool_] = domains > 0
    if not (source | (domains < 0)).all():
        row = int(np.argmin(source | (domains < 0)))
        raise InputError(
            f"sample_domain is {domains[row]} in row {row}; expected a positive number for a source"
            " row and a negative one for a target row"
        )
    return source


def _is_source(sample_domain: ArrayLike, count: int) -> NDArray[np.bool_]:
    """The same, where both domains must have rows."""
    source = source_rows(sample_domain, count)
    if source.all() or not source.any():
        missing, sign = ("target", "negative") if source.all() else ("source", "positive")
        raise InputError(f"sample_domain has no {missing} rows; expected some {sign} numbers")
    return source


def _plain_rows(rows: Any) -> Any:
    """A tensor as numpy can read it: without its gradient, and not in bfloat16."""
    if not isinstance(rows, Tensor):
        return rows
    rows = rows.detach().cpu()
    return rows.float() if rows.dtype == torch.bfloat16 else rows


def _plain_labels(y: Any) -> Any:
    """A list of labels in which members of an Enum that are text are their text, of which numpy
    would keep as many letters of their names as it has."""
    if isinstance(y, list | tuple) and any(isinstance(label, Enum) for label in y):
        return [str.__str__(label) if isinstance(label, str) else label for label in y]
    return y


def _labels_of(y: ArrayLike, rows: NDArray[np.int64]) -> NDArray[Any]:
    """The labels of some rows. Where only placeholders in other rows made them an array of objects,
    they have a type of their own again."""
    labels = np.asarray(_safe_indexing(y, rows))
    if labels.dtype != object:
        return labels
    return np.asarray(labels.tolist()) if len(_kinds(labels)) == 1 else labels


def _kinds(labels: NDArray[Any]) -> set[str]:
    """The kinds of labels among objects; numbers of all types are of one kind."""
    kinds = {np.asarray(label).dtype.kind for label in labels.tolist()}
    return {"number" if kind in "iuf" else kind for kind in kinds}


def _classes(y: ArrayLike) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The sorted labels, and for each row the index of its label among them."""
    known = column_or_1d(y, warn=True)
    assert_all_finite(known, input_name="y")
    try:
        if known.dtype == object and len(_kinds(known)) > 1:
            raise TypeError
        check_classification_targets(known)
        classes, labels = np.unique(known, return_inverse=True)
    except TypeError:  # they cannot be sorted, or are bytes
        kinds = sorted({type(label).__name__ for label in known})
        many = f"several kinds ({', '.join(kinds)})" if len(kinds) > 1 else f"the kind {kinds[0]}"
        raise InputError(
            f"y holds labels of {many}; expected numbers or text, of one kind for every row"
        ) from None
    if len(classes) < 2:
        raise InputError("y has only 1 class in the source; expected at least 2 classes")
    return classes, labels.astype(np.int64)


def _fitting(config: RunConfig, task: Task) -> RunConfig:
    """The config with batches that are not larger than the smaller domain."""
    smaller = min(len(split(task.source, config)[0]), len(task.target))
    if smaller < 2:
        raise InputError(
            f"source and target have {len(task.source)} and {len(task.target)} rows; expected at"
            " least 2 of each"
        )
    size = min(config.recipe.batch_size, smaller)
    return dataclasses.replace(config, recipe=dataclasses.replace(config.recipe, batch_size=size))
