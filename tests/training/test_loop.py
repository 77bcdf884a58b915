"""The loop as a whole, on a toy task in memory."""

import dataclasses
import itertools
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from lightning_fabric import Fabric
from lightning_fabric.plugins import MixedPrecision
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from equida.data import ImageDomain, Task, array_domain, make_task
from equida.errors import InputError
from equida.evaluation.figures import FIGURES
from equida.evaluation.validators import VALIDATORS
from equida.methods import METHODS, Method, method_name
from equida.methods.base import Output
from equida.models.network import Network
from equida.training.config import RunConfig
from equida.training.folder import RunFolder
from equida.training.loop import train
from equida.training.objective import Objective
from equida.training.processes import AnyFabric
from equida.training.recipe import Recipe
from equida.training.recorder import Trained

Run = Callable[..., Trained]
CHEAP = [name for name in VALIDATORS if not VALIDATORS[name].costly]
HEAD = {"bottleneck": 0, "dropout": 0.0}


def weights(trained: Trained) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in trained.built.objective.state_dict().items()}


def same(first: Mapping[str, Tensor], second: Mapping[str, Tensor]) -> bool:
    return first.keys() == second.keys() and all(first[k].equal(second[k]) for k in first)


PAPER = {"normalize": "paper"}
"""With batches of 8, the scale in which NSM moves the toy's predictions in a few steps."""


def rows(task: Task) -> tuple[Tensor, Tensor]:
    source: Any = task.source
    return source.rows(range(len(source))).double(), torch.from_numpy(source.labels)


def test_a_run_is_plain_gradient_descent(run: Run, task: Task) -> None:
    """Whole domains as batches, so that their order does not matter; autograd and SGD by hand."""
    trained = run(
        "source_only", iterations=3, batch_size=48, precision="64-true", init="kaiming", **HEAD
    )
    x, y = rows(task)
    torch.manual_seed(0)
    layer = nn.Linear(8, 4)
    nn.init.kaiming_normal_(layer.weight)
    nn.init.zeros_(layer.bias)
    layer = layer.double()
    momenta = [torch.zeros_like(p) for p in layer.parameters()]
    for step in range(3):
        gradients = torch.autograd.grad(F.cross_entropy(layer(x), y), list(layer.parameters()))
        rate = 0.1 * (1 + 0.001 * step) ** -0.75
        with torch.no_grad():
            for parameter, gradient, momentum in zip(
                layer.parameters(), gradients, momenta, strict=True
            ):
                decayed = gradient + 1e-3 * parameter
                momentum.mul_(0.9).add_(decayed)
                parameter.sub_(rate * (decayed + 0.9 * momentum))
    state = weights(trained)
    assert state["network.classifier.weight"].allclose(layer.weight, rtol=1e-10)
    assert state["network.classifier.bias"].allclose(layer.bias, rtol=1e-10, atol=1e-14)


def test_accumulation_averages_gradients(run: Run) -> None:
    """Of a loss that is a mean over samples, two halves make the whole."""
    whole = run("source_only", iterations=1, batch_size=48, precision="64-true", **HEAD)
    halves = run(
        "source_only", iterations=1, batch_size=24, accumulate=2, precision="64-true", **HEAD
    )
    first, second = weights(whole), weights(halves)
    assert all(first[name].allclose(second[name], rtol=1e-12) for name in first)


def test_clipping_bounds_the_step(run: Run) -> None:
    """Without momentum and decay a step is the learning rate times the gradient."""
    plain = {"iterations": 1, "momentum": 0.0, "weight_decay": 0.0, "head_multiplier": 1.0}
    start = weights(run("source_only", **plain | {"learning_rate": 0.0}, **HEAD))
    moved = weights(run("source_only", clip=1e-3, **plain | {"learning_rate": 1.0}, **HEAD))
    step = math.sqrt(sum(float((moved[k] - start[k]).square().sum()) for k in start))
    assert step == pytest.approx(1e-3, rel=1e-3)


