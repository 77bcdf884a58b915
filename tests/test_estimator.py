"""EquidaClassifier: scikit-learn's contract, and target labels that nobody reads."""

import pickle
import subprocess
import sys
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted
from tests.small_data import blobs

import equida
from equida import EquidaClassifier, scorers
from equida.data import array_domain, make_task
from equida.errors import InputError
from equida.training.config import RunConfig
from equida.training.loop import train
from equida.training.recipe import recipe

QUICK: dict[str, Any] = {"iterations": 30, "bottleneck": 16, "random_state": 0}
Data = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]


@pytest.fixture
def shifted() -> Data:
    """Source rows and labels, target rows and labels: three clusters, moved by their radius."""
    rng = np.random.default_rng(0)
    centres = 4.0 * np.array([[1.0, 0.0], [-0.5, 0.9], [-0.5, -0.9]])
    y = np.repeat(np.array(["c", "a", "b"]), 20)
    source = np.repeat(centres, 20, 0) + rng.normal(size=(60, 2))
    target = np.repeat(centres, 20, 0) + rng.normal(size=(60, 2)) + [2.0, 1.0]
    return source, y, target, y.copy()


# No exceptions: every check must pass.
@pytest.mark.filterwarnings("ignore:there are no target rows")
@parametrize_with_checks([EquidaClassifier(iterations=30, bottleneck=64)])
def test_scikit_learn_checks(estimator: BaseEstimator, check: Any) -> None:
    check(estimator)


class Poison:
    """A label that cannot be looked at."""

    def _looked(self, *_: object) -> Any:
        raise AssertionError("a target label was read")

    __eq__ = __lt__ = __gt__ = __hash__ = __str__ = __repr__ = _looked
    __float__ = __int__ = __bool__ = __len__ = __iter__ = __array__ = _looked


def both(data: Data, masked: Any) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.int64]]:
    """The two domains as one array, mixed, with `masked` for each target label."""
    source, y, target, _ = data
    labels = np.empty(len(y) + len(target), object)
    labels[: len(y)] = y
    for row in range(len(y), len(labels)):
        labels[row] = masked
    domain = np.repeat([1, -2], [len(source), len(target)])
    order = np.random.default_rng(1).permutation(len(domain))
    return np.concatenate([source, target])[order], labels[order], domain[order]


@pytest.mark.parametrize("masked", [-1, float("nan"), None, "a", Poison()], ids=type)
@pytest.mark.parametrize("container", [np.asarray, list])
def test_target_labels_are_never_read(shifted: Data, masked: Any, container: Any) -> None:
    X, _, domain = both(shifted, -1)
    right = both(shifted, "b")[1]
    expected = EquidaClassifier(**QUICK).fit(X, right, sample_domain=domain)
    y = both(shifted, masked)[1]
    given = y if container is np.asarray else [y[i] for i in range(len(y))]
    model = EquidaClassifier(**QUICK).fit(X, given, sample_domain=domain)
    np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert "accuracy" not in model.result_["last"]
    assert "oracle" not in model.result_["picks"]


def test_target_labels_may_be_nan_among_numbers(shifted: Data) -> None:
    X, y, domain = both(shifted, "a")
    numbers = np.where(domain > 0, np.searchsorted(["a", "b", "c"], y.astype(str)) + 5.0, np.nan)
    model = EquidaClassifier(**QUICK).fit(X, numbers, sample_domain=domain)
    assert model.classes_.tolist() == [5.0, 6.0, 7.0]
    # Whole numbers are named without the fraction that the placeholders gave them.
    prior = {5: 0.2, 6: 0.2, 7: 0.6}
    model = EquidaClassifier(prior=prior, method_params={"prior_strength": 1}, **QUICK).fit(
        X, numbers, sample_domain=domain
    )
    assert model.result_["aims"]["nsm"]["aim"] == [0.2, 0.2, 0.6]


