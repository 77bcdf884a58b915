"""Searches of scikit-learn that read no label of the target, with and without metadata routing."""

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import sklearn
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.fixes import parse_version
from tests.small_data import blobs

import equida
from equida import EquidaClassifier, scorers
from equida.errors import InputError
from equida.evaluation.validators import VALIDATORS
from equida.scorers import LabelFreeScorer, SourceFold

QUICK: dict[str, Any] = {"iterations": 40, "bottleneck": 16, "random_state": 0}


class Mixed:
    """Rows of both domains, mixed: three clusters, moved in the target; its y is a placeholder."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        centres = 4.0 * np.array([[1.0, 0.0], [-0.5, 0.9], [-0.5, -0.9]])
        true = np.tile(np.arange(3), 40)
        domain = np.repeat([1, -2], 60)
        rows = centres[true] + rng.normal(size=(120, 2)) + np.outer(domain < 0, [2.0, 1.0])
        order = rng.permutation(120)
        self.X, self.true, self.domain = rows[order], true[order], domain[order]
        # A placeholder that is one of the classes: nothing shows that it is none.
        self.y: NDArray[Any] = np.where(self.domain > 0, self.true, 0)
        self.params = {"sample_domain": self.domain}


@pytest.fixture(scope="module")
def data() -> Mixed:
    return Mixed()


def scores(data: Mixed, model: Any = None, **options: Any) -> NDArray[Any]:
    model = EquidaClassifier(**QUICK) if model is None else model
    options = {"cv": 3, "params": data.params, "error_score": "raise", **options}
    found: NDArray[Any] = cross_val_score(model, data.X, data.y, **options)
    return found


def test_placeholders_are_not_scored_where_metadata_is_routed(data: Mixed) -> None:
    """Before: two thirds of the target's placeholders count as mistakes."""
    with pytest.warns(UserWarning, match="also placeholders of target rows"):
        wrong = scores(data)
    assert wrong.mean() < 0.75
    with config_context(enable_metadata_routing=True), warnings.catch_warnings():
        warnings.simplefilter("error")
        right = scores(data)
    assert right.mean() > 0.95


def test_so_it_is_in_a_pipeline_where_scikit_learn_routes_to_its_score(data: Mixed) -> None:
    """Before 1.8 it routed nothing to the score of a pipeline; then at least a warning says so."""
    pipeline = make_pipeline(StandardScaler(), EquidaClassifier(**QUICK))
    with config_context(enable_metadata_routing=True), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        piped = scores(data, pipeline)
    if parse_version(sklearn.__version__) >= parse_version("1.8"):
        assert piped.mean() > 0.95
        assert not told
    else:
        assert any("score is not told" in str(each.message) for each in told) or piped.mean() > 0.95


def test_placeholders_that_are_no_class_are_refused(data: Mixed) -> None:
    y = np.where(data.domain > 0, data.true, -1)
    model = EquidaClassifier(**QUICK).fit(data.X, y, sample_domain=data.domain)
    with pytest.raises(InputError, match="y has the label -1, which no source row has"):
        model.score(data.X, y)
    only = data.domain < 0
    with pytest.raises(InputError, match=r"label -1.* and all rows are target rows"):
        model.score(data.X[only], y[only], sample_domain=data.domain[only])


def test_a_fold_of_nothing_but_placeholders_is_warned_of(data: Mixed) -> None:
    order = np.argsort(-data.domain, kind="stable")
    params = {"sample_domain": data.domain[order]}
    with config_context(enable_metadata_routing=True), pytest.warns(UserWarning, match="all rows"):
        cross_val_score(
            EquidaClassifier(**QUICK), data.X[order], data.y[order], params=params, cv=KFold(3)
        )


def test_the_source_is_folded_and_the_target_stays(data: Mixed) -> None:
    tested: list[int] = []
    for train, test in SourceFold(4).split(data.X, data.y, data.domain):
        assert (data.domain[test] > 0).all()
        assert set(np.flatnonzero(data.domain < 0)) <= set(train)
        assert not set(train) & set(test)
        assert len(train) + len(test) == 120
        assert np.bincount(data.y[test]).tolist() == [5, 5, 5]
        tested += test.tolist()
    assert sorted(tested) == np.flatnonzero(data.domain > 0).tolist()
    mixed = [SourceFold(2, shuffle=True, random_state=seed) for seed in (0, 0, 1)]
    first, same, other = (next(each.split(data.X, data.y, data.domain))[1] for each in mixed)
    assert (first == same).all()
    assert (first != other).any()
    with pytest.raises(InputError, match="not told which rows are the source's"):
        next(SourceFold().split(data.X, data.y))


