"""The record of `equida theory` beside the printed tables."""

import dataclasses
import json
from pathlib import Path

import pytest

from equida.errors import InputError
from equida.paper.document import paper_markdown
from equida.paper.study import paper_study
from equida.paper.theory.checks import QUICK, Context
from equida.paper.theory.examples import example_checks
from equida.paper.theory_item import THEORY_COMMAND, find_theory


def theory_record(folder: Path) -> None:
    """A record with the real checks of the examples, one slope, and a Figure 1."""
    checks = [dataclasses.asdict(check) for check in example_checks(Context(QUICK, 0))]
    shown = {"claim": "CWSM: time ~ B^1", "reference": "a reference", "explanation": "e"}
    place = {"table": 2, "row": "CWSM", "column": "B", "computed": {"printed_order": "O(BC)"}}
    checks.append({**shown, **place, "found": "1.02", "printed": 1, "verdict": "holds"})
    folder.mkdir(exist_ok=True)
    (folder / "theory.json").write_text(
        json.dumps({"checks": checks, "figures": ["surfaces.png", "../secret.png"]})
    )
    (folder / "surfaces.png").write_bytes(b"a picture")
    (folder.parent / "secret.png").write_bytes(b"not of the record")


def test_theory_is_found_and_shown_beside_the_printed_tables(
    paper_runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert paper_study([], [paper_runs], tmp_path / "out").items[0].command == THEORY_COMMAND
    theory_record(tmp_path / "theory")
    found = paper_study([], [paper_runs], tmp_path / "out")
    theory = found.items[0]
    assert (theory.status, theory.command) == ("complete", "")
    assert theory.remarks[0] == "20 checks: 17 holds, 2 differs, 1 paper silent."
    text = paper_markdown(found)
    # Of P3, two rows of each class, the nuclear norm is 2 sqrt 2 and CWS is sqrt 2.
    assert "| P3 | 2 / 2 | 2 / 2 | 2.8284 / 2.82 \\* |" in text
    assert "| P3 | 2.8284 / 2.82 \\* | 1.4142 / 1.41 | 0.5 / 0.5 |" in text
    assert "| CWSM | O(BC) | 1.02 / 1 |  |" in text
    assert "(surfaces.png)" in text
    assert (tmp_path / "out" / "surfaces.png").read_bytes() == b"a picture"
    assert theory.figures == ("surfaces.png",)


def test_theory_is_looked_for_in_the_folders_of_runs(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    theory_record(runs)
    assert find_theory([tmp_path / "none", runs]) == runs / "theory.json"
    (runs / "theory.json").rename(tmp_path / "theory.json")
    theory_record(runs / "theory")
    assert find_theory([runs]) == runs / "theory" / "theory.json"


def test_a_record_without_its_tables_or_figure_is_not_complete(
    paper_runs: Path, tmp_path: Path
) -> None:
    check = {"verdict": "paper wrong", "claim": "c", "reference": "Eq. 1", "explanation": "e"}
    file = tmp_path / "theory.json"
    file.write_text(json.dumps({"checks": [check, check | {"verdict": "holds"}]}))
    theory = paper_study([], [paper_runs], tmp_path, theory=file).items[0]
    assert (theory.status, theory.command) == ("missing", THEORY_COMMAND)
    assert theory.remarks == ("2 checks: 1 paper wrong, 1 holds.", "paper wrong: c (Eq. 1): e")
    file.write_text("{}")
    with pytest.raises(InputError, match="not a record of equida theory"):
        paper_study([], [paper_runs], tmp_path, theory=file)