def test_whole_numbers_and_placeholders_in_an_array_of_objects(shifted: Data) -> None:
    X, y, domain = both(shifted, None)
    numbers = np.array([None if label is None else "abc".index(label) for label in y], object)
    model = EquidaClassifier(**QUICK).fit(X, numbers, sample_domain=domain)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.score(X, numbers, sample_domain=domain) > 0.9


def test_tensors_of_a_training_loop(shifted: Data) -> None:
    """Before: numpy's refusal of a gradient, and of bfloat16."""
    source, y, target, _ = shifted
    tensors = [torch.tensor(rows, requires_grad=True) for rows in (source, target)]
    model = EquidaClassifier(**QUICK).fit(tensors[0], y, X_target=tensors[1])
    expected = EquidaClassifier(**QUICK).fit(source, y, X_target=target)
    np.testing.assert_array_equal(model.predict_proba(tensors[1]), expected.predict_proba(target))
    assert model.predict(tensors[1].bfloat16()).shape == (len(target),)


def test_labels_as_a_column(shifted: Data) -> None:
    """scikit-learn warns of a column, and takes it for its values."""
    source, y, target, _ = shifted
    X, domain = np.concatenate([source, target]), np.repeat([1, -1], [len(source), len(target)])
    column = np.concatenate([y, y])[:, None]
    with pytest.warns(DataConversionWarning):
        model = EquidaClassifier(**QUICK).fit(X, column, sample_domain=domain)
    accuracy = model.score(source, y, sample_domain=domain[:60])
    with pytest.warns(UserWarning, match="not told which rows"):
        assert model.score(source, y[:, None]) == accuracy
    assert scorers.source_accuracy(model, X, column, domain) == accuracy
    dev = scorers.dev(model, X, np.concatenate([y, y]), domain)
    assert scorers.dev(model, X, column, domain) == dev


def test_x_target_is_the_same_as_sample_domain(shifted: Data) -> None:
    source, y, target, _ = shifted
    domain = np.repeat([3, -1], 60)
    one = EquidaClassifier(**QUICK).fit(source, y, X_target=target)
    two = EquidaClassifier(**QUICK).fit(
        np.concatenate([source, target]), np.concatenate([y, y]), sample_domain=domain
    )
    np.testing.assert_array_equal(one.predict_proba(target), two.predict_proba(target))


def test_it_is_the_training_loop_that_trains(shifted: Data) -> None:
    source, y, target, _ = shifted
    model = EquidaClassifier(**QUICK, standardize=False, r=0.3).fit(source, y, X_target=target)
    overrides = {"iterations": 30, "bottleneck": 16}
    trained = train(
        RunConfig("nsm", recipe("features", overrides), overrides={"r": 0.3}, seed=0),
        make_task(array_domain(source, y, name="s"), array_domain(target, name="t")),
    )
    np.testing.assert_allclose(
        model.predict_proba(target), trained.predictions.log_probs.exp().numpy(), atol=1e-5
    )
    assert model.result_["last"] == pytest.approx(trained.result["last"], abs=1e-5)
    assert model.history_[-1] == {"step": 30, "evaluation": model.result_["last"]}
    assert set(model.history_[0]["terms"]) == {"cross_entropy", "nsm"}


