"""What a sweep means, and which variants of methods it makes."""

import pytest

from equida.errors import InputError
from equida.experiments.sweep import Sweep, make_variant, parse_sweep, variants
from equida.runs.variant import Variant, changed_hyperparameters


def test_lists_and_ranges_are_read() -> None:
    assert parse_sweep("r=0.5, 1") == Sweep("r", ("0.5", "1"))
    assert parse_sweep("trade-off=0.5:2.5:0.5").values == (0.5, 1.0, 1.5, 2.0, 2.5)
    assert parse_sweep("alpha=1:2.5:0.5").values == (1.0, 1.5, 2.0, 2.5)
    assert parse_sweep("r=0.1:0.3:0.1").values == (0.1, 0.2, 0.3)
    assert parse_sweep("nsm.r=1:0:-0.5").values == (1.0, 0.5, 0.0)


def test_values_are_read_as_the_type_of_their_field() -> None:
    found = variants(["nsm"], [parse_sweep("eps=0,none,1e-6"), parse_sweep("r=1:0:-0.5,1")], None)
    assert [v.shown["eps"] for v in found[::3]] == [0.0, None, 1e-6]
    assert [v.shown["r"] for v in found[:3]] == [1.0, 0.5, 0.0]
    recipe = parse_sweep("batch_size=18:36:18"), parse_sweep("compile=no"), parse_sweep("freeze=7")
    [small, _] = variants(["nsm"], recipe, None)
    assert small.recipe == {"batch_size": 18, "compile": False, "freeze": "7"}
    assert type(small.recipe["batch_size"]) is int


@pytest.mark.parametrize(
    "text", ["r", "r=", "=1", "r=1:2", "r=1:2:0", "r=2:1:1", "r=0:1:1e-9", "r=1,,2"]
)
def test_what_is_not_understood_is_said_on_one_line(text: str) -> None:
    with pytest.raises(InputError, match=r"^--sweep [^\n]+$"):
        parse_sweep(text)


def test_the_default_value_is_the_plain_method() -> None:
    found = variants(["nsm"], [parse_sweep("r=0.5,1")], "office31")
    assert [dict(v.overrides) for v in found] == [{}, {"r": 1.0}]
    assert [v.title for v in found] == ["NSM (r=0.5)", "NSM (r=1)"]


def test_the_benchmarks_presets_are_its_defaults() -> None:
    assert changed_hyperparameters("nsm", {"trade_off": 1.0}, "office_home") == {}
    assert changed_hyperparameters("nsm", {"trade_off": 2.0}, "office_home") == {"trade_off": 2.0}
    assert changed_hyperparameters("cdan+nsm", {"nsm.r": 1}, "office31") == {"nsm.r": 1.0}


def test_methods_are_varied_by_what_they_have() -> None:
    sweeps = [parse_sweep("trade_off=1,2"), parse_sweep("alpha=1,2")]
    found = variants(["source_only", "cwsm", "nsm"], sweeps, "office31")
    assert [v.title for v in found if v.method == "source_only"] == ["Source only"]
    assert len([v for v in found if v.method == "cwsm"]) == 2
    assert len([v for v in found if v.method == "nsm"]) == 4


def test_a_name_that_is_given_twice_has_the_values_of_both() -> None:
    sweeps = [parse_sweep(text) for text in ("r=0.5", "r=1,0.5")]
    assert [v.shown["r"] for v in variants(["cwsm"], sweeps, None)] == [0.5, 1.0]


def test_a_sweep_may_name_one_method_or_the_recipe() -> None:
    found = variants(["cwsm", "nsm"], [parse_sweep("nsm.r=0.5,1")], None)
    assert [v.title for v in found] == ["CWSM", "NSM (nsm.r=0.5)", "NSM (nsm.r=1)"]
    [small, large] = variants(["nsm"], [parse_sweep("batch_size=18,36")], None)
    assert (small.recipe, large.recipe) == ({"batch_size": 18}, {"batch_size": 36})
    assert small.key() != large.key()


@pytest.mark.parametrize(
    "text", ["gamm=1", "r=2", "r=x", "batch_size=1.5", "precision=8", "compile=1"]
)
def test_values_that_nothing_takes_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        variants(["nsm"], [parse_sweep(text)], "office31")


def test_titles_are_the_papers() -> None:
    assert Variant("max_square").title == "MaxSquare"
    assert Variant("source_only").title == "Source only"


def test_a_prior_is_one_of_all_parts_of_a_composition() -> None:
    found = variants(["source_only", "clusters+nsm"], [parse_sweep("prior=uniform,source")], None)
    assert [(each.title, dict(each.overrides)) for each in found] == [
        ("Source only", {}),
        ("Clusters+NSM (prior=uniform)", {}),
        ("Clusters+NSM (prior=source)", {"clusters.prior": "source", "nsm.prior": "source"}),
    ]
    both = {"prior": "source", "nsm.prior": "estimate"}
    assert make_variant("bnm+nsm", both, None).overrides == {
        "bnm.prior": "source",
        "nsm.prior": "estimate",
    }
    with pytest.raises(InputError, match=r"prior: neither the recipe nor any of cdan has it"):
        variants(["cdan"], [parse_sweep("prior=source")], None)
    with pytest.raises(InputError, match=r"prior_strength is 0\.5, but the prior is 'estimate'"):
        variants(["nsm"], [parse_sweep("prior=estimate"), parse_sweep("prior_strength=0.5")], None)


def test_the_strength_of_an_estimate_is_not_varied() -> None:
    """Before: a grid over priors and strengths was refused as a whole."""
    crossed = [Sweep("prior", ("uniform", "estimate")), Sweep("prior_strength", (0.25, 1.0))]
    found = [dict(variant.shown) for variant in variants(["nsm"], crossed, None)]
    assert found == [
        {"prior": "uniform", "prior_strength": 0.25},
        {"prior": "uniform", "prior_strength": 1.0},
        {"prior": "estimate"},
    ]
    with pytest.raises(InputError, match="is used as it is; leave prior_strength out"):
        variants(["nsm"], [Sweep("prior", ("estimate",)), crossed[1]], None)
