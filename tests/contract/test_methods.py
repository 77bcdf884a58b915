"""What every registered method must do, alone and composed with another one."""

import dataclasses
import typing
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from equida.methods import METHODS, Output, TaskRows, build_method, default_config, describe_method

INPUTS, FEATURES, CLASSES, ROWS = 8, 12, 4, 16
ALONE = list(METHODS)
ADAPTING = [name for name in METHODS if name != "source_only"]
COMPOSED = [f"{name}+nsm" for name in METHODS if name != "nsm"]


class Network(nn.Module):
    """The least that a method may expect of a network."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(INPUTS, FEATURES), nn.Tanh())
        self.classifier = nn.Linear(FEATURES, CLASSES)

    def forward(self, x: Tensor) -> Output:
        features = self.body(x)
        return Output(features, self.classifier(features))


class Case:
    """A network, a method on it, and a batch of each domain; small, and without dropout."""

    def __init__(self, name: str, seed: int = 0, **overrides: Any) -> None:
        torch.manual_seed(seed)
        for part in name.split("+"):
            fields = {field.name for field in dataclasses.fields(METHODS[part].config)}
            for key, value in {"width": 16, "dropout": 0.0}.items():
                if key in fields:
                    overrides.setdefault(f"{part}.{key}", value)
        self.network = Network()
        self.method = build_method(name, FEATURES, CLASSES, self.network.classifier, overrides)
        self.labels = torch.arange(ROWS) % CLASSES
        centres = 1.5 * torch.randn(CLASSES, INPUTS)
        self.source = centres[self.labels] + torch.randn(ROWS, INPUTS)
        self.target = centres[self.labels] + torch.randn(ROWS, INPUTS) + 0.5
        rows = TaskRows(self.source, self.labels, self.target, seed)
        self.prepared = self.method.prepare(rows)
        self.method.use_prepared(self.prepared)

    def outputs(self) -> tuple[Output, Output]:
        samples = torch.arange(len(self.target), device=self.target.device)
        return self.network(self.source), self.network(self.target)._replace(samples=samples)

    def terms(self, progress: float = 0.5) -> dict[str, Tensor]:
        source, target = self.outputs()
        terms: dict[str, Tensor] = self.method(source, self.labels, target, progress)
        return terms

    def step(self, key: str, parameters: Iterable[nn.Parameter], rate: float = 1e-2) -> float:
        """By how much a step of these parameters down the gradient of a term changes that term."""
        parameters = list(parameters)
        before = self.terms()[key]
        gradients = torch.autograd.grad(before, parameters, allow_unused=True)
        with torch.no_grad():
            for parameter, gradient in zip(parameters, gradients, strict=True):
                if gradient is not None:
                    parameter.sub_(gradient, alpha=rate)
        return self.terms()[key].item() - before.item()


def total(terms: Mapping[str, Tensor]) -> Tensor:
    return torch.stack(list(terms.values())).sum()


@pytest.mark.parametrize("name", ALONE)
def test_supervised_terms_are_terms_that_ignore_the_target(name: str) -> None:
    case = Case(name)
    assert case.method.supervised_terms <= set(case.terms())
    before = case.terms()
    case.target = case.target + 1.0
    after = case.terms()
    for key in case.method.supervised_terms:
        assert after[key].item() == before[key].item()


@pytest.mark.parametrize("name", ALONE + COMPOSED)
def test_terms_are_finite_scalars(name: str) -> None:
    terms = Case(name).terms()
    assert (name == "source_only") == (not terms)
    for key, term in terms.items():
        assert term.shape == (), key
        assert bool(term.isfinite()), key


@pytest.mark.parametrize("name", ADAPTING)
def test_gradient_reaches_the_backbone_and_all_parameters(name: str) -> None:
    case = Case(name)
    source, target = case.outputs()
    target.features.retain_grad()
    total(case.method(source, case.labels, target, 0.5)).backward()
    assert target.features.grad is not None
    assert bool((target.features.grad.abs().sum(1) > 0).all())
    for key, parameter in [*case.method.named_parameters(), *case.network.body.named_parameters()]:
        assert parameter.grad is not None, key
        assert bool(parameter.grad.isfinite().all()), key
        assert bool(parameter.grad.any()), key


@pytest.mark.parametrize("name", ALONE)
def test_the_head_stays_the_networks(name: str) -> None:
    case = Case(name)
    own = {id(parameter) for parameter in case.method.parameters()}
    assert own.isdisjoint(id(parameter) for parameter in case.network.parameters())


@pytest.mark.parametrize("name", ALONE + COMPOSED)
def test_state_survives_a_round_trip(name: str) -> None:
    case, other = Case(name, seed=0), Case(name, seed=1)
    other.network.load_state_dict(case.network.state_dict())
    other.method.load_state_dict(case.method.state_dict())
    other.method.use_prepared(case.prepared)
    other.source, other.target = case.source, case.target
    torch.testing.assert_close(other.terms(), case.terms(), rtol=0.0, atol=0.0)


@pytest.mark.parametrize("name", ALONE)
def test_the_same_seed_gives_the_same_terms_with_dropout(name: str) -> None:
    fields = {field.name for field in dataclasses.fields(METHODS[name].config)}
    overrides = {"dropout": 0.5} if "dropout" in fields else {}
    first, second = Case(name, seed=3, **overrides).terms(), Case(name, seed=3, **overrides).terms()
    torch.testing.assert_close(first, second, rtol=0.0, atol=0.0)


@pytest.mark.parametrize("name", ALONE + COMPOSED)
def test_autocast_gives_nearly_the_same_in_full_precision(name: str) -> None:
    case = Case(name)
    exact = case.terms()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rough = case.terms()
    for key, term in rough.items():
        assert term.dtype == torch.float32, key
        assert term.item() == pytest.approx(exact[key].item(), rel=0.05, abs=0.05), key
    if rough:
        total(rough).backward()
        assert all(
            bool(p.grad.isfinite().all()) for p in case.method.parameters() if p.grad is not None
        )


class NoWaiting(TorchDispatchMode):
    """Refuses the operations whose result, a number or a shape, the host must wait for."""

    WAITING: ClassVar = {"_local_scalar_dense", "nonzero", "masked_select", "equal", "_unique2"}
    DECOMPOSING: ClassVar = {"_linalg_svd", "_linalg_eigh", "linalg_svd", "linalg_eigh"}

    def __init__(self, decomposes: bool = False) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.decomposes = decomposes

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        assert name not in self.WAITING, f"{name} waits for the device"
        assert self.decomposes or name not in self.DECOMPOSING, f"{name} waits for the device"
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", ALONE + COMPOSED)
def test_nothing_waits_for_the_device(name: str) -> None:
    """But for BNM: torch itself waits for the success of a decomposition."""
    case = Case(name)
    with NoWaiting(decomposes="bnm" in name.split("+")):
        terms = case.terms()
        if terms:
            total(terms).backward()


def test_waiting_would_be_noticed() -> None:
    refused = pytest.raises(AssertionError, match="waits for the device")
    with NoWaiting(), refused:
        torch.ones(()).item()
    with NoWaiting(), refused:
        torch.linalg.svdvals(torch.eye(2))


@pytest.mark.parametrize("name", ALONE + COMPOSED)
def test_nothing_is_left_on_another_device(name: str) -> None:
    """The meta device stands in for a GPU: it refuses to meet tensors of the CPU, too."""
    case = Case(name)
    case.network.to("meta")
    case.method.to("meta")
    case.source, case.target = case.source.to("meta"), case.target.to("meta")
    case.labels = case.labels.to("meta")
    case.method.use_prepared({key: value.to("meta") for key, value in case.prepared.items()})
    for progress in (0.0, 0.5):
        if terms := case.terms(progress):
            total(terms).backward()
            assert {term.device.type for term in terms.values()} == {"meta"}
    assert case.method.predict(case.outputs()[1]).device.type == "meta"


def test_another_device_would_be_noticed() -> None:
    with pytest.raises(RuntimeError, match="device"):
        torch.ones(2, device="meta").add(torch.ones(2))


class NoDoubles(TorchDispatchMode):
    """Refuses what a device without float64 (MPS) cannot do. BNM of more than 2048 entries works in
    float64, on the CPU where the device has none."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, (tuple, list)) else (made,):
            wide = isinstance(tensor, Tensor) and tensor.dtype == torch.float64
            assert not wide, f"{func.overloadpacket.__name__} gives float64"
        return made