def test_without_a_target_it_is_source_only_and_says_so(shifted: Data) -> None:
    source, y, _, _ = shifted
    with pytest.warns(UserWarning, match="nothing is adapted; pass sample_domain"):
        plain = EquidaClassifier(**QUICK).fit(source, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asked = EquidaClassifier("source_only", **QUICK).fit(source, y)
    assert plain.result_["method"] == "source_only"
    np.testing.assert_array_equal(plain.predict_proba(source), asked.predict_proba(source))


@pytest.mark.parametrize("by_domain", [True, False])
def test_the_target_is_looked_at_as_by_adapt(by_domain: bool, tmp_path: Path) -> None:
    """The shares and the harm check of `equida.adapt` on the same rows, without a target label."""
    random = np.random.default_rng(0)
    centres = 4 * random.normal(size=(3, 6))
    y, hidden = np.repeat([0, 1, 2], 40), np.repeat([0, 1, 2], [70, 8, 6])
    X, target = (centres[each] + random.normal(size=(len(each), 6)) for each in (y, hidden))
    names = np.array(["b", "a", "c"])  # sorted otherwise than the rows are
    model = EquidaClassifier("bnm", iterations=20, random_state=0, standardize=False)
    model.fit(X, names[y], X_target=target)
    if by_domain:
        everything = np.concatenate([X, target])
        labels = np.concatenate([names[y], np.full(len(target), "?")])
        domains = np.repeat([1, -1], [len(X), len(target)])
        look = model.look_at_target(everything, labels, sample_domain=domains)
    else:
        look = model.look_at_target(X, names[y], X_target=target)
    run = equida.adapt(
        (X, np.array([1, 0, 2])[y]), target, method="bnm", out=tmp_path,
        recipe_params={"iterations": 20, "batch_size": 36}, progress=False,
    )  # fmt: skip
    assert run.result is not None
    assert look.shares["estimated"] == pytest.approx(run.class_shares["estimated"], abs=1e-4)
    assert look.shares["estimated"] == pytest.approx([8 / 84, 70 / 84, 6 / 84], abs=0.03)
    predicted = [np.mean(model.predict(target) == name) for name in "abc"]
    assert look.shares["predicted"] == pytest.approx(predicted, abs=1e-4)
    assert set(look.harm) == set(run.result["harm"])
    assert look.harm["source_only"] == pytest.approx(run.result["harm"]["source_only"], abs=1e-3)
    assert look.remarks[0].endswith('equal class sizes may hurt; try prior="estimate"')
    assert "estimated" not in model.result_["shares"]


def test_a_look_needs_a_target_and_known_labels(shifted: Data) -> None:
    X, y, target, _ = shifted
    model = EquidaClassifier(**QUICK).fit(X, y, X_target=target)
    with pytest.raises(InputError, match="there are no target rows"):
        model.look_at_target(X, y)
    with pytest.raises(InputError, match="which fit has not seen"):
        model.look_at_target(X, np.where(np.arange(len(y)) == 0, "other", y), X_target=target)


def test_pickled_and_cloned(shifted: Data) -> None:
    source, y, target, _ = shifted
    model = EquidaClassifier("mcd", **QUICK).fit(source, y, X_target=target)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(target), model.predict_proba(target))
    assert again.result_ == model.result_
    fresh = clone(model)
    assert not hasattr(fresh, "classes_")
    refitted = fresh.fit(source, y, X_target=target)
    np.testing.assert_array_equal(refitted.predict_proba(target), model.predict_proba(target))


def test_in_a_pipeline(shifted: Data) -> None:
    X, y, domain = both(shifted, -1)
    scaled = (X - X.mean(0)) / X.std(0)
    fixed = {**QUICK, "standardize": False}
    expected = EquidaClassifier(**fixed).fit(scaled, y, sample_domain=domain).predict(scaled)
    pipeline = Pipeline([("scale", StandardScaler()), ("clf", EquidaClassifier(**fixed))])
    pipeline.fit(X, y, clf__sample_domain=domain)
    assert (pipeline.predict(X) == expected).all()
    with config_context(enable_metadata_routing=True):
        routed = make_pipeline(
            StandardScaler(), EquidaClassifier(**fixed).set_fit_request(sample_domain=True)
        )
        routed.fit(X, y, sample_domain=domain)
    assert (routed.predict(X) == expected).all()


def test_grid_search_over_the_methods_parameters(shifted: Data) -> None:
    source, y, target, _ = shifted
    search = GridSearchCV(
        EquidaClassifier(**{**QUICK, "iterations": 5}),
        {"trade_off": [0.5, 2.0], "method_params": [None, {"eps": 1e-6}]},
        cv=2,
        error_score="raise",
    ).fit(source, y, X_target=target)
    assert len(search.cv_results_["params"]) == 4
    label_free = GridSearchCV(
        EquidaClassifier(**{**QUICK, "iterations": 5}),
        {"trade_off": [0.0, 50.0]},
        scoring=lambda model, X, y: model.result_["last"]["discriminability"],
        cv=2,
        error_score="raise",
    ).fit(source, y, X_target=target)
    assert label_free.best_params_ == {"trade_off": 50.0}


