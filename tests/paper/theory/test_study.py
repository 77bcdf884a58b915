"""A whole study with little budget: verdicts, the record, and what it leaves alone."""

import dataclasses
import json
from pathlib import Path
from typing import Any, get_args

import pytest
import torch

from equida.paper.theory.case_study import case_study_checks
from equida.paper.theory.checks import QUICK, Check, CheckVerdict, Context, verdict_fields
from equida.paper.theory.identities import identity_checks
from equida.paper.theory.landscape import landscape_checks
from equida.paper.theory.study import TheoryStudy, run_theory, write_record

CONTEXT = Context(QUICK)
pytestmark = pytest.mark.slow(reason="a whole study of the paper's theory")


@pytest.fixture(scope="module")
def study() -> TheoryStudy:
    return run_theory(CONTEXT)


def test_everything_but_time_comes_out_as_documented(study: TheoryStudy) -> None:
    assert [check.id for check in study.checks if not check.as_documented] == []
    assert study.as_documented


def test_verdicts_on_the_paper(study: TheoryStudy) -> None:
    by_verdict: dict[str, set[str]] = {}
    for check in study.checks:
        if not check.id.startswith("complexity.") or check.id == "complexity.sentence":
            by_verdict.setdefault(check.verdict, set()).add(check.id)
    assert by_verdict["paper wrong"] == {
        "case-study.2b",
        "cwsm.r1.equity",
        "cwsm.r.peak",
        "nsm.r.vertices",
        "nsm.eps.rule",
        "nsm.alpha.zero",
        "complexity.sentence",
    }
    assert by_verdict["differs"] == {"table-1.P3.nuclear-norm", "table-3.P3.nuclear-norm"}
    assert {f"theorem-{number}" for number in range(1, 7)} <= by_verdict["holds"]
    assert "theorem-6.above" in by_verdict["paper silent"]


def test_ids_are_unique_and_every_field_is_filled(study: TheoryStudy) -> None:
    assert len({check.id for check in study.checks}) == len(study.checks)
    for check in study.checks:
        assert check.verdict in get_args(CheckVerdict)
        texts = (check.claim, check.reference, check.tried, check.found, check.explanation)
        assert all(text and text == text.strip() for text in texts), check.id
        assert check.explanation.endswith("."), check.id


def test_threads_are_as_before(study: TheoryStudy) -> None:
    before = torch.get_num_threads()

    def failing(_: str) -> None:
        assert torch.get_num_threads() == 1
        raise KeyboardInterrupt

    torch.set_num_threads(2)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_theory(Context(QUICK, note=failing))
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_the_record_is_strict_json_and_written_whole(study: TheoryStudy, tmp_path: Path) -> None:
    write_record(study, tmp_path / "theory.json")
    assert [path.name for path in tmp_path.iterdir()] == ["theory.json"]

    def refuse(constant: str) -> Any:
        raise AssertionError(f"{constant} is not JSON")

    record = json.loads((tmp_path / "theory.json").read_text(), parse_constant=refuse)
    assert record["as_documented"] is True
    assert len(record["checks"]) == len(study.checks)
    assert record["schema"] == 2
    fields = {field.name for field in dataclasses.fields(Check)}
    assert all(set(check) == fields for check in record["checks"])


def test_a_surprise_is_never_called_anything_but_differs() -> None:
    assert verdict_fields(False, "holds") == {"verdict": "differs", "as_documented": False}
    assert verdict_fields(True, "paper wrong") == {"verdict": "paper wrong", "as_documented": True}


def test_the_same_seed_gives_the_same_checks() -> None:
    for section in (case_study_checks, identity_checks, landscape_checks):
        assert section(CONTEXT) == section(CONTEXT)


def test_numbers_that_the_paper_gets_wrong(study: TheoryStudy) -> None:
    computed = {check.id: check.computed for check in study.checks}
    assert computed["cwsm.r.peak"]["peak_r"] == pytest.approx(0.51, abs=0.005)
    assert computed["cwsm.r.peak"]["peak_ratio"] == pytest.approx(1.0353, abs=5e-5)
    assert computed["cwsm.r1.equity"]["skewed_34_1_1"] == pytest.approx(1.0)
    assert computed["nsm.eps.rule"]["eps_0"] == {"split": 1.0, "one_hot": 1.0}
    assert computed["equity.range"]["least_by_classes"]["31"] == pytest.approx(-0.935, abs=5e-4)
    assert computed["nsm.r.zero"]["r_0"] == 0.25
