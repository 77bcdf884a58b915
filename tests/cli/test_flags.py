"""Requests have the fields that the flags of their verbs have, and nothing is lost in between."""

import dataclasses
import importlib
import typing
from dataclasses import dataclass

import pytest

from equida.cli._flags import request_from
from equida.data.feature_cache import ExtractionOptions
from equida.experiments.compare import CompareRequest
from equida.experiments.run import BenchRequest
from equida.experiments.tune import TuneRequest
from equida.training.request import AdaptRequest

RENAMED = {"from_run": "from_", "cache": "no_cache", "run": "", "recipe_params": ""}
"""Fields that are filled by another flag, or by several."""
OWN = {
    "adapt": {"quiet", "tensorboard"},
    "bench": {"quiet", "format"},
    "compare": {"quiet", "format"},
    "tune": {"quiet"},
    "features": {"images", "out", "backbone", "weights", "data", "domain", "devices", "cluster"},
}
"""What the verb does itself."""


@pytest.mark.parametrize(
    ("verb", "requests", "no_flags"),
    [
        ("adapt", [AdaptRequest], {"method_params", "purpose"}),
        ("bench", [BenchRequest], set()),
        ("compare", [CompareRequest], set()),
        ("tune", [AdaptRequest, TuneRequest], None),
        ("features", [ExtractionOptions], set()),
    ],
)
def test_flags_and_fields_have_the_same_names(
    verb: str, requests: list[type], no_flags: set[str] | None
) -> None:
    flags = set(typing.get_type_hints(importlib.import_module(f"equida.cli.{verb}").Arguments))
    fields = {name for request in requests for name in typing.get_type_hints(request)}
    renamed = {RENAMED[name] for name in fields & set(RENAMED)}
    assert flags - fields - renamed == OWN[verb]
    if no_flags is not None:  # a search has no use for some fields of a run
        assert fields - flags - set(RENAMED) == no_flags


@dataclass
class Request:
    """A request of three kinds of fields."""

    out: str | None
    cluster: str
    seed: int = 0
    purpose: str = ""


def test_what_was_not_given_is_none_where_that_is_a_value() -> None:
    given = dataclasses.make_dataclass("Flags", ["out", "cluster", "seed", "quiet"])
    assert request_from(Request, given("", "", 7, True)) == Request(None, "", 7)
    made = request_from(Request, given("a", "b", 7, True), out="c", purpose="tune")
    assert made == Request("c", "b", 7, "tune")