@pytest.mark.parametrize("name", ALONE + COMPOSED)
def test_single_precision_stays_single(name: str) -> None:
    case = Case(name)
    with NoDoubles():
        if terms := case.terms():
            total(terms).backward()


def test_double_precision_would_be_noticed() -> None:
    with NoDoubles(), pytest.raises(AssertionError, match="gives float64"):
        torch.ones(2).double()


@pytest.mark.parametrize("name", ALONE)
def test_prediction_has_one_logit_for_each_class(name: str) -> None:
    case = Case(name)
    source, _ = case.outputs()
    assert case.method.predict(source).shape == (ROWS, CLASSES)


@pytest.mark.parametrize("name", ALONE)
def test_domains_may_have_batches_of_different_size(name: str) -> None:
    case = Case(name)
    case.target = case.target[: ROWS // 2]
    assert all(bool(term.isfinite()) for term in case.terms().values())


@pytest.mark.parametrize("name", ALONE)
def test_source_free_methods_ignore_the_source(name: str) -> None:
    case = Case(name)
    before = case.terms()
    case.source = case.source.flip(0) + 1.0
    # Without a term there is nothing that could be learned from the target alone.
    same = bool(before) and all(
        torch.equal(before[key], term) for key, term in case.terms().items()
    )
    # SAFN's value is constant, though its gradient is not; what was prepared stays as it was.
    if name != "safn" and not case.method.prepares:
        assert METHODS[name].method.source_free == same


@pytest.mark.parametrize("name", COMPOSED)
def test_composition_adds_the_terms_of_both(name: str) -> None:
    composed, alone = Case(name), Case("nsm").method
    part = name.split("+")[0]
    first = Case(part)
    first.network, first.source, first.target = composed.network, composed.source, composed.target
    first.method = typing.cast(Any, composed.method).methods[part]
    # Where the part predicts with a head of its own, that is what NSM works on.
    shown = [x._replace(logits=first.method.predict(x)) for x in composed.outputs()]
    expected = {**first.terms(), **alone(shown[0], composed.labels, shown[1], 0.5)}
    torch.testing.assert_close(composed.terms(), expected, rtol=0.0, atol=0.0)
    assert composed.method.owns_cross_entropy == first.method.owns_cross_entropy
    source, _ = composed.outputs()
    torch.testing.assert_close(composed.method.predict(source), first.method.predict(source))


MIN_MAX = {"dann": "domain", "cdan": "domain", "mdd": "disparity", "mcd": "discrepancy"}
MINIMISED = [n for n in ADAPTING if n not in {*MIN_MAX, "safn", "symnets"}]


@pytest.mark.parametrize("name", MINIMISED)
def test_a_step_lowers_what_is_minimised(name: str) -> None:
    case = Case(name)
    (key,) = case.terms()
    assert case.step(key, case.network.parameters()) < 0


@pytest.mark.parametrize("name", MIN_MAX)
def test_the_adversary_lowers_what_the_features_raise(name: str) -> None:
    case, key = Case(name), MIN_MAX[name]
    # An adversary that has learnt nothing yet gives the features nothing to work against.
    for _ in range(10):
        assert case.step(key, case.method.parameters(), rate=0.1) < 0
    assert case.step(key, case.network.body.parameters()) > 0


def test_a_step_of_safn_lets_the_norms_grow() -> None:
    # The value is a constant: what it asks for is seen in the features only.
    case = Case("safn")
    before = [float(output.features.detach().norm(dim=1).mean()) for output in case.outputs()]
    for key in case.terms():
        assert case.step(key, case.network.body.parameters(), rate=1.0) == pytest.approx(0.0)
    after = [float(output.features.detach().norm(dim=1).mean()) for output in case.outputs()]
    assert after[0] > before[0]
    assert after[1] > before[1]


@pytest.mark.parametrize("key", ["classifiers", "features"])
def test_each_side_of_symnets_moves_its_own_parameters_alone(key: str) -> None:
    case = Case("symnets")
    heads = [*case.method.parameters(), *case.network.classifier.parameters()]
    body = list(case.network.body.parameters())
    own, others = (heads, body) if key == "classifiers" else (body, heads)
    crossed = torch.autograd.grad(case.terms()[key], others, allow_unused=True)
    assert all(gradient is None for gradient in crossed)
    assert case.step(key, own) < 0


@pytest.mark.parametrize("name", ALONE)
def test_hyper_parameters_are_frozen_documented_and_ranged(name: str) -> None:
    config = default_config(name)
    for field, said in zip(
        dataclasses.fields(config), describe_method(name).hyperparameters, strict=True
    ):
        assert len(said.meaning) > 15, f"{name}.{field.name} has no docstring"
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(config, field.name, field.default)
        kinds = typing.get_args(field.type) or (field.type,)
        if {int, float} & set(kinds):
            assert said.range is not None, f"{name}.{field.name} has no range"
            assert said.range.minimum <= said.range.low < said.range.high <= said.range.maximum
            assert said.default is None or said.range.low <= said.default <= said.range.high


@pytest.mark.parametrize("name", ALONE)
def test_what_a_list_says_is_one_line_each(name: str) -> None:
    said = describe_method(name)
    assert 20 < len(said.idea) < 100
    assert said.idea.endswith(".")
    assert "\n" not in said.reference
    for benchmark, preset in said.presets.items():
        config = default_config(name, benchmark)
        assert config != default_config(name), f"{name}'s preset for {benchmark} changes nothing"
        assert all(getattr(config, key) == wanted for key, wanted in preset.items())