def test_cross_validation_slices_sample_domain(shifted: Data) -> None:
    X, y, domain = both(shifted, "b")
    model = EquidaClassifier(**{**QUICK, "iterations": 5})
    with pytest.warns(UserWarning, match="score is not told which rows are the source's"):
        scores = cross_val_score(
            model, X, y.astype(str), params={"sample_domain": domain}, cv=2, error_score="raise"
        )
    assert len(scores) == 2


def test_feature_names_and_hidden_features(shifted: Data) -> None:
    pandas = pytest.importorskip("pandas")
    source, y, target, _ = shifted
    frame = pandas.DataFrame(source, columns=["width", "height"])
    moved = pandas.DataFrame(target, columns=["width", "height"])
    model = EquidaClassifier(**QUICK).fit(frame, pandas.Series(y), X_target=moved)
    assert model.feature_names_in_.tolist() == ["width", "height"]
    assert model.transform(moved).shape == (60, 16)
    assert model.get_feature_names_out()[0] == "equidaclassifier0"
    with pytest.raises(ValueError, match="feature names"):
        model.fit(frame, y, X_target=moved[["height", "width"]])


@pytest.mark.parametrize("rows", [2, 5])
def test_a_batch_shrinks_to_the_smaller_domain(shifted: Data, rows: int) -> None:
    source, y, target, _ = shifted
    model = EquidaClassifier(**QUICK).fit(source, y, X_target=target[:rows])
    assert model.predict(target).shape == (60,)
    held = EquidaClassifier(**QUICK, recipe_params={"holdout": 0.5})
    assert held.fit(source[15:45], y[15:45], X_target=target).result_["last"]["step"] == 30


def test_weights_that_a_validator_liked_best(shifted: Data) -> None:
    """Soft neighbourhood density likes the undecided predictions of the beginning best."""
    source, y, target, _ = shifted
    kept = {"evaluate_every": 10, "keep": "snd"}
    model = EquidaClassifier(**QUICK, recipe_params=kept).fit(source, y, X_target=target)
    evaluations = [line["evaluation"] for line in model.history_ if "evaluation" in line]
    assert model.result_["picks"]["snd"] == evaluations[0] != evaluations[-1]
    probs = model.predict_proba(target)
    negative_entropy = float((probs * np.log(probs)).sum(1).mean())
    assert negative_entropy == pytest.approx(evaluations[0]["entropy"], abs=1e-5)


