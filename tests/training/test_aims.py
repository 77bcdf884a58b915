"""The class shares that methods aim at: where they come from, and that they stay what they were."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from equida.class_shares import shares_text
from equida.clustering import cluster_labels, estimate_aim
from equida.clustering import shares as label_shares
from equida.data import Task, array_domain, make_task
from equida.errors import InputError
from equida.evaluation.shares import estimate_shares, source_predictions
from equida.fields import specs
from equida.methods import METHODS, Output, build_method
from equida.methods.aiming import AimingMethod
from equida.methods.base import TaskRows
from equida.training import aims as module
from equida.training import target_check
from equida.training.config import Aim, RunConfig
from equida.training.loop import train
from equida.training.recipe import Recipe
from equida.training.recorder import Trained

Run = Callable[..., Trained]
SMALL = Recipe(iterations=4, batch_size=8, bottleneck=6, evaluate_every=2, log_every=2)
AIMING = ["nsm", "cwsm", "bnm", "fbnm", "im"]


def skewed(labelled: bool = True) -> Task:
    """Four blobs: equal shares in the source, most of the target in the first."""
    random = np.random.default_rng(0)
    centres = 4.0 * random.normal(size=(4, 8))
    names = ["ant", "bee", "cat", "dog"]
    domains = []
    for sizes, shift, known in (((20, 20, 20, 20), 0.0, True), ((40, 12, 6, 2), 0.5, labelled)):
        labels = np.repeat(np.arange(4), sizes)
        rows = centres[labels] + shift + random.normal(size=(len(labels), 8))
        name = "target" if shift else "source"
        domain = array_domain(rows, labels if known else None, classes=names, name=name)
        domains.append(domain)
    return make_task(*domains)


def aims_of(trained: Trained) -> Mapping[str, Any]:
    recorded: Mapping[str, Any] = trained.result["aims"]
    return recorded


def test_exactly_the_methods_with_equity_have_a_prior() -> None:
    found = {name for name in METHODS if issubclass(METHODS[name].method, AimingMethod)}
    assert found == {*AIMING, "clusters"}
    for name in found:
        assert {"prior", "prior_strength"} <= set(specs(METHODS[name].config))


@pytest.mark.parametrize("name", AIMING)
def test_a_method_uses_the_shares_that_it_is_given(name: str) -> None:
    logits = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    output, labels = Output(torch.zeros(6, 5), logits), torch.zeros(6, dtype=torch.long)
    values = []
    for shares in (None, [0.25] * 4, [0.7, 0.1, 0.1, 0.1]):
        method = build_method(name, 5, 4, torch.nn.Linear(5, 4))
        assert isinstance(method, AimingMethod)
        if shares:
            method.aim_at(shares)
        values.append(next(iter(method(output, labels, output, 0.5).values())).item())
    assert values[0] == pytest.approx(values[1], rel=1e-5)
    assert values[0] != pytest.approx(values[2], rel=1e-3)


@pytest.mark.slow(reason="clusters many rows")
def test_cluster_labels_use_the_shares(run: Run) -> None:
    """A run gives them to the method, and the method to the labels."""
    trained = run("clusters", on=skewed(), overrides={"prior": "oracle", "prior_strength": 0.75})
    aim, true = aims_of(trained)["clusters"], np.array([40, 12, 6, 2]) / 60
    assert aim["shares"] == pytest.approx(true.tolist(), abs=1e-6)
    assert aim["strength"] == 0.75
    shares = 0.25 / 4 + 0.75 * true
    random = torch.Generator().manual_seed(0)
    source, target = (torch.randn(60, 8, generator=random) for _ in range(2))
    labels = torch.arange(60) % 4
    method = build_method("clusters", 5, 4, torch.nn.Linear(5, 4))
    assert isinstance(method, AimingMethod)
    rows = TaskRows(source, labels, target, seed=3)
    plain = cluster_labels(source, labels, target, 4, 3)
    assert torch.equal(method.prepare(rows)["labels"], plain)
    method.aim_at(shares.tolist())
    aimed = method.prepare(rows)["labels"]
    expected = cluster_labels(source, labels, target, 4, 3, shares=torch.tensor(shares))
    torch.testing.assert_close(aimed, expected, atol=1e-4, rtol=0)
    assert aimed.mean(0)[0] > plain.mean(0)[0] + 0.005


def test_shares_that_are_known_are_mixed_with_uniform_ones(run: Run) -> None:
    """By hand: (1 - s) / 4 + s times the shares of the target, (40, 12, 6, 2) / 60."""
    trained = run(
        "nsm+cwsm", on=skewed(), overrides={"nsm.prior": "oracle", "cwsm.prior": "oracle"}
    )
    true = [40 / 60, 12 / 60, 6 / 60, 2 / 60]
    recorded = aims_of(trained)
    assert list(recorded) == ["nsm", "cwsm"]
    assert recorded["nsm"]["shares"] == pytest.approx(true, abs=1e-6)
    assert recorded["nsm"]["aim"] == pytest.approx([0.125 + 0.5 * p for p in true], abs=1e-6)
    assert recorded["cwsm"]["aim"] == pytest.approx([0.0625 + 0.75 * p for p in true], abs=1e-6)
    assert recorded["nsm"]["uses_target_labels"] is True
    stored = trained.built.config.to_json()["aims"]
    assert stored == recorded
    method: Any = trained.built.objective.method
    for name in ("nsm", "cwsm"):
        aim = method.part(name).shares.tolist()
        assert aim == pytest.approx(recorded[name]["aim"], abs=1e-6)


def test_the_source_and_given_shares(run: Run) -> None:
    by_source = aims_of(run("bnm", on=skewed(), overrides={"prior": "source"}))["bnm"]
    assert by_source["shares"] == pytest.approx([0.25] * 4)
    assert by_source["uses_target_labels"] is False
    named = {"Cat": 0.6, "ant": 0.4}
    overrides = {"prior": json.dumps(named), "prior_strength": 1.0}
    assert aims_of(run("im", on=skewed(), overrides=overrides))["im"]["aim"] == [0.4, 0.0, 0.6, 0.0]
    listed = run("fbnm", on=skewed(), overrides={"prior": "0.1,0.2,0.3,0.4", "prior_strength": 1})
    assert aims_of(listed)["fbnm"]["aim"] == [0.1, 0.2, 0.3, 0.4]


def test_uniform_shares_leave_no_trace(run: Run) -> None:
    plain, asked = run("nsm", on=skewed()), run("nsm", on=skewed(), overrides={"prior": "uniform"})
    assert "aims" not in plain.result
    assert "aims" not in asked.result
    assert plain.result["last"] == asked.result["last"]


def test_an_estimate_comes_from_the_features_and_is_used_as_it_is(run: Run) -> None:
    task = skewed(labelled=False)
    recorded = aims_of(run("nsm", on=task, overrides={"prior": "estimate"}))["nsm"]
    rows = [np.asarray(d.values, np.float64) for d in (task.source, task.target)]  # type: ignore[attr-defined]
    expected = estimate_shares(rows[0], np.repeat(np.arange(4), 20), rows[1], 4)
    assert recorded["aim"] == pytest.approx(expected.shares, abs=2e-4)
    assert recorded["shares"] == recorded["aim"]
    assert recorded["agreement"] == pytest.approx(expected.agreement, abs=2e-3)
    assert recorded["imbalance"] == pytest.approx(expected.imbalance, abs=2e-3)
    assert recorded["trust"] == recorded["agreement"] > 0.5, "cluster labels are not asked"
    assert recorded["aim"][0] > 0.5
    assert recorded["uses_target_labels"] is False


def test_cluster_labels_are_asked_once_where_the_first_two_estimates_disagree(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(label_shares, "ENOUGH_AGREEMENT", 1.0)
    asked: list[int] = []

    def watched(source: Any, labels: Any, target: Any, *rest: Any) -> Any:
        asked.append(len(source))
        return estimate_aim(source, labels, target, *rest)

    monkeypatch.setattr(module, "estimate_aim", watched)
    task = skewed(labelled=False)
    overrides = {"nsm.prior": "estimate", "bnm.prior": "estimate"}
    recorded = aims_of(run("nsm+bnm", on=task, overrides=overrides))
    assert recorded["nsm"] == recorded["bnm"]
    again = aims_of(run("cwsm", on=task, overrides={"prior": "estimate"}))["cwsm"]
    assert asked == [80]
    assert again == recorded["nsm"]
    rows = [np.asarray(d.values, np.float64) for d in (task.source, task.target)]  # type: ignore[attr-defined]
    labels = np.repeat(np.arange(4), 20)
    q1 = estimate_shares(rows[0], labels, rows[1], 4).cluster_shares
    x, y, others = (torch.from_numpy(a) for a in (rows[0], labels, rows[1]))
    found = cluster_labels(x, y, others, 4, expected=torch.full((4,), 0.25)).argmax(1)
    q3 = found.bincount(minlength=4).numpy() / len(rows[1])
    trust = 1 - ((q1 - q3) ** 2).sum() / 2 / (((q1 + q3) / 2 - 0.25) ** 2).sum()
    trust = min(trust, 0.99)
    assert again["trust"] == pytest.approx(trust, abs=1e-5)
    assert again["aim"] == pytest.approx((1 - trust) / 4 + trust * q3, abs=1e-5)


def test_an_estimate_looks_at_evenly_spaced_rows_of_large_domains(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def counted(source: Any, labels: Any, target: Any, classes: int) -> Any:
        seen.extend((len(source), len(labels), len(target)))
        assert set(labels.tolist()) == {0, 1, 2, 3}
        return source_predictions(source, labels, target, classes)

    monkeypatch.setattr(target_check, "source_predictions", counted)
    monkeypatch.setattr(target_check, "MOST_ROWS", 30)

    def watched(source: Any, labels: Any, target: Any, *rest: Any) -> Any:
        seen.extend((len(source), len(labels), len(target)))
        return estimate_aim(source, labels, target, *rest)

    monkeypatch.setattr(module, "estimate_aim", watched)
    run("nsm", on=skewed(), overrides={"prior": "estimate"})
    assert seen == [30] * 6


class Interrupt(Exception):
    pass


class Interrupting:
    """Ends the run after its first checkpoint."""

    def logged(self, step: int, terms: Mapping[str, float]) -> None: ...
    def evaluated(self, step: int, figures: Mapping[str, float]) -> None: ...

    def stepped(self, step: int) -> None:
        if step == 3:
            raise Interrupt


@pytest.mark.slow(reason="trains several times")
def test_a_continued_run_keeps_its_shares_and_is_bit_identical(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = RunConfig("nsm", SMALL, overrides={"prior": "estimate"})
    whole = train(config, skewed(), folder=tmp_path / "whole")
    with pytest.raises(Interrupt):
        train(config, skewed(), folder=tmp_path / "broken", observers=(Interrupting(),))

    def refused(*_: Any) -> Any:
        raise AssertionError("estimated again")

    monkeypatch.setattr(target_check, "source_predictions", refused)
    continued = train(config, skewed(), folder=tmp_path / "broken")
    assert continued.result["aims"] == whole.result["aims"]
    first, second = (tmp_path / name / "model.safetensors" for name in ("whole", "broken"))
    assert first.read_bytes() == second.read_bytes()
    stored = RunConfig.from_json(json.loads((tmp_path / "broken" / "config.json").read_text()))
    assert stored.to_json()["aims"] == whole.result["aims"]
    again = train(stored, skewed())
    assert again.result["aims"] == whole.result["aims"]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"prior": "0.5,0.5"}, r"nsm\.prior has 2 shares; expected 4, one for each class"),
        ({"prior": '{"ant": 0.5, "cow": 0.5}'}, r"nsm\.prior: 'cow' not among the 4 classes"),
        ({"prior": "0.5,0.5,0.5,0.5"}, r"4 shares sum to 2; expected 1, or whole counts"),
        ({"prior": "1.5,-0.5,0,0"}, r"the share of class 1 is -0\.5; expected 0 or more"),
        ({"prior": "guess"}, r"nsm\.prior is 'guess'; it must be uniform, source, estimate"),
        ({"prior": "oracle"}, r"'oracle \(uses target labels\)', but target has no labels"),
        ({"prior": "estimate", "r": 0.0}, r"nsm\.prior is 'estimate', but r is 0.*r above 0"),
        ({"prior_strength": 1.5}, r"prior_strength is 1\.5; it must be a number from 0 to 1"),
    ],
)
def test_what_cannot_be_aimed_at_is_one_line(
    run: Run, overrides: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message) as error:
        run("nsm", on=skewed(labelled=False), overrides=overrides)
    assert "\n" not in str(error.value)


class OtherRank:
    """Fabric on a process that is not the first: what it gets is what the first one sends."""

    is_global_zero = False

    def __init__(self, sent: Any) -> None:
        self.sent = sent

    def broadcast(self, _: Any) -> Any:
        return self.sent, ""


def test_every_process_gets_what_the_first_one_finds() -> None:
    config = RunConfig("nsm", SMALL, overrides={"prior": "estimate"})
    sent = {"nsm": Aim("estimate", 1.0, [0.4, 0.2, 0.2, 0.2], [0.4, 0.2, 0.2, 0.2], False)}
    other: Any = OtherRank(sent)
    nothing: Any = None  # no network: this process must not estimate
    assert module.find_aims(config, skewed(), other, nothing) == sent


def test_recorded_shares_that_do_not_fit_are_refused() -> None:
    aims = {"nsm": Aim("estimate", 1.0, [0.5, 0.5], [0.5, 0.5], False)}
    config = RunConfig("nsm", SMALL, overrides={"prior": "estimate"}, aims=aims)
    with pytest.raises(InputError, match=r"aims\.nsm\.aim has 2 shares .* expected 4 shares"):
        train(config, skewed())


def test_what_is_asked_for_is_said_where_all_parts_ask_for_the_same() -> None:
    aim = Aim("[0.5, 0.3, 0.2]", 1.0, [0.5, 0.3, 0.2], [0.5, 0.3, 0.2], False)
    both = build_method("bnm+nsm", 5, 3, torch.nn.Linear(5, 3))
    assert module.aim_of(both, {}) == pytest.approx([1 / 3] * 3)
    assert module.aim_of(both, {"bnm": aim, "nsm": aim}) == [0.5, 0.3, 0.2]
    assert module.aim_of(both, {"nsm": aim}) is None  # BNM still aims at equal sizes
    assert module.aim_of(build_method("dann+nsm", 5, 3, torch.nn.Linear(5, 3)), {"nsm": aim}) == [
        0.5,
        0.3,
        0.2,
    ]
    assert module.aim_of(build_method("dann", 5, 3, torch.nn.Linear(5, 3)), {}) is None


def test_what_is_mixed_into_given_shares_and_what_they_leave_out_is_said() -> None:
    """Before: 0.5 became 0.417, and a class that a file did not name had no share, silently."""
    classes = ["mug", "pen", "cup"]
    given = Aim(shares_text({"mug": 0.5, "pen": 0.5}, "prior"), 0.5, [], [0.4, 0.4, 0.2], False)
    (line,) = module.aim_lines({"nsm": given}, classes)
    assert "by the list that was given (which has none for cup), mixed with equal ones by" in line
    assert "prior_strength 0.5 (1 takes them as they are): mug 40.0 % to cup 20.0 %" in line
    full = Aim(shares_text([0.5, 0.3, 0.2], "prior"), 1.0, [], [0.5, 0.3, 0.2], False)
    (line,) = module.aim_lines({"nsm": full}, classes)
    assert "by the list that was given: mug 50.0 %" in line


@pytest.mark.parametrize(
    ("missing", "named"),
    [(1, "m0"), (3, "m0, m1 and m2"), (4, "m0, m1, m2 and m3"), (5, "m0, m1, m2 and 2 others")],
)
def test_classes_that_given_shares_leave_out(missing: int, named: str) -> None:
    """Before: "and 1 others"."""
    absent = [f"m{number}" for number in range(missing)]
    aim = Aim('{"mug": 0.5, "pen": 0.5}', 1.0, [], [0.5, 0.5, *[0.0] * missing], False)
    (line,) = module.aim_lines({"nsm": aim}, ["mug", "pen", *absent])
    assert f"(which has none for {named}): mug 50.0 %" in line
