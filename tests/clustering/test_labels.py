"""Cluster labels against the same rules written out in numpy, scipy and scikit-learn."""

from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.linalg
import torch
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from scipy.special import softmax
from scipy.stats import entropy
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize
from tests.small_data import blobs

from equida.clustering import (
    ClusterRule,
    SelectiveRule,
    class_middles,
    class_scatter,
    cluster_labels,
    joint_rows,
    selective_labels,
    supervised_projection,
)
from equida.clustering.clusters import _views, found_back
from equida.clustering.subspace import surest
from equida.errors import InputError

Array = NDArray[np.float64]
CLASSES, WIDTH = 4, 12


class Shifted(NamedTuple):
    source: Array
    labels: NDArray[np.int64]
    target: Array
    truth: NDArray[np.int64]


@pytest.fixture(scope="module")
def shifted() -> Shifted:
    """Clusters that are moved so far that a third of the target is nearest to another class."""
    random = np.random.default_rng(0)
    centres = random.normal(size=(CLASSES, WIDTH))
    labels, truth = np.arange(80) % CLASSES, np.arange(100) % CLASSES
    source = centres[labels] + 0.6 * random.normal(size=(80, WIDTH))
    shift = 2.0 * random.normal(size=WIDTH)
    return Shifted(
        source, labels, centres[truth] + shift + 0.6 * random.normal(size=(100, WIDTH)), truth
    )


def tensors(data: Shifted) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return tuple(map(torch.from_numpy, data[:3]))  # type: ignore[return-value]


def reference_rows(data: Shifted, width: int) -> tuple[Array, Array]:
    """As the published rule has them."""
    both = np.concatenate([normalize(x) for x in (data.source, data.target)])
    both = normalize(PCA(width, svd_solver="full").fit_transform(both))
    return both[:80], both[80:]


def without_middle(
    source: Array, target: Array, labels: NDArray[np.int64], shares: Array
) -> tuple[Array, Array]:
    """Each domain less the middle of its classes, whose shares in the target are known."""
    centres = np.stack([source[labels == c].mean(0) for c in range(CLASSES)])
    at_these_shares = np.average(centres, 0, shares)
    moved = target - target.mean(0) + at_these_shares
    return source - centres.mean(0), moved - centres.mean(0)


def soft_reference_rows(data: Shifted, width: int, shares: Array) -> tuple[Array, Array]:
    """As the soft rule has them: its components are those of rows without the middles."""
    source, target = (normalize(x) for x in (data.source, data.target))
    both = np.concatenate(without_middle(source, target, data.labels, shares))
    directions = scipy.linalg.svd(both)[2][:width]
    both = normalize(both @ directions.T)
    return both[:80], both[80:]


def reference_projection(
    rows: Array, labels: NDArray[np.int64], dimensions: int, weighted: bool = False
) -> Array:
    """Supervised locality preserving projection by its graph: weights, degrees, Laplacian."""
    weights = (labels[:, None] == labels[None]).astype(float)
    degrees = np.diag(weights.sum(1))
    within = rows.T @ (degrees - weights) @ rows + np.eye(rows.shape[1])
    vectors: Array = scipy.linalg.eigh(rows.T @ degrees @ rows, within)[1][:, ::-1]
    vectors = vectors[:, :dimensions]
    if weighted:
        # v^T (within) v = 1, so that the rest of v^T (total) v is what lies between classes.
        total = np.diag(vectors.T @ rows.T @ degrees @ rows @ vectors)
        vectors = vectors * np.sqrt(np.maximum((total - 1) / total, 1e-6))
    return vectors


def reference_choice(probs: Array, share: float) -> NDArray[np.bool_]:
    chosen = np.zeros(len(probs), bool)
    for label in range(probs.shape[1]):
        members = np.flatnonzero(probs.argmax(1) == label)
        surest_first = members[np.argsort(-probs[members].max(1), kind="stable")]
        chosen[surest_first[: int(np.ceil(round(len(members) * share, 6)))]] = True
    return chosen


def means(rows: Array, labels: NDArray[np.int64]) -> Array:
    found: Array = normalize(np.stack([rows[labels == c].mean(0) for c in range(CLASSES)]))
    return found