@pytest.mark.parametrize("keep", ["last", "snd"])
def test_fitting_writes_no_file(
    shifted: Data, keep: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, y, target, _ = shifted

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a folder was made")

    monkeypatch.setattr(Path, "mkdir", refuse)
    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    monkeypatch.chdir(tmp_path)
    EquidaClassifier(**QUICK, recipe_params={"evaluate_every": 10, "keep": keep}).fit(
        source, y, X_target=target
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("parameters", "fit", "message"),
    [
        ({"method": "nms"}, {}, "did you mean 'nsm'"),
        ({"trade": 1}, {}, None),
        ({"method": "bnm", "r": 0.5}, {}, "'bnm' has no hyper-parameter 'r'"),
        ({"r": 2.0}, {}, "nsm.r is 2.0; it must be a number from 0 to 1"),
        ({"method": "cdan+nsm", "trade_off": 1.0}, {}, "write cdan.trade_off or nsm.trade_off"),
        ({"r": 0.5, "method_params": {"r": 0.1}}, {}, "'r' is set in method_params and by itself"),
        ({"recipe_params": {"iterations": 2}}, {}, "'iterations' is set in recipe_params and"),
        ({"recipe_params": {"epochs": 2}}, {}, "recipe has no field 'epochs'"),
        ({"method": None}, {}, "method is None; it must be the name of a method"),
        ({"method_params": "r"}, {}, "method_params is 'r'; it must be a dictionary"),
        ({"iterations": 9.5}, {}, "iterations is 9.5; it must be a whole number"),
        ({"dropout": None}, {}, "dropout is None; it must be a number"),
        ({"iterations": 0}, {}, r"iterations is 0; it must be a whole number from 1 to 1e\+09"),
        ({"device": "gpu0"}, {}, "device is 'gpu0'; it must be one of auto, cpu, cuda, mps"),
        ({}, {"sample_domain": np.ones(60)}, "sample_domain has no target rows"),
        ({}, {"sample_domain": -np.ones(60)}, "sample_domain has no source rows"),
        ({}, {"sample_domain": np.arange(60)}, "sample_domain is 0 in row 0"),
        ({}, {"sample_domain": np.full(60, np.nan)}, "sample_domain is nan in row 0"),
        ({}, {"sample_domain": ["s"] * 60}, "expected a number for each of 60 rows"),
        ({}, {"sample_domain": np.ones(3)}, r"of shape \(3,\); expected a number"),
        ({}, {"sample_domain": np.ones(60), "X_target": np.ones((2, 2))}, "give one of them"),
        ({}, {"X_target": np.ones((5, 3))}, "X has 3 features"),
        ({}, {"X_target": np.full((5, 2), np.nan)}, "NaN"),
        ({}, {"X_target": np.ones((1, 2))}, "60 and 1 rows; expected at least 2"),
    ],
)
def test_what_a_user_can_get_wrong(
    shifted: Data, parameters: dict[str, Any], fit: dict[str, Any], message: str | None
) -> None:
    source, y, target, _ = shifted
    if message is None:
        with pytest.raises(TypeError, match="trade"):
            EquidaClassifier(**parameters)
        return
    with pytest.raises(ValueError, match=message) as caught:
        EquidaClassifier(**parameters).fit(source, y, **(fit or {"X_target": target}))
    assert "\n" not in str(caught.value) or caught.type is not InputError


def test_it_leaves_no_trace(shifted: Data, capfd: pytest.CaptureFixture[str]) -> None:
    """Nothing is printed or warned of, and torch's generator and threads are as before."""
    source, y, target, _ = shifted
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        EquidaClassifier(**QUICK, n_jobs=2).fit(source, y, X_target=target).predict(target)
    assert torch.equal(torch.rand(3), expected)
    assert torch.get_num_threads() == 1
    assert capfd.readouterr() == ("", "")
    EquidaClassifier(**QUICK, verbose=1).fit(source, y, X_target=target)
    lines = capfd.readouterr().out.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("step 30/30  cross_entropy ")


def test_it_fits_inside_a_slurm_job(shifted: Data, monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook on a cluster is one process, however many tasks its job has."""
    for name, value in {"NTASKS": 4, "JOB_NAME": "x", "PROCID": 1, "LOCALID": 1}.items():
        monkeypatch.setenv(f"SLURM_{name}", str(value))
    source, y, target, _ = shifted
    model = EquidaClassifier(**{**QUICK, "iterations": 2}).fit(source, y, X_target=target)
    assert model.result_["last"]["step"] == 2


def test_numbers_that_a_search_draws(shifted: Data) -> None:
    source, y, target, _ = shifted
    drawn: dict[str, Any] = {"iterations": np.float64(30.0), "bottleneck": np.int64(16)}
    model = EquidaClassifier(**{**QUICK, **drawn}).fit(source, y, X_target=target)
    plain = EquidaClassifier(**QUICK).fit(source, y, X_target=target)
    np.testing.assert_array_equal(model.predict_proba(target), plain.predict_proba(target))


def test_importing_equida_is_light() -> None:
    code = "import sys, equida; print('torch' in sys.modules or 'sklearn' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout == "False\n"


@pytest.mark.parametrize(
    "parameters",
    [
        {"trade_off": np.int64(2)},
        {"r": np.float32(0.5)},
        {"method": "cdan", "method_params": {"entropy": np.bool_(True)}},
        {"recipe_params": {"holdout": np.float64(0.2), "accumulate": np.int64(2)}},
    ],
)
def test_numbers_of_numpy_are_numbers(parameters: dict[str, Any]) -> None:
    """Searches draw them."""
    random = np.random.default_rng(0)
    x, y = random.normal(size=(60, 3)), np.arange(60) % 3
    model = EquidaClassifier(iterations=3, batch_size=8, random_state=0, **parameters)
    assert model.fit(x, y, X_target=x + 1.0).predict(x).shape == (60,)


def test_what_is_wrong_with_the_target_is_said_of_the_target() -> None:
    x, y = np.eye(6), np.arange(6) % 2
    with pytest.raises(ValueError, match="X_target: Input X contains infinity"):
        EquidaClassifier().fit(x, y, X_target=x + np.inf)


def test_class_shares_to_aim_at(shifted: Data) -> None:
    """An estimate, and shares by label; the target's labels are not there to be used."""
    source, y, target, _ = shifted
    few = np.concatenate([target[:20], target[20:24]])
    model = EquidaClassifier(prior="estimate", **QUICK).fit(source, y, X_target=few)
    aim = dict(zip(model.classes_, model.result_["aims"]["nsm"]["aim"], strict=True))
    assert aim["c"] > 0.5 > 0.25 > aim["b"]
    given = EquidaClassifier(
        "bnm", prior={"a": 0.2, "b": 0.2, "c": 0.6}, method_params={"prior_strength": 1}, **QUICK
    )
    assert given.fit(source, y, X_target=few).result_["aims"]["bnm"]["aim"] == [0.2, 0.2, 0.6]
    with pytest.raises(InputError, match="target has no labels; use estimate"):
        EquidaClassifier(prior="oracle", **QUICK).fit(source, y, X_target=few)


@pytest.mark.parametrize("n_jobs", [float("inf"), float("nan"), 1.5, 10**30, -2, "all", True])
def test_threads_that_no_machine_has(shifted: Data, n_jobs: Any) -> None:
    source, y, target = shifted[:3]
    with pytest.raises(InputError, match=r"n_jobs is .*; it must be a whole number of threads"):
        EquidaClassifier(**QUICK, n_jobs=n_jobs).fit(source, y, X_target=target)


def test_auto_takes_the_setting_that_the_validator_prefers() -> None:
    random = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = 2 * random.normal(size=(3, 6))[y] + random.normal(size=(60, 6))
    usual: dict[str, Any] = {"iterations": 6, "bottleneck": 4, "random_state": 0}
    model = EquidaClassifier("auto", **usual).fit(X, y, X_target=X + 0.8)
    found = [(one["method"], one["overrides"]) for one in model.tried_]
    assert found == [("nsm", {}), ("nsm", {"r": 1.0}), ("bnm", {}), ("clusters+nsm", {})]
    alone = [
        EquidaClassifier(method, method_params=overrides, **usual).fit(X, y, X_target=X + 0.8)
        for method, overrides in found
    ]
    scores = [each.result_["last"]["knn_balance"] for each in alone]
    assert [one["score"] for one in model.tried_] == scores
    best = alone[scores.index(max(scores))]
    assert model.result_["method"] == best.result_["method"]
    np.testing.assert_array_equal(model.predict_proba(X), best.predict_proba(X))
    model.set_params(method="bnm").fit(X, y, X_target=X + 0.8)
    assert not hasattr(model, "tried_")  # before: what the earlier fit had tried
    with pytest.raises(InputError, match="r is given, but the method 'auto' chooses it"):
        EquidaClassifier("auto", r=1.0).fit(X, y, X_target=X)


def test_auto_aims_at_estimated_shares_where_the_target_looks_imbalanced() -> None:
    random = np.random.default_rng(0)
    y, rare = np.arange(60) % 3, np.repeat([0, 1, 2], [48, 6, 6])
    centres = 4 * random.normal(size=(3, 6))
    X, target = (centres[labels] + random.normal(size=(60, 6)) for labels in (y, rare))
    usual: dict[str, Any] = {"iterations": 6, "bottleneck": 4, "random_state": 0}
    model = EquidaClassifier("auto", **usual).fit(X, y, X_target=target)
    assert [one["method"] for one in model.tried_] == ["nsm", "nsm", "bnm"]
    assert [one["overrides"].get("prior") for one in model.tried_] == ["estimate"] * 3
    aims = list(model.result_["aims"].values())
    np.testing.assert_allclose(aims[0]["aim"], [0.8, 0.1, 0.1], atol=0.1)
    equal = EquidaClassifier("auto", prior="uniform", **usual).fit(X, y, X_target=target)
    assert {one["overrides"].get("prior") for one in equal.tried_} == {"uniform"}


def test_a_prior_is_one_of_compositions_and_of_auto() -> None:
    random = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = random.normal(size=(3, 6))[y] + random.normal(size=(60, 6))
    shares, full = [0.6, 0.2, 0.2], {"prior_strength": 1}
    usual: dict[str, Any] = {"iterations": 6, "bottleneck": 4, "random_state": 0}
    for method in ("clusters+nsm", "auto"):
        model = EquidaClassifier(method, prior=shares, method_params=full, **usual)
        model.fit(X, y, X_target=X + 0.8)
        aims = {part: aim["aim"] for part, aim in model.result_["aims"].items()}
        assert aims == dict.fromkeys(model.result_["method"].split("+"), shares)
        if method == "auto":
            assert len(model.tried_) > 1
            assert all("prior" in one["overrides"] for one in model.tried_)
        with pytest.raises(InputError, match=r"prior_strength is 1, but the prior is 'estimate'"):
            model.set_params(prior="estimate").fit(X, y, X_target=X)


ROWS = np.random.default_rng(0).normal(size=(20, 4))
LABELS = np.arange(20) % 3


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            np.array(["cat", "dog", None, "cat"] * 5, object),
            r"y holds labels of several kinds \(NoneType, str\)",
        ),
        (np.array(["cat", "dog", np.nan, "cat"] * 5, object), "NaN"),
        (np.array([1, "1", "x", 1] * 5, object), r"several kinds \(int, str\)"),
        (np.array([True, 2, 3, 2] * 5, object), r"several kinds \(bool, int\)"),
        (np.array([b"a", b"b", b"a", b"b"] * 5), r"the kind bytes_?; expected numbers or text"),
    ],
)
def test_labels_are_checked_alike_however_the_target_is_given(given: Any, said: str) -> None:
    """Before: with sample_domain, missing labels were a class, and kinds were merged."""
    model = EquidaClassifier(iterations=2)
    domain = np.repeat([1, -1], len(given))
    kind = ValueError if said == "NaN" else InputError  # scikit-learn refuses it
    with pytest.raises(kind, match=said):
        model.fit(ROWS, given, X_target=ROWS)
    with pytest.raises(kind, match=said):
        model.fit(np.concatenate([ROWS, ROWS]), np.concatenate([given, given]), domain)


