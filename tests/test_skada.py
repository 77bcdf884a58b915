"""EquidaClassifier in the pipelines and searches of skada, with skada itself."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import sklearn
from numpy.typing import NDArray
from sklearn.model_selection import cross_validate
from sklearn.preprocessing import StandardScaler

from equida import EquidaClassifier, scorers
from equida.scorers import SourceFold

pytestmark = pytest.mark.slow(reason="searches of skada")


@pytest.fixture(scope="module", autouse=True)
def routing() -> Iterator[None]:
    """skada enables metadata routing for the whole process when it is imported."""
    before = sklearn.get_config()["enable_metadata_routing"]
    pytest.importorskip("skada", reason="needs skada, which the extra dev installs")
    sklearn.set_config(enable_metadata_routing=True)
    yield
    sklearn.set_config(enable_metadata_routing=before)


Rows = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]


@pytest.fixture(scope="module")
def rows() -> Rows:
    """Rows of both domains, labels masked by -1, domains, and the true labels."""
    rng = np.random.default_rng(0)
    centres = 4.0 * np.array([[1.0, 0.0], [-0.5, 0.9], [-0.5, -0.9]])
    true, domain = np.tile(np.arange(3), 40), np.repeat([1, -2], 60)
    X = centres[true] + rng.normal(size=(120, 2)) + np.outer(domain < 0, [2.0, 1.0])
    return X, np.where(domain > 0, true, -1), domain, true


def pipeline(*adapters: Any, **request: bool) -> Any:
    from skada import make_da_pipeline

    model = EquidaClassifier(iterations=60, bottleneck=16, random_state=0)
    return make_da_pipeline(StandardScaler(), *adapters, model.set_score_request(**request))


def test_a_pipeline(rows: Rows) -> None:
    from skada import CORALAdapter

    X, y, domain, true = rows
    target = domain < 0
    for adapters in ((), (CORALAdapter(),)):
        model = pipeline(*adapters).fit(X, y.copy(), sample_domain=domain)
        predicted = model.predict(X[target], sample_domain=domain[target])
        assert (predicted == true[target]).mean() > 0.95
        assert (model.predict(X[target]) == predicted).all()
        probs = model.predict_proba(X[target], sample_domain=domain[target])
        assert (probs.argmax(1) == predicted).all()


def validated(rows: Rows, model: Any, scorer: Any, cv: Any = None, **more: Any) -> NDArray[Any]:
    from skada.model_selection import SourceTargetShuffleSplit

    X, y, domain, _ = rows
    split = cv or SourceTargetShuffleSplit(2, test_size=0.3, random_state=0)
    params = {"sample_domain": domain, **more}
    found: NDArray[Any] = cross_validate(
        model, X, y.copy(), params=params, cv=split, scoring=scorer, error_score="raise"
    )["test_score"]
    return found


@pytest.mark.parametrize(
    "name", ["PredictionEntropyScorer", "SoftNeighborhoodDensity", "CircularValidation"]
)
def test_scorers_without_labels(rows: Rows, name: str) -> None:
    from skada import metrics

    model = EquidaClassifier(iterations=60, bottleneck=16, random_state=0)
    alone = validated(rows, model, getattr(metrics, name)())
    piped = validated(rows, pipeline(), getattr(metrics, name)())
    assert np.isfinite(alone).all()
    # The classifier standardises by itself, so that the scaler before it changes nothing.
    np.testing.assert_allclose(piped, alone, atol=1e-3)


def test_importance_weights_on_the_source(rows: Rows) -> None:
    from skada.metrics import ImportanceWeightedScorer

    model = pipeline(sample_weight=True)
    assert validated(rows, model, ImportanceWeightedScorer()).min() > 0.9


@pytest.mark.filterwarnings("ignore:score is not told:UserWarning")
def test_labels_that_are_asked_for_by_name(rows: Rows) -> None:
    from skada.metrics import SupervisedScorer

    found = validated(rows, pipeline(), SupervisedScorer(), target_labels=rows[3])
    assert found.min() > 0.9


@pytest.mark.parametrize("name", ["bnm", "knn", "source_accuracy"])
def test_our_scorers_and_folds(rows: Rows, name: str) -> None:
    scorer = getattr(scorers, name)
    model = EquidaClassifier(iterations=60, bottleneck=16, random_state=0)
    assert validated(rows, model, scorer).min() > 0.7
    assert validated(rows, pipeline(), scorer).min() > 0.7
    assert validated(rows, pipeline(), scorers.source_accuracy, SourceFold(2)).min() > 0.9