def test_joint_rows_are_principal_components_of_unit_rows(shifted: Shifted) -> None:
    source, _, target = tensors(shifted)
    rows = torch.cat(joint_rows(source, target, 5)).double().numpy()
    expected = np.concatenate(reference_rows(shifted, 5))
    # Components have no sign: what counts are the rows' products.
    np.testing.assert_allclose(rows @ rows.T, expected @ expected.T, atol=1e-5)


def test_roots_are_taken_of_features_that_are_not_negative(shifted: Shifted) -> None:
    source, _, target = (values.abs() for values in tensors(shifted))
    for first, second in ((source, target), (source - 0.5, target)):
        found = torch.cat(joint_rows(first, second, 5, root=True))
        roots = bool((first >= 0).all())
        given = (first.sqrt(), second.sqrt()) if roots else (first, second)
        expected = torch.cat(joint_rows(*given, 5))
        torch.testing.assert_close(found @ found.mT, expected @ expected.mT, rtol=0, atol=1e-4)


def test_the_projection_solves_the_eigenproblem_of_the_graph(shifted: Shifted) -> None:
    rows, labels = shifted.source, shifted.labels
    scatter = class_scatter(torch.from_numpy(rows), torch.from_numpy(labels), CLASSES)
    found = supervised_projection(scatter, 3).numpy()
    expected = reference_projection(rows, labels, 3)
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-9)


def test_the_projection_of_large_tight_classes() -> None:
    """A difference of sums of 20,000 rows a class is not definite in single precision."""
    labels = torch.arange(40_000) % 2
    generator = torch.Generator().manual_seed(0)
    spread = torch.randn(len(labels), 8, generator=generator)
    rows = torch.nn.functional.normalize(
        torch.eye(2, 8)[labels] - 0.5 * torch.eye(2, 8).sum(0) + 0.005 * spread, dim=1
    )
    found = supervised_projection(class_scatter(rows, labels, 2), 1)
    expected = supervised_projection(class_scatter(rows.double(), labels, 2), 1)
    torch.testing.assert_close(found @ found.mT, expected @ expected.mT, rtol=0.02, atol=1e-5)


def test_the_scatter_of_a_view_is_that_of_its_columns(shifted: Shifted) -> None:
    rows, labels = torch.from_numpy(shifted.source), torch.from_numpy(shifted.labels)
    columns = torch.tensor([0, 3, 4, 9])
    found = supervised_projection(class_scatter(rows, labels, CLASSES).of(columns), 2).numpy()
    expected = reference_projection(shifted.source[:, columns], shifted.labels, 2)
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-9)


@pytest.mark.parametrize("share", [0.1, 0.5, 1.0])
def test_the_surest_of_each_predicted_class(share: float) -> None:
    probs = np.random.default_rng(0).dirichlet(np.ones(5), 70)
    found = surest(torch.from_numpy(probs), share).numpy()
    np.testing.assert_array_equal(found, reference_choice(probs, share))


def test_selective_labels_by_the_published_rule(shifted: Shifted) -> None:
    rule = SelectiveRule(components=8, dimensions=5, rounds=4)
    source, target = reference_rows(shifted, 8)
    chosen, predicted = np.zeros(100, bool), np.zeros(100, np.int64)
    for number in range(4):
        projection = reference_projection(
            np.concatenate([source, target[chosen]]),
            np.concatenate([shifted.labels, predicted[chosen]]),
            5,
        )
        both = np.concatenate([source, target]) @ projection
        both = normalize(both - both.mean(0))
        seen, unseen = both[:80], both[80:]
        centres = means(seen, shifted.labels)
        clusters = normalize(KMeans(CLASSES, init=centres, n_init=1).fit(unseen).cluster_centers_)
        probs = np.maximum(
            softmax(-cdist(unseen, centres), 1), softmax(-cdist(unseen, clusters), 1)
        )
        predicted = probs.argmax(1)
        chosen = reference_choice(probs, (number + 1) / 4)
    found = selective_labels(*tensors(shifted), CLASSES, rule).numpy()
    np.testing.assert_allclose(found, probs / probs.sum(1, keepdims=True), atol=1e-5)