def test_labels_keep_their_type() -> None:
    """Before: with sample_domain, uint8 became int64."""
    labels = (np.arange(20) % 2).astype(np.uint8)
    model = EquidaClassifier(iterations=2)
    model.fit(np.concatenate([ROWS, ROWS]), np.tile(labels, 2), np.repeat([1, -1], 20))
    assert model.classes_.dtype == np.uint8
    placeholders = np.array([*labels.tolist(), *["?"] * 20], object)
    model.fit(np.concatenate([ROWS, ROWS]), placeholders, np.repeat([1, -1], 20))
    assert model.classes_.tolist() == [0, 1]


def test_labels_of_an_estimator_in_several_kinds_of_numbers() -> None:
    """Before: "Unknown label type: unknown"."""
    data = blobs()
    rows = np.concatenate([data.source, data.target])
    domain = np.repeat([1, -1], 60)

    def fit(labels: list[Any]) -> EquidaClassifier:
        y = np.array([*labels, *[None] * 60], dtype=object)
        return EquidaClassifier(iterations=2, batch_size=8).fit(rows, y, sample_domain=domain)

    numbers = [float(k) if row % 2 else k for row, k in enumerate(data.labels.tolist())]
    assert fit(numbers).classes_.tolist() == [0, 1, 2, 3]
    for odd in (str, bool):
        mixed = [odd(k) if row % 2 else k for row, k in enumerate(data.labels.tolist())]
        with pytest.raises(InputError, match=r"labels of several kinds \(.*\); expected numbers"):
            fit(mixed)


