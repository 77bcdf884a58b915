"""Label-free scores for scikit-learn's searches, and a splitter that folds the source alone.

    search = GridSearchCV(EquidaClassifier(), {"trade_off": [0.5, 1.0, 2.0]}, scoring=scorers.bnm)
    search.fit(X, y, X_target=X_target)

There is a scorer for every label-free validator, by its name: `entropy`, `im` (short for
`information_maximization`), `bnm`, `snd`, `source_accuracy`, ... Higher is better. None of them
reads a label of the target.
"""

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.model_selection import BaseCrossValidator, StratifiedKFold
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing, column_or_1d
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import _num_samples, check_is_fitted

from equida.errors import InputError
from equida.estimator import EquidaClassifier, source_rows
from equida.evaluation.predictions import DomainPredictions, InputRows
from equida.evaluation.validators import VALIDATORS, Validator
from equida.training.evaluate import kept_figure

SHORT = {"im": "information_maximization"}


class LabelFreeScorer(BaseEstimator):
    """A callable `scorer(estimator, X, y=None, sample_domain=None)`, as scikit-learn wants it.

    Where `sample_domain` says that target rows are among X, the predictions for them are scored,
    with those for the source rows where the validator needs these. Otherwise the target that the
    model was fitted with counts: an `EquidaClassifier` has recorded the score of its predictions.
    Labels of target rows are never read.

    scikit-learn passes `sample_domain` to a scorer where metadata routing is enabled.

    Args:
        validator: the name of a label-free validator (`equida.evaluation.validators`).

    >>> y = np.arange(12) % 2
    >>> X = 4.0 * np.eye(2)[y]
    >>> model = EquidaClassifier(iterations=2, random_state=0).fit(X, y, X_target=X)
    >>> 0.0 < LabelFreeScorer("bnm")(model, X) <= 1.0
    True
    """

    __metadata_request__score: ClassVar = {"sample_domain": True, "estimator": UNUSED}

    def __init__(self, validator: str) -> None:
        self.validator = validator

    def score(
        self,
        estimator: Any,
        X: ArrayLike,
        y: ArrayLike | None = None,
        sample_domain: ArrayLike | None = None,
    ) -> float:
        """The score of a fitted estimator; a method of its own, since metadata is routed to it."""
        validator = VALIDATORS[SHORT.get(self.validator, self.validator)]
        if sample_domain is None:
            source = np.zeros(0, bool)
        else:
            source = source_rows(sample_domain, _num_samples(X))
        known, unknown = np.flatnonzero(source), np.flatnonzero(~source)
        if validator.name == "source_accuracy" and y is not None:
            # Held-out rows of the source say more than those that the model has learned.
            return _accuracy(estimator, X, y, None if sample_domain is None else known)
        if not len(unknown) or "cluster_labels" in validator.needs:  # new rows have no such labels
            return _recorded(estimator, validator)
        target = _predictions(estimator, _safe_indexing(X, unknown), None)
        seen = None
        if "source" in validator.needs and len(known) and y is not None:
            seen = _predictions(estimator, _safe_indexing(X, known), _safe_indexing(y, known))
        return validator.score(target, seen)

    __call__ = score