@pytest.mark.parametrize("shares", [None, (0.4, 0.3, 0.2, 0.1)])
@pytest.mark.parametrize("weighted", [False, True])
def test_soft_cluster_labels_by_their_rule(
    weighted: bool, shares: tuple[float, ...] | None, shifted: Shifted
) -> None:
    rule = ClusterRule(
        components=8, dimensions=5, views=1, rounds=3, means_rounds=4, weighted=weighted
    )
    expected = np.array([0.4, 0.1, 0.2, 0.3])
    source, target = soft_reference_rows(shifted, 8, expected)
    about = without_middle(source, target, shifted.labels, expected)
    bias = 0.0 if shares is None else np.log(CLASSES * np.array(shares))
    chosen, probs = np.zeros(100, bool), np.zeros((100, CLASSES))
    for number in range(4):
        rows = np.concatenate([source, target[chosen]])
        labels = np.concatenate([shifted.labels, probs.argmax(1)[chosen]])
        projection = reference_projection(rows, labels, 5, weighted)
        seen, unseen = (normalize(each @ projection) for each in about)
        centres = clusters = means(seen, shifted.labels)
        for _ in range(4):
            weights = softmax(-20 * cdist(unseen, clusters) + bias, 1)
            clusters = normalize(np.stack([np.average(unseen, 0, w) for w in weights.T]))
        found = [softmax(-10 * cdist(unseen, each) + bias, 1) for each in (centres, clusters)]
        probs = np.mean(found, 0)
        chosen = reference_choice(probs, min(1, (number + 1) / 3))
    given = None if shares is None else torch.tensor(shares)
    given_expected = torch.from_numpy(expected)
    labels_found = cluster_labels(
        *tensors(shifted), CLASSES, 0, rule, given, given_expected
    ).numpy()
    np.testing.assert_allclose(labels_found, probs, atol=1e-4)


def test_the_middle_of_the_classes(shifted: Shifted) -> None:
    """That of the target is found by the shares of its classes, whatever they are."""
    rng = np.random.default_rng(3)
    source, target = (rng.normal(size=(n, WIDTH)) for n in (80, 100))
    shares = np.array([0.4, 0.1, 0.2, 0.3])
    found = class_middles(*map(torch.from_numpy, (source, target, shifted.labels, shares)))
    expected = without_middle(source, target, shifted.labels, shares)
    for domain, centre, without in zip((source, target), found, expected, strict=True):
        np.testing.assert_allclose(domain - centre.numpy(), without, atol=1e-12)


def test_rows_of_any_dtype_and_with_a_gradient_are_taken(shifted: Shifted) -> None:
    source, labels, target = tensors(shifted)
    rule = ClusterRule(components=6, dimensions=3, views=1)
    rows = (source.bfloat16(), labels, target.bfloat16().requires_grad_())
    assert bool(cluster_labels(*rows, CLASSES, 0, rule).isfinite().all())


def test_one_class_is_the_class_of_every_row() -> None:
    """It ended in a division by the logarithm of 1."""
    found = cluster_labels(
        torch.randn(4, 3), torch.zeros(4, dtype=torch.long), torch.randn(5, 3), 1
    )
    assert found.tolist() == [[1.0]] * 5