def test_columns_far_from_zero_are_standardised() -> None:
    """Before: times in seconds were taken for a constant."""
    rows = np.column_stack([1.7e9 + 70.0 * ROWS[:, 0], ROWS[:, 1], np.full(20, 0.1)])
    model = EquidaClassifier(iterations=2).fit(rows, LABELS, X_target=rows)
    assert model.scale_ == pytest.approx([rows[:, 0].std(), rows[:, 1].std(), 1.0])


@pytest.mark.parametrize("factor", [1e40, -1e40])
def test_the_estimator_refuses_rows_that_it_cannot_compute_with(factor: float) -> None:
    """Before: the first class for each of them, and probabilities that are not numbers."""
    data = blobs()
    model = EquidaClassifier(iterations=4, batch_size=8, random_state=0)
    rows, others = data.source.astype(float), data.target.astype(float)
    model.fit(rows, data.labels, X_target=others)
    with pytest.raises(InputError, match=r"row 0 has a value in column 0 .* too large for float32"):
        model.predict(others * factor)
    with pytest.raises(InputError, match="column 0 has values that are too large to be squared"):
        model.fit(rows * 1e200, data.labels, X_target=others * 1e200)
    # What cannot be told from a constant is one.
    rows[0, 2], others[:, 2], rows[1:, 2] = 1e-170, 0.0, 0.0
    model.fit(rows, data.labels, X_target=others)
    others[3, 1] = 1e20
    assert np.isfinite(model.predict_proba(others)).all()


