"""Names, compositions and hyper-parameters as a user writes them."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import nn

from equida.errors import InputError
from equida.losses.closed_form import PAPER_BATCH
from equida.methods import (
    METHODS,
    STANDARD,
    Composite,
    Output,
    build_method,
    check_overrides,
    configure,
    default_config,
    register,
)
from equida.paper.tables import ELEVEN
from equida.training.recipe import RECIPES


def head() -> nn.Linear:
    return nn.Linear(6, 3)


def test_the_papers_hyper_parameters_are_the_benchmarks_defaults() -> None:
    nsm = default_config("nsm")
    assert (nsm.trade_off, nsm.r, nsm.alpha, nsm.eps) == (2.0, 0.5, 1.0, None)
    for benchmark in ("office31", "visda2017"):
        assert default_config("nsm", benchmark) == nsm
    home = default_config("nsm", "office_home")
    assert (home.trade_off, home.r, home.alpha, home.eps) == (1.0, 0.5, 2.0, 1e-6)
    for benchmark in ("", "office31", "office_home", "visda2017"):
        assert default_config("cwsm", benchmark) == METHODS["cwsm"].config(trade_off=1.0, r=0.5)
        assert default_config("bnm", benchmark).trade_off == 1.0
    # At the paper's batch size, which the benchmarks' recipes have, that is its own scale.
    for name in ("bnm", "cwsm", "nsm"):
        assert default_config(name).normalize == "transfer"
    assert {RECIPES[name].recipe.batch_size for name in ("features", "paper")} == {PAPER_BATCH}


def test_max_square_weighs_one_over_classes_unless_told() -> None:
    output = Output(torch.zeros(4, 6), torch.zeros(4, 3))
    labels = torch.zeros(4, dtype=torch.int64)
    # Uniform predictions over 3 classes have squares of sum 1/3.
    for overrides, expected in (({}, -1 / 9), ({"trade_off": 2.0}, -2 / 3)):
        terms = build_method("max_square", 6, 3, head(), overrides)(output, labels, output, 0.0)
        assert terms["max_square"].item() == pytest.approx(expected)


def test_a_clash_of_names_gets_the_method_in_front() -> None:
    method = build_method("safn+entropy", 6, 3, head(), {"safn.entropy": 0.1})
    output = Output(torch.randn(4, 6), torch.randn(4, 3))
    terms = method(output, torch.zeros(4, dtype=torch.int64), output, 0.5)
    assert set(terms) == {"norm_source", "norm_target", "entropy", "entropy.entropy"}


def test_composition_says_what_its_parts_say() -> None:
    assert build_method("symnets+nsm", 6, 3, head()).owns_cross_entropy
    assert not build_method("dan+nsm", 6, 3, head()).owns_cross_entropy
    assert build_method("bnm+nsm", 6, 3, head()).source_free
    assert not build_method("dan+nsm", 6, 3, head()).source_free


def test_at_most_one_part_may_predict_by_itself() -> None:
    second = build_method("mcd", 6, 3, head())
    other = build_method("mcd", 6, 3, head())
    with pytest.raises(InputError, match="one and other each predict"):
        Composite({"one": second, "other": other})


def test_benchmark_presets_come_before_overrides() -> None:
    configs = configure("nsm+mcc", {"alpha": 1.5}, "office_home")
    assert (configs["nsm"].alpha, configs["nsm"].eps) == (1.5, 1e-6)
    assert configure("mcc", None, "visda2017")["mcc"].temperature == 3.0


@pytest.mark.parametrize(
    ("name", "key", "text", "expected"),
    [
        ("nsm", "eps", "none", None),
        ("nsm", "eps", "1e-6", 1e-6),
        ("nsm", "trade_off", 1, 1.0),
        ("cdan", "entropy", "True", True),
        ("cdan", "entropy", False, False),
        ("cdan", "width", "64", 64),
        ("bnm", "normalize", "min", "min"),
        ("dan", "dan.estimator", "linear", "linear"),
    ],
)
def test_values_are_read_as_the_fields_type(name: str, key: str, text: Any, expected: Any) -> None:
    got = getattr(configure(name, {key: text})[name], key.split(".")[-1])
    assert got == expected
    assert type(got) is type(expected)


@dataclass(frozen=True)
class PlainConfig:
    weight: float = 1.0
    """A field without a range to search."""
    label: str = "a"
    """A field that is a text."""


def test_plain_fields_and_texts_can_be_overridden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(METHODS, "_entries", dict(METHODS._entries))
    register("plain", PlainConfig, reference="none")(METHODS["source_only"].method)
    config = configure("plain", {"weight": "2", "label": "3"})["plain"]
    assert (config.weight, config.label) == (2.0, "3")
    assert configure("plain", {"weight": -1})["plain"].weight == -1.0
    with pytest.raises(InputError, match=r"plain\.label is 3; it must be a text"):
        configure("plain", {"label": 3})


def test_a_class_with_another_signature_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before: Odd.__init__() takes 1 positional argument but 5 were given, with a traceback."""

    class Odd(METHODS["source_only"].method):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__(None, 2, 2, nn.Linear(2, 2))

    monkeypatch.setattr(METHODS, "_entries", dict(METHODS._entries))
    register("odd", PlainConfig, reference="none")(Odd)
    said = r"Odd\.__init__ takes \(\) .* expected \(config, features, classes, classifier\)"
    with pytest.raises(InputError, match=said):
        build_method("odd", 2, 2, nn.Linear(2, 2))