def test_a_class_without_source_rows_does_not_move_the_middle() -> None:
    source, target = torch.randn(6, 3).double(), torch.randn(4, 3).double()
    labels = torch.tensor([0, 0, 0, 2, 2, 2])
    some = class_middles(source, target, labels, torch.tensor([0.3, 0.4, 0.3]).double())
    same = class_middles(source, target, labels // 2, torch.tensor([0.5, 0.5]).double())
    torch.testing.assert_close(some, same)
    # Nothing is known of classes of which none should be there.
    nothing = class_middles(source, target, labels, torch.tensor([0.0, 1.0, 0.0]).double())
    torch.testing.assert_close(nothing, same)


def test_clusters_find_classes_that_nearest_means_mistake(shifted: Shifted) -> None:
    nearest = cdist(
        shifted.target,
        np.stack([shifted.source[shifted.labels == c].mean(0) for c in range(CLASSES)]),
    ).argmin(1)
    source_only = np.mean(nearest == shifted.truth)
    rule = ClusterRule(dimensions=5)
    found = cluster_labels(*tensors(shifted), CLASSES, 0, rule).argmax(1).numpy()
    assert np.mean(found == shifted.truth) > source_only + 0.1


def lacking(absent: tuple[int, ...], classes: int = 6) -> Shifted:
    """Six classes, of which the target lacks some; rows as of a network that ends in a ReLU."""
    random = np.random.default_rng(3)
    centres = 1.5 * random.random((classes, 24))
    labels = np.arange(120) % classes
    truth = np.setdiff1d(np.arange(classes), absent)[np.arange(120) % (classes - len(absent))]
    noise, shift = random.normal(size=(2, 120, 24)), 0.3 * random.normal(size=24)
    source = np.abs(centres[labels] + 0.3 * noise[0])
    return Shifted(source, labels, np.abs(centres[truth] + shift + 0.3 * noise[1]), truth)


@pytest.mark.parametrize("absent", [(), (4,), (1, 3, 4)], ids=str)
def test_classes_that_the_target_lacks_get_no_cluster(absent: tuple[int, ...]) -> None:
    """Before, every class got one, and took rows of others. A single cluster that leaves its class
    is no proof: that happens to classes that are there."""
    data = lacking(absent)
    expected = torch.full((6,), 1 / 6)
    probs = cluster_labels(*tensors(data), 6, expected=expected)
    found = probs.argmax(1).numpy()
    if len(absent) > 1:
        assert not probs[:, list(absent)].any()
        assert np.mean(found == data.truth) == 1.0
    else:
        assert bool((probs > 0).all()), "every class has a cluster"


def test_a_class_without_a_source_row_gets_no_cluster() -> None:
    data = lacking(())
    source, labels, target = tensors(data)
    known = labels != 4
    probs = cluster_labels(source[known], labels[known], target, 6)
    assert not probs[:, 4].any()
    there = data.truth != 4
    assert np.mean(probs.argmax(1).numpy()[there] == data.truth[there]) > 0.95


def test_rules_of_few_rounds() -> None:
    data = lacking((1, 3, 4))
    assert cluster_labels(*tensors(data), 6, rule=ClusterRule(rounds=1, means_rounds=1)).shape == (
        120,
        6,
    )


def test_shares_that_are_known_say_which_classes_there_are() -> None:
    data = lacking((1, 3, 4))
    shares = torch.full((6,), 1 / 6)
    probs = cluster_labels(*tensors(data), 6, shares=shares, expected=shares)
    assert bool((probs > 0).all())


def test_views_leave_out_each_component_equally_often() -> None:
    """Before, views were drawn one by one: of 100 components, some were left out five times of ten
    and some never, and labels of two seeds differed more than they had to."""
    views = _views(100, 10, ClusterRule(views=10, share=0.8), seed=3)
    assert {len(view) for view in views} == {80}
    left_out = 10 - torch.bincount(torch.cat(views), minlength=100)
    assert left_out.tolist() == [2] * 100
    assert len({tuple(view.tolist()) for view in views}) == 10


@pytest.mark.parametrize(
    ("width", "classes", "rule", "size"),
    [
        (20, 3, ClusterRule(views=4, share=1.0), 20),
        (20, 3, ClusterRule(views=1, share=0.5), 20),
        (20, 18, ClusterRule(views=4, share=0.5), 18),
        (20, 30, ClusterRule(views=4, share=0.5), 20),
        (20, 3, ClusterRule(views=4, share=0.1), 3),
        (7, 2, ClusterRule(views=9, share=0.8), 6),
    ],
)
def test_views_of_odd_sizes(width: int, classes: int, rule: ClusterRule, size: int) -> None:
    views = _views(width, classes, rule, seed=0)
    assert [len(view.unique()) for view in views] == [size] * rule.views
    assert max(int(view.max()) for view in views) < width


def test_the_seed_decides_the_views(shifted: Shifted) -> None:
    rule = ClusterRule(components=8, dimensions=5, views=2)
    first, again, other = (
        cluster_labels(*tensors(shifted), CLASSES, seed, rule) for seed in (3, 3, 4)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.allclose(first.sum(1), torch.ones(100))


def test_neighbours_and_the_source_decide_about_weights(shifted: Shifted) -> None:
    """Of both kinds of labels, those with the larger product of three factors.

    They are agreement with neighbours, the entropy of the class shares, and how many source rows
    are nearest to the target's mean of their own class.
    """
    rules = [ClusterRule(components=6, dimensions=3, weighted=w) for w in (False, True, None)]
    equal = np.full(CLASSES, 1 / CLASSES)
    plain, weighted, chosen = (
        cluster_labels(*tensors(shifted), CLASSES, 1, r, expected=torch.from_numpy(equal))
        for r in rules
    )
    model = NearestNeighbors(n_neighbors=6, metric="cosine").fit(shifted.target)
    others = model.kneighbors(shifted.target)[1][:, 1:]

    def score(probs: torch.Tensor) -> float:
        predicted = probs.numpy().argmax(1)
        shares = np.bincount(predicted, minlength=CLASSES) / 100
        near = np.mean(predicted[others] == predicted[:, None]) * entropy(shares)
        source, target = soft_reference_rows(shifted, 6, equal)
        back = cdist(source, means(target, predicted)).argmin(1)
        return float(near * np.mean(back == shifted.labels))  # every class has 20 rows

    assert not torch.equal(plain, weighted)
    assert torch.equal(chosen, weighted if score(weighted) > score(plain) else plain)


@pytest.mark.parametrize("features", [12, 40])
def test_components_of_few_and_of_many_features(features: int) -> None:
    """They are those of scikit-learn up to their signs, whichever problem is solved."""
    random = np.random.default_rng(1)
    source, target = random.normal(size=(14, features)), random.normal(size=(16, features)) + 1
    found = torch.cat(joint_rows(torch.from_numpy(source), torch.from_numpy(target), 5)).numpy()
    both = normalize(np.concatenate([source, target]))
    expected = normalize(PCA(5, svd_solver="full").fit_transform(both))[:, ::-1]
    signs = np.sign((found * expected).sum(0))
    np.testing.assert_allclose(found, expected * signs, atol=1e-4)


def test_swapped_clusters_do_not_find_the_source_back() -> None:
    """Neighbours agree as well where two clusters have each other's class."""
    rows = torch.eye(3)[torch.arange(30) % 3]
    labels, swapped = torch.arange(30) % 3, torch.tensor([1, 0, 2])[torch.arange(30) % 3]
    assert found_back(rows, rows, labels, labels, 3) == 1.0
    assert found_back(rows, rows, labels, swapped, 3) == pytest.approx(1 / 3)
    few = torch.tensor([0, 0, 0, 0, 1])  # a mean over classes, and class 2 has no rows
    assert found_back(rows[few], rows, few, torch.zeros(30, dtype=torch.long), 3) == 0.5


def test_few_classes_have_few_components_and_dimensions(shifted: Shifted) -> None:
    """As many as there are features would be used otherwise."""
    bounded = ClusterRule(views=1, components_per_class=2, dimensions_per_class=1)
    plain = ClusterRule(views=1, components=8, dimensions=4)
    first, second, third = (
        cluster_labels(*tensors(shifted), CLASSES, 0, rule)
        for rule in (bounded, plain, ClusterRule(views=1))
    )
    assert torch.equal(first, second)
    assert not torch.equal(first, third)


def test_more_components_and_dimensions_than_there_are(shifted: Shifted) -> None:
    for labels in (
        cluster_labels(*tensors(shifted), CLASSES),
        selective_labels(*tensors(shifted), CLASSES),
    ):
        assert labels.shape == (100, CLASSES)
        assert bool(labels.isfinite().all())


@pytest.mark.parametrize("name", ["shares", "expected"])
@pytest.mark.parametrize("shares", [[-0.5, 1.5], [4.0, 5.0], [float("nan"), 0.5]])
def test_shares_that_are_none_are_refused(name: str, shares: list[float]) -> None:
    rows, labels = torch.eye(2).repeat(4, 1), torch.arange(8) % 2
    with pytest.raises(InputError, match=f"{name} sum to .* expected a sum of 1"):
        cluster_labels(rows, labels, rows, 2, **{name: torch.tensor(shares)})  # type: ignore[arg-type]


def test_cluster_labels_take_arrays_and_any_whole_numbers() -> None:
    data, rule = blobs(), ClusterRule(views=1, rounds=2)
    source, target, labels = map(torch.from_numpy, data)
    expected = cluster_labels(source, labels, target, 4, rule=rule)
    arrays: Any = data.source, data.labels.astype(np.int32), data.target
    assert torch.equal(cluster_labels(arrays[0], arrays[1], arrays[2], 4, rule=rule), expected)
    for name in ("shares", "expected"):
        wrong: Any = {name: torch.ones(3) / 3}
        with pytest.raises(InputError, match=rf"{name} have shape \(3,\); expected one for each"):
            cluster_labels(source, labels, target, 4, rule=rule, **wrong)