def test_a_subclass_keeps_what_it_has_learned_itself() -> None:
    class WithMore(EquidaClassifier):
        def fit(self, X: Any, *more: Any, **named: Any) -> Any:
            self.seen_ = len(X)
            return super().fit(X, *more, **named)

    data = blobs()
    model = WithMore(iterations=2, batch_size=8).fit(data.source, data.labels, X_target=data.target)
    assert model.seen_ == 60


def test_fits_in_threads_are_what_fits_alone_are() -> None:
    """Before: threads drew from each other's random numbers."""
    data = blobs()

    def fitted(_: int) -> np.ndarray[Any, Any]:
        model = EquidaClassifier(iterations=20, random_state=0)
        return model.fit(data.source, data.labels, X_target=data.target).predict_proba(data.target)

    state = torch.random.get_rng_state()
    alone = fitted(0)
    with ThreadPoolExecutor(2) as threads:
        for found in threads.map(fitted, range(4)):
            np.testing.assert_array_equal(found, alone)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_a_fit_that_fails_leaves_no_classifier(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before: the old network under the new classes, means and scales, which predicted."""
    data = blobs()
    model = EquidaClassifier(iterations=4, batch_size=8, random_state=0)
    model.fit(data.source, data.labels, X_target=data.target)
    check_is_fitted(model)

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("equida.estimator.train", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.fit(data.source[:, :4], data.labels[::-1], X_target=data.target[:, :4])
    with pytest.raises(NotFittedError):
        model.predict(data.source)
    assert not hasattr(model, "classes_")
    model.fit(data.source, data.labels, X_target=data.target)
    assert model.predict(data.source).shape == (60,)
