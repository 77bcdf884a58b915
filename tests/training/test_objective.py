from typing import Any

import pytest
import torch
import torch.nn.functional as F
from tests.small_data import CALL, blobs
from torch import nn

import equida
from equida import EquidaClassifier
from equida.errors import InputError
from equida.losses import nsm
from equida.methods import Method, build_method
from equida.methods.base import NoHyperparameters
from equida.models.network import Network
from equida.training.objective import Objective


def objective(method: str = "nsm", **options: Any) -> Objective:
    torch.manual_seed(0)
    network = Network(nn.Identity(), 5, 3, bottleneck=4, dropout=0.0)
    made = build_method(method, network.features, 3, network.classifier)
    return Objective(network, made, **options).train()


@pytest.fixture
def batch() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    source, target = (torch.randn(6, 5, generator=generator) + shift for shift in (0.0, 5.0))
    return source, torch.tensor([0, 1, 2, 0, 1, 2]), target


def test_the_loss_is_cross_entropy_and_the_methods_terms(
    batch: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
) -> None:
    made = objective(label_smoothing=0.1)
    terms = made(*batch, 0.0)
    _, source = made.network(batch[0])
    _, target = made.network(batch[2])
    expected = F.cross_entropy(source, batch[1], label_smoothing=0.1)
    assert terms["cross_entropy"].item() == pytest.approx(expected.item(), rel=1e-6)
    # The largest NS of B balanced one-hot rows is C / B. The scale that carries over to other
    # batches makes it that of 36 rows.
    assert terms["nsm"].item() == pytest.approx(2.0 * 6 / 36 * nsm(target).item(), rel=1e-6)


def test_batch_normalisation_sees_one_domain_at_a_time(
    batch: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
) -> None:
    """Running means: first a tenth towards the source's, then a tenth towards the target's."""
    made = objective()
    linear, norm = list(made.network.bottleneck)[:2]
    assert isinstance(norm, nn.BatchNorm1d)
    assert norm.running_mean is not None
    made(*batch, 0.0)
    first, second = (linear(x).mean(0) for x in (batch[0], batch[2]))
    expected = 0.9 * (0.1 * first) + 0.1 * second
    assert norm.running_mean.allclose(expected, rtol=1e-5, atol=1e-7)
    assert not torch.allclose(norm.running_mean, 0.1 * (first + second) / 2, rtol=1e-2)


def test_without_a_source_only_target_terms_remain(
    batch: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
) -> None:
    assert set(objective()(None, None, batch[2], 0.0)) == {"nsm"}


@pytest.mark.parametrize(("progress", "share"), [(0.0, 0.0), (0.05, 0.5), (0.1, 1.0), (0.9, 1.0)])
def test_terms_warm_up(
    progress: float, share: float, batch: tuple[torch.Tensor, torch.Tensor, torch.Tensor]
) -> None:
    full = objective()(*batch, progress)["nsm"].item()
    assert objective(warm_up=0.1)(*batch, progress)["nsm"].item() == pytest.approx(share * full)


@pytest.mark.parametrize(("progress", "share"), [(0.0, 0.0), (0.05, 0.5), (0.1, 1.0)])
def test_in_a_composition_all_but_cross_entropy_warms_up(
    progress: float, share: float, batch: tuple[torch.Tensor, torch.Tensor, torch.Tensor]
) -> None:
    """SymNets teaches the source by its own terms: they have their weight from the start."""
    full = objective("symnets+nsm")(*batch, progress)
    warm = objective("symnets+nsm", warm_up=0.1)(*batch, progress)
    assert set(warm) == {"classifiers", "features", "nsm"}
    assert warm["nsm"].item() == pytest.approx(share * full["nsm"].item())
    for name in ("classifiers", "features"):
        assert warm[name].item() == full[name].item()


def test_the_target_never_enters_source_only(
    batch: tuple[torch.Tensor, torch.Tensor, torch.Tensor],
) -> None:
    """Not even through the statistics of batch normalisation."""
    source, labels, target = batch
    means = []
    for moved in (target, target + 100.0):
        made = objective("source_only")
        made(source, labels, moved, 0.5)
        norm = made.network.bottleneck[1]
        assert isinstance(norm, nn.BatchNorm1d)
        assert norm.running_mean is not None
        means.append(norm.running_mean.clone())
    assert means[0].equal(means[1])


def pseudo_labels(owns: bool) -> type[Method]:
    class Pseudo(Method):
        owns_cross_entropy = owns

        def forward(self, source: Any, labels: Any, target: Any, progress: float) -> Any:
            return {"cross_entropy": F.cross_entropy(target.logits, target.logits.argmax(1))}

    return Pseudo


def test_a_term_does_not_take_the_place_of_the_sources() -> None:
    """Before: the source's labels were not learned, without a word."""
    data = blobs()
    model = EquidaClassifier(pseudo_labels(owns=False), iterations=2)
    with pytest.raises(InputError, match=r"Pseudo\.forward returned a term 'cross_entropy'"):
        model.fit(data.source, data.labels, X_target=data.target)
    EquidaClassifier(pseudo_labels(owns=True), iterations=2).fit(
        data.source, data.labels, X_target=data.target
    )


@pytest.mark.usefixtures("own_folder")
@pytest.mark.parametrize(
    ("body", "said"),
    [
        (lambda z: {"mine": z.mean(1)}, r"returned shape \(8,\) for the term 'mine'"),
        (lambda z: {"mine": 1.0}, "returned 1.0 for the term 'mine'; expected a tensor"),
    ],
)
def test_terms_that_are_no_numbers_are_named(body: Any, said: str) -> None:
    class Mine(Method):
        config: NoHyperparameters

        def forward(self, source: Any, labels: Any, target: Any, progress: float) -> Any:
            return body(target.logits)

    data = blobs()
    with pytest.raises(InputError, match=said):
        equida.adapt((data.source, data.labels), data.target, method=Mine, **CALL)