def test_bfloat16_is_near_float32_and_its_losses_are_float32(run: Run) -> None:
    seen: list[torch.dtype] = []
    plain = Objective.forward

    def forward(self: Objective, *inputs: Any) -> dict[str, Tensor]:
        """Inside of Fabric's wrapper, which makes everything float32 that comes out."""
        terms = plain(self, *inputs)
        seen.extend(term.dtype for term in terms.values())
        return terms

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Objective, "forward", forward)
        half = run(precision="bf16-mixed", overrides=PAPER)
    assert set(seen) == {torch.float32}
    full = run(overrides=PAPER)
    assert weights(half)["network.classifier.weight"].dtype == torch.float32
    assert half.result["last"]["equity"] == pytest.approx(full.result["last"]["equity"], abs=0.2)
    first, second = weights(half), weights(full)
    assert not same(first, second)
    assert all(first[k].allclose(second[k], atol=0.05) for k in first)


@pytest.mark.parametrize("clip", [0.0, 1e-3])
@pytest.mark.parametrize("method", ["nsm", "bnm", "cdan"])
def test_half_precision_with_a_scaled_loss(method: str, clip: float, task: Task) -> None:
    """As on a GPU: a real scaler, here of a CPU. The clipped step is that of the bare gradient."""
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
    half = Fabric(accelerator="cpu", plugins=[MixedPrecision("16-mixed", "cpu", scaler)])
    steps = {}
    for rate in (0.0, 1.0):
        recipe = Recipe(
            iterations=1,
            batch_size=16,
            learning_rate=rate,
            head_multiplier=1.0,
            momentum=0.0,
            weight_decay=0.0,
            warm_up=0.0,
            clip=clip,
            precision="16-mixed",
            **HEAD,  # type: ignore[arg-type]
        )
        steps[rate] = weights(train(RunConfig(method, recipe), task, fabric=half))
    moved = math.sqrt(
        sum(float((steps[1.0][k] - steps[0.0][k]).square().sum()) for k in steps[0.0])
    )
    assert moved == pytest.approx(clip, rel=1e-2) if clip else moved > 0.01


def test_another_precision_than_the_configs_is_refused(task: Task) -> None:
    """Fabric takes bf16 instead of fp16 on a CPU."""
    recipe = Recipe(iterations=1, batch_size=8, precision="16-mixed")
    with pytest.warns(UserWarning, match="not supported on CPU"):
        given = Fabric(accelerator="cpu", precision="16-mixed")
    with pytest.raises(InputError, match="'16-mixed', which is 'bf16-mixed' on this cpu; choose"):
        train(RunConfig("nsm", recipe), task, fabric=given)


@pytest.mark.parametrize("method", ["symnets", "nsm+symnets"])
def test_label_smoothing_is_refused_where_it_would_do_nothing(method: str, run: Run) -> None:
    with pytest.raises(
        InputError,
        match=r"label_smoothing is 0\.1, but symnets has a source",
    ):
        run(method, label_smoothing=0.1)


def images() -> Task:
    random = np.random.default_rng(0)
    labels = np.arange(24) % 2
    pixels = random.normal(size=(24, 1, 28, 28)).astype(np.float32) + labels[:, None, None, None]
    return make_task(
        array_domain(pixels, labels, name="source"), array_domain(pixels, labels, name="target")
    )


def small_images(run: Run, **fields: Any) -> Trained:
    """LeNet on arrays of images."""
    recipe = Recipe(iterations=2, batch_size=8, bottleneck=4, dropout=0.0, **fields)
    config = RunConfig("bnm", recipe, backbone="lenet")
    return train(config, images(), fabric=Fabric(accelerator="cpu"))


def test_channels_last_computes_the_same(run: Run) -> None:
    layouts = []
    for channels_last in (False, True):
        trained = small_images(run, channels_last=channels_last)
        parameters = trained.built.objective.network.backbone.parameters()
        kernel = next(p for p in parameters if p.ndim == 4 and p.shape[1] > 1)
        assert kernel.is_contiguous(memory_format=torch.channels_last) == channels_last
        layouts.append(weights(trained))
    assert all(layouts[0][k].allclose(layouts[1][k], atol=1e-4) for k in layouts[0])


