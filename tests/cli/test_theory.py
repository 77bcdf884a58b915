"""`equida theory` as a user meets it."""

import dataclasses
import json
import os
import tempfile
from pathlib import Path

import pytest

from equida.cli import main
from equida.paper.theory import study, write
from equida.paper.theory.checks import QUICK, Context
from equida.paper.theory.examples import example_checks
from equida.paper.theory.prior import prior_checks
from equida.paper.theory.study import TheoryStudy
from equida.paper.theory.theorems import theorem_checks

pytest.importorskip("matplotlib", reason="figures need the extra 'report'")


@pytest.mark.slow(reason="draws the figures")
def test_quick_run_prints_tables_and_writes_every_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The two that search for seconds are run in tests/paper/theory/test_study.py.
    slow = (theorem_checks, prior_checks)
    quick = {make: name for make, name in study.SECTIONS.items() if make not in slow}
    monkeypatch.setattr(study, "SECTIONS", quick)
    folder = tmp_path / "made" / "for it"
    assert main(["theory", "--quick", "--out", str(folder)]) == 0
    output = capsys.readouterr().out
    assert "2.8284 / 2.82 *" in output
    assert "paper wrong" in output
    assert output.rstrip().splitlines()[-1].startswith(f"Written to {folder}{os.sep}: ")
    record = json.loads((folder / "theory.json").read_text())
    assert record["budget"] == json.loads(json.dumps(dataclasses.asdict(QUICK)))
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        [*record["figures"], "theory.json"]
    )


def test_a_surprise_is_printed_and_exits_with_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def one_surprise(context: Context, advance: object) -> TheoryStudy:
        made = example_checks(context)
        checks = [dataclasses.replace(check, section="examples") for check in made]
        checks[-1] = dataclasses.replace(checks[-1], verdict="differs", as_documented=False)
        return TheoryStudy(checks, QUICK, 0, 1.0)

    monkeypatch.setattr(write, "run_theory", one_surprise)
    monkeypatch.setattr(write, "_draw", lambda study, folder: [])
    assert main(["theory", "--out", str(tmp_path)]) == 1
    assert "Not as documented: table-3.parameters" in capsys.readouterr().out
    assert json.loads((tmp_path / "theory.json").read_text())["as_documented"] is False


def test_out_that_is_a_file_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "file"
    file.touch()
    for path in (file, file / "below"):
        assert main(["theory", "--out", str(path)]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert error.startswith(f"equida: cannot write into {path}: ")


def test_out_that_cannot_be_written_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    assert main(["theory", "--out", str(tmp_path)]) == 2
    said = f"cannot write into {tmp_path}: Permission denied; choose another folder"
    assert capsys.readouterr().err == f"equida: {said}\n"


def test_a_bad_seed_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["theory", "--seed", "-1"]) == 2
    assert "seed is -1; it must be from 0 to 2147483647" in capsys.readouterr().err