def test_the_standard_comparison_is_the_papers_table() -> None:
    assert STANDARD == ELEVEN


@pytest.mark.parametrize(
    ("name", "overrides", "message"),
    [
        ("nms", {}, "did you mean 'nsm'"),
        ("nsm+", {}, "method '' does not exist"),
        ("nsm+nsm", {}, "twice"),
        ("nsm", {"lambda": 1.0}, "no hyper-parameter 'lambda'. Known: trade_off, r, alpha, eps"),
        ("nsm", {"tradeoff": 1.0}, "did you mean 'trade_off'"),
        ("cdan+nsm", {"trade_off": 1.0}, "ambiguous.*cdan.trade_off or nsm.trade_off"),
        ("cdan+nsm", {"bnm.trade_off": 1.0}, "no hyper-parameter 'bnm.trade_off'"),
        ("source_only", {"r": 1.0}, "Known: none"),
        ("nsm", {"r": 1.5}, "nsm.r is 1.5; it must be a number from 0 to 1"),
        ("nsm", {"alpha": 0}, "at least 0.001"),
        ("nsm", {"trade_off": "nan"}, "must be a finite number"),
        ("nsm", {"trade_off": "inf"}, "must be a finite number of at least 0"),
        ("nsm", {"trade_off": "much"}, "must be a finite number"),
        ("nsm", {"trade_off": None}, "must be a finite number"),
        ("nsm", {"trade_off": True}, "must be a finite number"),
        ("cdan", {"width": 1.5}, "must be a whole number"),
        ("cdan", {"entropy": "maybe"}, "must be true or false"),
        ("bnm", {"normalize": "max"}, "one of batch, min, sqrt, sum"),
    ],
)
def test_what_a_user_gets_wrong_is_one_line(
    name: str, overrides: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        build_method(name, 6, 3, head(), overrides)
    assert "\n" not in str(caught.value)


def test_a_prior_goes_to_every_part_that_has_one_and_yields_to_that_of_a_part() -> None:
    both = configure("clusters+nsm", {"prior": "source", "prior_strength": "0.25"})
    assert [(each.prior, each.prior_strength) for each in both.values()] == [("source", 0.25)] * 2
    assert check_overrides("nsm+mcc", {"prior": "estimate"}) == {"nsm.prior": "estimate"}
    for given in (
        {"prior": "source", "nsm.prior": "estimate"},
        {"nsm.prior": "estimate", "prior": "source"},
    ):
        assert {part: each.prior for part, each in configure("bnm+nsm", given).items()} == {
            "bnm": "source",
            "nsm": "estimate",
        }
        assert configure("nsm", given)["nsm"].prior == "estimate"
    with pytest.raises(InputError, match=r"'cdan\+mcc' has no hyper-parameter 'prior'"):
        configure("cdan+mcc", {"prior": "estimate"})


def test_a_strength_beside_an_estimate_is_refused() -> None:
    both = {"prior": "estimate", "prior_strength": 0.5}
    for method in ("nsm", "mcc+nsm"):
        with pytest.raises(InputError, match=r"nsm\.prior_strength is 0\.5.*used as it is; leave"):
            configure(method, both)
        configure(method, {"prior": "estimate"})
        configure(method, {"prior": "source", "prior_strength": 0.5})
    configure("bnm+nsm", {"prior": "estimate", "nsm.prior": "source", "nsm.prior_strength": 1})