def test_a_frozen_backbone_does_not_change(run: Run) -> None:
    torch.manual_seed(0)
    frozen = weights(small_images(run, freeze="all"))
    again = weights(small_images(run, freeze="all", learning_rate=0.5))
    name = "network.backbone."
    assert all(frozen[k].equal(again[k]) for k in frozen if k.startswith(name))
    assert not frozen["network.classifier.weight"].equal(again["network.classifier.weight"])


def test_part_of_a_backbone_can_be_frozen(run: Run) -> None:
    trained = small_images(run)
    first = next(name for name, _ in trained.built.objective.network.backbone.named_parameters())
    prefix = first.rpartition(".")[0]
    other = weights(small_images(run, freeze=prefix, learning_rate=0.5))
    start = weights(small_images(run, learning_rate=0.0))
    assert other[f"network.backbone.{first}"].equal(start[f"network.backbone.{first}"])
    changed = [k for k in start if "backbone" in k and not start[k].equal(other[k])]
    assert changed
    with pytest.raises(InputError, match="freeze names 'layer9'"):
        small_images(run, freeze="layer9")


def test_a_comma_too_many_freezes_no_more(run: Run) -> None:
    torch.manual_seed(0)
    expected = weights(small_images(run, freeze="layers.0"))
    assert same(weights(small_images(run, freeze="layers.0,")), expected)
    with pytest.raises(InputError, match="freeze is ' , '; expected all, or prefixes"):
        small_images(run, freeze=" , ")


class Later(Method):
    """A method whose second half has a term and a head of its own."""

    def __init__(self, config: Any, features: int, classes: int, classifier: nn.Module) -> None:
        super().__init__(config, features, classes, classifier)
        self.head = nn.Linear(features, 1)

    def forward(
        self, source: Output, labels: Tensor, target: Output, progress: float
    ) -> dict[str, Tensor]:
        if progress < 0.5:
            return {"early": source.logits.new_ones(())}
        return {"late": 3.0 + 0.0 * self.head(target.features).sum()}


def test_terms_that_come_and_go(run: Run, tmp_path: Path) -> None:
    """Each has the mean of the steps that have it; a head may get its first gradient late."""
    run(method_name(Later), folder=tmp_path / "run", log_every=12, warm_up=0.0)
    lines = (tmp_path / "run" / "log.jsonl").read_text().splitlines()
    terms = [entry["terms"] for entry in map(json.loads, lines) if "terms" in entry]
    assert [each.get("early") for each in terms] == [1.0, 1.0, None]
    assert [each.get("late") for each in terms] == [None, 3.0, 3.0]


def test_nothing_left_to_train_is_said(run: Run, task: Task) -> None:
    from equida.training.optimizer import sgd

    with pytest.raises(InputError, match="nothing is left to train"):
        sgd(nn.Identity(), [nn.Identity()], Recipe())