class SourceFold(BaseCrossValidator):
    """Folds of the source rows, with all target rows in every training set.

    A fold's test rows are source rows, so that no label of a target row is scored, and every model
    adapts to the whole target. Classes are spread evenly over the folds.

    Args:
        n_splits: number of folds, at least 2.
        shuffle: whether source rows are mixed before they are folded.
        random_state: the seed of the mixing.

    >>> domain = np.array([1, 1, -1, 1, 1, -1])
    >>> for train, test in SourceFold(2).split(np.zeros((6, 1)), [0, 0, -1, 1, 1, -1], domain):
    ...     print(train, test)
    [1 2 4 5] [0 3]
    [0 2 3 5] [1 4]
    """

    __metadata_request__split: ClassVar = {"sample_domain": True}

    def __init__(
        self, n_splits: int = 5, *, shuffle: bool = False, random_state: Any = None
    ) -> None:
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def split(
        self,
        X: ArrayLike,
        y: ArrayLike,
        groups: ArrayLike | None = None,
        sample_domain: ArrayLike | None = None,
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Row numbers of training and test rows for each fold.

        Args:
            X: rows of both domains.
            y: labels; those of target rows are not read.
            groups: the domains of the rows where metadata routing is not enabled, since
                scikit-learn then passes nothing else to a splitter.
            sample_domain: the domains of the rows: positive for source, negative for target.
        """
        domains = groups if sample_domain is None else sample_domain
        if domains is None:
            raise InputError(
                "SourceFold is not told which rows are the source's; pass groups=sample_domain, or "
                "enable scikit-learn's metadata routing and pass params={'sample_domain': ...}"
            )
        source = source_rows(domains, _num_samples(X))
        rows, rest = np.flatnonzero(source), np.flatnonzero(~source)
        folds = StratifiedKFold(self.n_splits, shuffle=self.shuffle, random_state=self.random_state)
        labels = np.asarray(_safe_indexing(y, rows)).astype(str)
        for train, test in folds.split(np.zeros(len(rows)), labels):
            yield np.sort(np.concatenate([rows[train], rest])), rows[test]

    def get_n_splits(
        self, X: Any = None, y: Any = None, groups: Any = None, sample_domain: Any = None
    ) -> int:
        """The number of folds."""
        return self.n_splits


def _predictions(estimator: Any, X: ArrayLike, y: ArrayLike | None) -> DomainPredictions:
    """What a fitted estimator says of rows, with all that it can tell a validator."""
    if isinstance(estimator, Pipeline) and isinstance(estimator[-1], EquidaClassifier):
        X, estimator = (estimator[:-1].transform(X) if len(estimator) > 1 else X), estimator[-1]
    if isinstance(estimator, EquidaClassifier):
        return estimator.predictions(X, y)
    if y is not None:
        raise InputError("a scorer that looks at the source needs an EquidaClassifier")
    probs = torch.from_numpy(np.asarray(estimator.predict_proba(X), np.float64))
    log_probs = probs.clamp_min(torch.finfo(probs.dtype).tiny).log()
    rows = np.asarray(X)
    numeric = rows.ndim == 2 and rows.dtype.kind in "fiub"
    inputs = InputRows(torch.from_numpy(rows)) if numeric else None
    return DomainPredictions(log_probs, inputs=inputs)


def _recorded(estimator: Any, validator: Validator) -> float:
    """The score of the target that an EquidaClassifier was fitted with, of the weights it kept."""
    name, of_fit = validator.name, "cluster_labels" in validator.needs
    model = estimator[-1] if isinstance(estimator, Pipeline) else estimator
    if not isinstance(model, EquidaClassifier):
        if of_fit:
            raise InputError(
                f"scorer {name!r} is of the cluster labels that an EquidaClassifier finds when it"
                f" is fitted, and {type(model).__name__} has none; choose another scorer"
            )
        raise InputError(
            f"scorer {name!r} has no target rows; pass sample_domain= with target rows among X, "
            "which scikit-learn does where metadata routing is enabled"
        )
    check_is_fitted(model)
    figure = kept_figure(model.result_, name)
    if figure is None:
        others = ", or pass sample_domain= with target rows among X"
        raise InputError(
            f"scorer {name!r} was not computed while the model was fitted; fit with "
            f"recipe_params={{'keep': {name!r}}}" + ("" if of_fit else others)
        )
    return figure


def _accuracy(
    estimator: Any, X: ArrayLike, y: ArrayLike, source: NDArray[np.int64] | None
) -> float:
    if source is None:
        return float(estimator.score(X, y))
    if not len(source):
        raise InputError("scorer 'source_accuracy' has no source rows; use SourceFold to fold them")
    predicted = np.asarray(estimator.predict(_safe_indexing(X, source)))
    return float(np.mean(predicted == column_or_1d(_safe_indexing(y, source))))


def __getattr__(name: str) -> LabelFreeScorer:
    if name in VALIDATORS or name in SHORT:
        return LabelFreeScorer(name)
    known = ", ".join(__dir__())
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {known}")


def __dir__() -> list[str]:
    return sorted({"LabelFreeScorer", "SourceFold", *VALIDATORS, *SHORT})