def test_labels_of_target_rows_are_not_read_by_the_splitter(data: Mixed) -> None:
    y = np.where(data.domain > 0, data.true, np.nan)
    masked = [test.tolist() for _, test in SourceFold(3).split(data.X, y, data.domain)]
    assert masked == [test.tolist() for _, test in SourceFold(3).split(data.X, data.y, data.domain)]


def nuclear_norm(probs: NDArray[Any]) -> float:
    """By its formula, with singular values from numpy."""
    values = np.linalg.svd(probs, compute_uv=False)
    return float(values.sum() / np.sqrt(len(probs) * min(probs.shape)))


def test_a_scorer_looks_at_the_target_rows(data: Mixed) -> None:
    model = EquidaClassifier(**QUICK).fit(data.X, data.y, sample_domain=data.domain)
    target = data.X[data.domain < 0]
    probs = model.predict_proba(target)
    expected = {
        "bnm": nuclear_norm(probs),
        "entropy": float((probs * np.log(probs)).sum(1).mean()),
        "source_accuracy": np.mean(
            model.predict(data.X[data.domain > 0]) == data.true[data.domain > 0]
        ),
    }
    mean = probs.mean(0)
    expected["im"] = expected["entropy"] - float((mean * np.log(mean)).sum())
    for name, value in expected.items():
        scorer = getattr(scorers, name)
        assert scorer(model, data.X, data.y, sample_domain=data.domain) == pytest.approx(value)
        if name != "source_accuracy":  # the record is of the same rows
            assert scorer(model, data.X[:3], data.y[:3]) == pytest.approx(value, abs=1e-5)


def test_a_scorer_reads_the_record_of_the_weights_that_were_kept(data: Mixed) -> None:
    kept = {"evaluate_every": 10, "keep": "snd"}
    model = EquidaClassifier(**QUICK, recipe_params=kept)
    model.fit(data.X, data.y, sample_domain=data.domain)
    record = scorers.bnm(model, data.X, data.y)
    given = scorers.bnm(model, data.X, data.y, sample_domain=data.domain)
    assert record == pytest.approx(given, abs=1e-5)
    assert record != pytest.approx(model.result_["last"]["bnm"], abs=1e-3)


def test_every_validator_is_a_scorer(data: Mixed) -> None:
    model = EquidaClassifier(**QUICK).fit(data.X, data.y, sample_domain=data.domain)
    assert {*VALIDATORS, "im"} < set(dir(scorers))
    for name in VALIDATORS:
        if not VALIDATORS[name].costly:
            scorer = pickle.loads(pickle.dumps(getattr(equida.scorers, name)))
            assert isinstance(scorer, LabelFreeScorer)
            assert np.isfinite(scorer(model, data.X, data.y, sample_domain=data.domain))
    with pytest.raises(AttributeError, match=r"no attribute 'accuracy'; it has .*entropy"):
        _ = scorers.accuracy
    with pytest.raises(NotFittedError):
        scorers.bnm(EquidaClassifier(), data.X)


class Poison:
    """A label that cannot be looked at."""

    def _looked(self, *_: object) -> Any:
        raise AssertionError("a target label was read")

    __eq__ = __lt__ = __gt__ = __hash__ = __str__ = __repr__ = _looked
    __float__ = __int__ = __bool__ = __len__ = __iter__ = __array__ = _looked


def test_no_scorer_reads_a_target_label(data: Mixed) -> None:
    model = EquidaClassifier(**QUICK).fit(data.X, data.y, sample_domain=data.domain)
    y = np.empty(120, object)
    for row in range(120):
        y[row] = data.y[row] if data.domain[row] > 0 else Poison()
    for name in VALIDATORS:
        if not VALIDATORS[name].costly:
            getattr(scorers, name)(model, data.X, y, sample_domain=data.domain)
    assert model.score(data.X, y, sample_domain=data.domain) > 0.95


@pytest.mark.parametrize("routing", [False, True])
def test_a_search(data: Mixed, routing: bool) -> None:
    """Several scores at once, in a pipeline; the search for two values of the trade-off."""
    model = make_pipeline(StandardScaler(), EquidaClassifier(**QUICK))
    search = GridSearchCV(
        model,
        {"equidaclassifier__trade_off": [0.0, 5.0]},
        scoring={"entropy": scorers.entropy, "im": scorers.im},
        refit="entropy",
        cv=SourceFold(2),
        error_score="raise",
    )
    with config_context(enable_metadata_routing=routing), warnings.catch_warnings():
        warnings.simplefilter("error")
        if routing:
            search.fit(data.X, data.y, sample_domain=data.domain)
        else:
            fit = {"equidaclassifier__sample_domain": data.domain}
            search.fit(data.X, data.y, groups=data.domain, **fit)
    assert search.best_params_ == {"equidaclassifier__trade_off": 5.0}
    assert set(search.cv_results_) > {"mean_test_entropy", "mean_test_im"}