@pytest.mark.slow(reason="trains several times")
def test_compilation_computes_the_same(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the backend that needs no C++ compiler."""
    compiled = []
    plain = nn.Module.compile

    def compile_eagerly(self: nn.Module) -> None:
        compiled.append(type(self).__name__)
        plain(self, backend="eager")

    monkeypatch.setattr(nn.Module, "compile", compile_eagerly)
    first, second = weights(run(iterations=2)), weights(run(iterations=2, compile=True))
    assert compiled == ["Network"]
    assert all(first[k].allclose(second[k], atol=1e-6) for k in first)


@pytest.mark.slow(reason="trains several times")
@pytest.mark.parametrize("method", ["nsm", "dann", "mcd+jan", "symnets+nsm"])
def test_both_domains_together_train_as_one_after_the_other(
    run: Run, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """In float64, with batch normalisation and dropout, whatever the method does with them."""
    options = {"iterations": 50, "precision": "64-true", "bottleneck": 16, "dropout": 0.5}
    together = weights(run(method, **options))

    def one_by_one(self: Network, source: Tensor, target: Tensor) -> Any:
        return self(source), self(target)

    monkeypatch.setattr(Network, "both", one_by_one)
    apart = weights(run(method, **options))
    assert together.keys() == apart.keys()
    for name, value in together.items():
        assert value.allclose(apart[name], rtol=1e-6, atol=1e-6), name


def test_held_out_samples_are_not_trained_on(run: Run, task: Task) -> None:
    trained = run(holdout=0.25, iterations=2)
    source, held = trained.built.source, trained.built.held_out
    assert source is not None
    assert held is not None
    assert (len(source), len(held)) == (36, 12)
    assert held.class_counts().tolist() == [3, 3, 3, 3]
    names = {domain.identity(i) for domain in (source, held) for i in range(len(domain))}
    assert len(names) == 48


def test_a_target_without_labels_has_no_column_that_needs_them(
    run: Run, unlabelled: Task, tmp_path: Path
) -> None:
    result = run(on=unlabelled, folder=tmp_path).result
    text = json.dumps(result) + (tmp_path / "log.jsonl").read_text()
    assert '"accuracy":' not in text
    assert "mean_class_accuracy" not in text
    assert "confusion" not in result
    assert set(result["picks"]) == set(CHEAP)


def test_picks_are_the_best_evaluations(run: Run, tmp_path: Path) -> None:
    result = run(folder=tmp_path, iterations=20).result
    log = [line["evaluation"] for line in RunFolder(tmp_path).read_log() if "evaluation" in line]
    assert [line["step"] for line in log] == [4, 8, 12, 16, 20]
    for name in CHEAP:
        best = max(line[name] for line in log)
        assert result["picks"][name][name] == best
        latest = max(line["step"] for line in log if line[name] == best)
        assert result["picks"][name]["step"] == latest
    assert result["picks"]["oracle"]["accuracy"] == max(line["accuracy"] for line in log)
    assert result["last"] == log[-1]
    costly = set(VALIDATORS) - set(CHEAP)
    assert set(log[0]) == {"step", *FIGURES} - costly


def test_what_a_validator_likes_is_kept(run: Run, tmp_path: Path) -> None:
    """Its weights and predictions, with and without a folder."""
    fields: dict[str, Any] = {"learning_rate": 0.3, "iterations": 12, "keep": "snd"}
    trained = run(folder=tmp_path, overrides=PAPER, **fields)
    best = trained.result["picks"]["snd"]
    assert best["step"] < 12, "the toy must be one where the last is not the best"
    assert trained.result["kept"] == "snd"
    earlier = run(overrides=PAPER, folder=None, **fields)
    assert same(weights(trained), weights(earlier))
    assert same(RunFolder(tmp_path).load_tensors("model.safetensors"), weights(trained))
    accuracy = torch.tensor(trained.result["confusion"]).diagonal().sum() / 48
    assert float(accuracy) == pytest.approx(best["accuracy"])


@pytest.mark.parametrize("keep", ["source_accuracy", "cluster_agreement", "dev"])
def test_without_source_data_no_validator_that_needs_them_chooses(keep: str) -> None:
    with pytest.raises(InputError, match=f"keep is '{keep}', but there are no source data"):
        RunConfig("nsm", Recipe(keep=keep), from_run="run").check()


@pytest.mark.parametrize("keep", ["accuracy", "oracle", "best"])
def test_only_validators_select(keep: str, run: Run) -> None:
    with pytest.raises(InputError, match=f"keep is '{keep}'; it must be one of last, source_acc"):
        run(keep=keep)


def test_target_labels_choose_nothing(run: Run, task: Task) -> None:
    """With labels that mean nothing every validator gives the same scores and the same pick."""
    labels = np.random.default_rng(1).integers(0, 4, len(task.target))
    nonsense = dataclasses.replace(task, target=task.target.relabel(task.classes, labels))
    true, other = run(keep="knn_balance").result, run(on=nonsense, keep="knn_balance").result
    assert true["last"]["accuracy"] != other["last"]["accuracy"]
    for name in CHEAP:
        for chosen in (true, other):
            assert name in chosen["last"]
        assert true["last"][name] == other["last"][name]
        assert true["picks"][name]["step"] == other["picks"][name]["step"]


@pytest.mark.parametrize("keep", [name for name in VALIDATORS if VALIDATORS[name].costly])
def test_a_costly_validator_is_computed_where_it_chooses(keep: str, run: Run) -> None:
    result = run(keep=keep, iterations=8).result
    assert set(result["picks"]) == {*CHEAP, keep, "oracle"}


def test_an_observer_may_see_predictions(run: Run, task: Task) -> None:
    """Those of both domains with features, and the score that the run records of them."""

    class Viewer:
        def __init__(self) -> None:
            self.scores: list[float] = []

        def logged(self, step: int, terms: Any) -> None: ...
        def evaluated(self, step: int, figures: Mapping[str, float]) -> None:
            assert figures["snd"] == self.scores[-1]

        def predictions(self, step: int, target: Any, source: Any) -> None:
            assert target.features.shape == (48, 6)
            assert source.features.shape == (48, 6)
            self.scores.append(VALIDATORS["snd"].score(target, source))

    viewer = Viewer()
    run(observers=(viewer,))
    assert len(viewer.scores) == 3


def test_a_validator_of_rows_cannot_choose_among_images(fabric: AnyFabric) -> None:
    random = np.random.default_rng(0)
    images = ImageDomain("photos", [f"{i}.jpg" for i in range(8)], name="photos")
    labelled = images.relabel(("a", "b"), random.integers(0, 2, 8))
    config = RunConfig("nsm", Recipe(keep="knn"), backbone="lenet")
    with pytest.raises(InputError, match="keep is 'knn', which needs rows"):
        train(config, Task("p2p", labelled, images.relabel(("a", "b"), None), ("a", "b")))


def test_the_last_step_is_always_evaluated(run: Run) -> None:
    assert run(iterations=3, evaluate_every=100, log_every=100).result["last"]["step"] == 3


def test_a_batch_may_be_larger_than_a_domain(run: Run) -> None:
    assert run(batch_size=64, iterations=3).result["last"]["step"] == 3


class Synchronisations(TorchDispatchMode):
    """Counts what makes the host wait for a device."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> object:
        if func is torch.ops.aten._local_scalar_dense.default:
            self.count += 1
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("method", ["nsm", "bnm", "cwsm", "cdan", "mcc", "safn"])
@pytest.mark.parametrize("clip", [0.0, 1.0])
def test_only_logging_steps_wait_for_the_device(
    method: str, clip: float, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten steps more between two logging steps bring no synchronisation more."""
    fetched: list[Tensor] = []

    def cpu(tensor: Tensor) -> Tensor:
        fetched.append(tensor)  # on a CPU this dispatches nothing
        return tensor.to("cpu")

    monkeypatch.setattr(Tensor, "cpu", cpu)
    counts = []
    for steps in (10, 20):
        fetched.clear()
        with Synchronisations() as mode:
            run(method, iterations=steps, log_every=100, evaluate_every=100, clip=clip)
        counts.append((mode.count, len(fetched)))
    assert counts[0] == counts[1]
    assert counts[0][1] > 0


def poisoned(at: int) -> Task:
    """Sixteen rows in each domain, of which the one at `at` is not finite."""
    random = np.random.default_rng(0)
    labels = np.arange(16) % 4
    source, target = random.normal(size=(2, 16, 8))
    source[at, 3] = target[at, 3] = np.nan
    return make_task(
        array_domain(source, labels, name="source"), array_domain(target, labels, name="target")
    )


@pytest.mark.parametrize("method", [m for m in METHODS if not METHODS[m].method.prepares])
def test_a_loss_that_is_not_finite_stops_with_step_term_and_samples(
    method: str, run: Run, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"loss term '\w+' is nan at step ") as stopped:
        run(method, on=poisoned(5), folder=tmp_path, iterations=50, log_every=2, evaluate_every=2)
    found = json.loads((tmp_path / "diverged.json").read_text())
    assert found["term"] in str(stopped.value)
    assert any("row 5" in names for names in found["samples"].values())
    assert f"at step {found['step']}, on 16 samples such as source row" in str(stopped.value)
    assert f"; target {found['samples']['target'][0]}" in str(stopped.value)
    assert "\n" not in str(stopped.value)
    assert not (tmp_path / "result.json").exists()


@pytest.mark.parametrize("method", METHODS)
def test_a_learning_rate_that_is_too_large_ends_in_one_line(
    method: str, run: Run, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"loss term '\w+' is (nan|-?inf) at step \d+"):
        run(method, folder=tmp_path, learning_rate=1e30, log_every=1, evaluate_every=12)
    assert json.loads((tmp_path / "diverged.json").read_text())["step"] < 12


def test_the_last_good_checkpoint_and_the_log_survive_a_divergence(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from equida.methods.nsm import NSM

    plain, calls = NSM.forward, itertools.count()

    def sometimes(self: NSM, *inputs: Any) -> dict[str, Tensor]:
        terms = plain(self, *inputs)
        return {"nsm": terms["nsm"] * (math.inf if next(calls) == 9 else 1.0)}

    monkeypatch.setattr(NSM, "forward", sometimes)
    with pytest.raises(InputError, match=r"-inf at step 9.*the last good checkpoint is kept"):
        run(folder=tmp_path, warm_up=0.0)
    state = RunFolder(tmp_path).load_checkpoint()
    assert state is not None
    assert state["step"] == 8
    assert all(value.isfinite().all() for value in state["objective"].values())
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [2, 4, 4, 6, 8, 8]
    resumed = weights(run(folder=tmp_path, warm_up=0.0))
    monkeypatch.setattr(NSM, "forward", plain)
    assert same(resumed, weights(run(warm_up=0.0)))


class Stop(Exception):
    pass


class StopAt:
    def __init__(self, step: int) -> None:
        self.step = step

    def stepped(self, step: int) -> None:
        if step == self.step:
            raise Stop

    def logged(self, step: int, terms: Mapping[str, float]) -> None: ...
    def evaluated(self, step: int, figures: Mapping[str, float]) -> None: ...


@pytest.mark.slow(reason="trains several times")
@pytest.mark.parametrize("method", ["nsm", "cdan", "mcd"])
@pytest.mark.parametrize("keep", ["last", "bnm"])
def test_stopped_anywhere_and_resumed_the_run_is_the_same(
    method: str, keep: str, run: Run, tmp_path: Path
) -> None:
    expected = run(method, keep=keep, accumulate=2)
    for step in (1, 4, 5, 11, 12):
        with pytest.raises(Stop):
            run(method, keep=keep, accumulate=2, folder=tmp_path, observers=(StopAt(step),))
    trained = run(method, keep=keep, accumulate=2, folder=tmp_path)
    assert same(weights(trained), weights(expected))
    assert trained.result["picks"] == expected.result["picks"]
    steps = [line["step"] for line in RunFolder(tmp_path).read_log()]
    assert steps == [2, 4, 4, 6, 8, 8, 10, 12, 12]
    assert not (tmp_path / "checkpoint.pt").exists()


def test_another_config_does_not_go_on_with_it(run: Run, tmp_path: Path) -> None:
    with pytest.raises(Stop):
        run(folder=tmp_path, observers=(StopAt(5),))
    with pytest.raises(InputError, match="unfinished run of another configuration"):
        run(folder=tmp_path, learning_rate=0.5)


def test_a_finished_run_is_not_written_over(run: Run, tmp_path: Path) -> None:
    run(folder=tmp_path)
    with pytest.raises(InputError, match="holds a finished run"):
        run(folder=tmp_path)


@pytest.mark.parametrize("method", METHODS)
def test_a_finished_run_is_adapted_without_source_or_the_method_is_refused(
    method: str, run: Run, task: Task, fabric: AnyFabric, tmp_path: Path
) -> None:
    before = run("source_only", iterations=2, folder=tmp_path)
    config = dataclasses.replace(before.built.config, method=method, from_run=str(tmp_path))
    with_source = {"dan", "dann", "jan", "cdan", "safn", "symnets", "mcd", "mdd", "source_only"}
    if method in with_source | {"spl", "clusters"}:
        with pytest.raises(InputError, match=f"method '{method}' needs source data"):
            train(config, task, fabric=fabric)
        return
    after = train(config, task, fabric=fabric)
    key = "network.bottleneck.0.weight"
    assert not weights(after)[key].equal(weights(before)[key])
