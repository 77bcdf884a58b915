"""What `equida paper` makes of a folder of runs."""

import dataclasses
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from equida.cli import main, paper
from equida.cli._parse import parse
from equida.cli.bench import arguments_for
from equida.paper.document import paper_json, paper_markdown
from equida.paper.study import PaperStudy, paper_study
from equida.paper.tables import RESULTS
from equida.runs.read import read_runs

pytestmark = pytest.mark.slow(reason="draws every item of the paper")


@pytest.fixture(scope="module")
def made(paper_runs: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[PaperStudy, Path]:
    folder = tmp_path_factory.mktemp("out")
    return paper_study(read_runs(paper_runs), [paper_runs], folder), folder


def by_name(found: PaperStudy) -> dict[str, str]:
    return {item.name: item.status for item in found.items}


def test_what_is_there_and_what_is_missing(made: tuple[PaperStudy, Path]) -> None:
    assert by_name(made[0]) == {
        "theory": "missing", "fig:dataset": "missing", "tab:office": "complete, 3 seeds",
        "tab:office_home": "missing", "tab:visda": "missing", "tab:diff": "missing",
        "fig:tsne": "missing", "tab:par_office": "complete, 3 seeds",
        "tab:par_office_home": "missing",
        "tab:par_visda": "missing", "fig:par": "25 of 50, 3 seeds",
    }  # fmt: skip


def test_figures_of_what_there_is_are_drawn(made: tuple[PaperStudy, Path]) -> None:
    found, folder = made
    figures = {file for item in found.items for file in item.figures}
    assert figures == {"parameters.png", "parameters.svg", "tsne.png", "tsne.svg"}
    assert all((folder / file).stat().st_size > 3000 for file in figures)


def test_every_missing_item_has_a_command_that_equida_understands(
    made: tuple[PaperStudy, Path], paper_runs: Path
) -> None:
    commands = [c for item in made[0].items for c in item.command.splitlines()]
    benches = [shlex.split(c)[2:] for c in commands if c.startswith("equida bench ")]
    others = [c for c in commands if not c.startswith("equida bench ")]
    assert [shlex.split(c)[1] for c in others] == ["theory", "paper"]
    for words in benches:
        arguments: Any = parse(arguments_for(words), "bench", words)
        assert arguments.dataset in RESULTS
        assert arguments.out == paper_runs


def test_a_command_makes_runs_in_the_setting_of_those_there_are(
    paper_runs: Path, tmp_path: Path
) -> None:
    few = [run for run in read_runs(paper_runs) if "-nsm-seed" in run.path.name]
    found = paper_study(few, [paper_runs], tmp_path)
    [office] = [e for e in found.items if e.name == "tab:office"]
    words = shlex.split(office.command)
    assert words[:5] == ["equida", "bench", "office31", "--data", "/f.npz"]
    arguments: Any = parse(arguments_for(words[2:]), "bench", words[2:])
    assert arguments.training.iterations == 4
    assert arguments.training.dropout == 0.0
    assert office.status == "7 of 77, 3 seeds"


def test_the_verdicts_say_what_the_runs_say(made: tuple[PaperStudy, Path]) -> None:
    outcomes = {v.claim: v for v in made[0].verdicts}
    better = outcomes["NSM is more accurate than MaxSquare"]
    assert better.outcome == "holds"
    assert better.test is not None
    assert (better.test.pairs, better.tasks, better.tasks_for, better.seeds) == (18, 6, 6, 3)
    assert better.test.difference == pytest.approx(15.0)
    assert better.printed == 4.3
    assert outcomes["NSM is more accurate than CWSM"].outcome == "does not hold"
    assert outcomes["NSM is more accurate than BNM"].outcome == "undecided"
    assert outcomes["NSM: equity goes up from r=0.5 to r=1"].outcome == "holds"
    down = outcomes["CWSM: discriminability goes down from r=0.5 to r=1"]
    assert down.outcome == "holds"
    assert down.test is not None
    assert down.test.difference == pytest.approx(-0.1)
    assert (down.tasks_for, down.command) == (6, "")
    assert outcomes["CWSM: r=0.5 is more accurate than r=1"].printed == 0.3
    assert any("best here of the others" in claim for claim in outcomes)


def test_the_document_shows_the_printed_numbers_also_where_runs_are_missing(
    made: tuple[PaperStudy, Path],
) -> None:
    text = paper_markdown(made[0])
    assert "| *paper: NSM* | **56.8** | **76.5** |" in text
    assert "Accuracy (%) on Office-Home; no runs yet." in text
    assert "equida theory --out theory" in text
    record = json.loads(paper_json(made[0]))
    [curves] = [e["curves"] for e in record["items"] if e["name"] == "fig:par"]
    assert len(curves) == 2 + 2 * 4
    assert len(record["verdicts"]) == len(made[0].verdicts)


@pytest.mark.slow(reason="makes all of the paper")
def test_runs_of_another_recipe_are_left_out_and_named(paper_runs: Path, tmp_path: Path) -> None:
    runs = read_runs(paper_runs)
    config = runs[0].config
    other = dataclasses.replace(config, recipe_changes={**config.recipe_changes, "clip": 1.0})
    runs[0] = dataclasses.replace(runs[0], config=other)
    found = paper_study(runs, [paper_runs], tmp_path)
    assert [len(group.finished) for group in found.left_out] == [1]
    assert "Left out on Office-31: 1 finished run, heads" in paper_markdown(found)


def test_everything_missing_has_a_command(paper_runs: Path, tmp_path: Path) -> None:
    found = paper_study([], [paper_runs], tmp_path, select="oracle")
    assert {item.status for item in found.items} == {"missing"}
    for item in found.items:
        for line in item.command.splitlines() or [""]:
            assert line.startswith("equida "), item.title
    words = shlex.split(found.items[1].command)[2:]
    arguments: Any = parse(paper.Arguments, "paper", words)
    assert (arguments.runs, arguments.out) == ((paper_runs,), tmp_path)
    assert arguments.select == "oracle"
    assert arguments.images == ("office31=DIR", "office_home=DIR", "visda2017=DIR")


@pytest.mark.slow(reason="makes all of the paper")
def test_as_a_user_calls_it(
    paper_runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["paper", str(paper_runs), "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert "holds" in said
    assert "complete, 3 seeds  Table 4" in said
    assert {f.name for f in (tmp_path / "out").iterdir()} >= {"paper.md", "paper.json", "tsne.png"}
    assert main(["paper", "nowhere"]) == 2
    assert main(["paper"]) == 2
    assert main(["paper", str(paper_runs), "--images", "office31=nowhere"]) == 2
    assert main(["paper", str(paper_runs), "--select", "best"]) == 2
    assert capsys.readouterr().err.count("\n") == 4


def test_a_folder_without_runs_is_refused(
    tmp_path: Path, paper_runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before: a document in which everything is missing, and exit code 0."""
    out = tmp_path / "out"
    (tmp_path / "empty").mkdir()
    assert main(["paper", str(paper_runs), str(tmp_path / "empty"), "--out", str(out)]) == 2
    said = capsys.readouterr().err
    assert f"{tmp_path / 'empty'} holds no runs; make some with equida bench" in said
    assert said.count("\n") == 1
    assert not out.exists()