def test_a_search_with_the_target_apart(data: Mixed) -> None:
    source, target = data.X[data.domain > 0], data.X[data.domain < 0]
    search = GridSearchCV(
        EquidaClassifier(**QUICK), {"trade_off": [0.0, 5.0]}, scoring=scorers.bnm, cv=2
    ).fit(source, data.y[data.domain > 0], X_target=target)
    assert search.best_params_ == {"trade_off": 5.0}
    assert search.score(source) == pytest.approx(
        nuclear_norm(search.best_estimator_.predict_proba(target)), abs=1e-5
    )


def test_an_estimator_of_somebody_else(data: Mixed) -> None:
    known = data.domain > 0
    model = LogisticRegression().fit(data.X[known], data.y[known])
    found = scorers.bnm(model, data.X, data.y, sample_domain=data.domain)
    assert found == pytest.approx(nuclear_norm(model.predict_proba(data.X[~known])))
    with pytest.raises(InputError, match="'bnm' has no target rows; pass sample_domain="):
        scorers.bnm(model, data.X, data.y)


def test_predictions_take_sample_domain(data: Mixed) -> None:
    model = EquidaClassifier(**QUICK).fit(data.X, data.y, sample_domain=data.domain)
    for method in (model.predict, model.predict_proba):
        np.testing.assert_array_equal(method(data.X, sample_domain=data.domain), method(data.X))
        with pytest.raises(InputError, match="expected a number for each of 120 rows"):
            method(data.X, sample_domain=data.domain[:5])


def test_other_models_on_tables_with_text(data: Mixed) -> None:
    """A validator that does not look at the rows does not need them to be numbers."""
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"word": np.where(data.X[:, 0] > 0, "left", "right")})
    model = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(table, data.y)
    assert np.isfinite(scorers.entropy(model, table, data.y, data.domain))
    with pytest.raises(InputError, match="needs"):
        scorers.knn_balance(model, table, data.y, data.domain)


def test_a_pipeline_of_one_step(data: Mixed) -> None:
    model = EquidaClassifier(**QUICK).fit(data.X, data.y, sample_domain=data.domain)
    alone = scorers.snd(model, data.X, data.y, data.domain)
    assert scorers.snd(Pipeline([("model", model)]), data.X, data.y, data.domain) == alone


def test_agreement_with_cluster_labels_is_that_of_the_fit(data: Mixed) -> None:
    """New rows have no cluster labels, whether they are of the target or not."""
    keep = {"keep": "cluster_agreement"}
    with config_context(enable_metadata_routing=True):
        found = scores(
            data,
            EquidaClassifier(**QUICK, recipe_params=keep),
            scoring=scorers.cluster_agreement,
        )
    assert found.min() > 0.5
    model = EquidaClassifier(**QUICK).fit(data.X, data.y, sample_domain=data.domain)
    with pytest.raises(
        InputError, match=r"fit with recipe_params=\{'keep': 'cluster_agreement'\}$"
    ):
        scorers.cluster_agreement(model, data.X, data.y, sample_domain=data.domain)


def test_a_costly_scorer_says_how_to_fit() -> None:
    """Before: the advice could not be followed with X_target."""
    data = blobs()
    model = EquidaClassifier(iterations=4, batch_size=8)
    model.fit(data.source, data.labels, X_target=data.target)
    with pytest.raises(InputError, match=r"fit with recipe_params=\{'keep': 'dev'\}"):
        scorers.dev(model, data.source)
    kept = EquidaClassifier(
        iterations=4, batch_size=8, recipe_params={"keep": "dev", "holdout": 0.2}
    )
    search = GridSearchCV(kept, {"trade_off": [0.5, 1.0]}, scoring=scorers.dev, cv=2)
    search.fit(data.source, data.labels, X_target=data.target)
    assert np.isfinite(search.best_score_)


def test_a_scorer_of_the_fit_needs_an_estimator_that_has_it() -> None:
    """Before: the advice was sample_domain, with which it says the same."""
    data = blobs()
    model = LogisticRegression().fit(data.source, data.labels)
    domain = np.full(60, -1)
    with pytest.raises(InputError, match="LogisticRegression has none; choose another scorer"):
        scorers.cluster_agreement(model, data.target, sample_domain=domain)
