"""What `equida paper` makes of a folder of runs."""

import json
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from equida.bench.paper_tables import RESULTS
from equida.bench.settings import settings
from equida.bench.store import read_runs
from equida.cli import main, paper, parse
from equida.cli.bench import arguments_for
from equida.errors import InputError
from equida.report.document import paper_json, paper_markdown
from equida.report.figures import embed, palette
from equida.report.study import THEORY_COMMAND, PaperStudy, find_theory, study
from equida.theory.checks import QUICK, Context
from equida.theory.examples import example_checks


@pytest.fixture(scope="module")
def made(paper_runs: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[PaperStudy, Path]:
    folder = tmp_path_factory.mktemp("out")
    return study(read_runs(paper_runs), [paper_runs], folder), folder


def by_name(found: PaperStudy) -> dict[str, str]:
    return {exhibit.name: exhibit.status for exhibit in found.exhibits}


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
    figures = {file for exhibit in found.exhibits for file in exhibit.figures}
    assert figures == {"parameters.png", "parameters.svg", "tsne.png", "tsne.svg"}
    assert all((folder / file).stat().st_size > 3000 for file in figures)


def test_every_missing_exhibit_has_a_command_that_equida_understands(
    made: tuple[PaperStudy, Path], paper_runs: Path
) -> None:
    commands = [c for exhibit in made[0].exhibits for c in exhibit.command.splitlines()]
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
    [few] = settings(r for r in read_runs(paper_runs) if "-nsm-seed" in r.path.name)["office31"]
    found = study(list(few.runs), [paper_runs], tmp_path)
    [office] = [e for e in found.exhibits if e.name == "tab:office"]
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
    [curves] = [e["curves"] for e in record["exhibits"] if e["name"] == "fig:par"]
    assert len(curves) == 2 + 2 * 4
    assert len(record["verdicts"]) == len(made[0].verdicts)


def test_runs_of_another_recipe_are_left_out_and_named(paper_runs: Path, tmp_path: Path) -> None:
    import dataclasses

    runs = read_runs(paper_runs)
    other = dataclasses.replace(
        runs[0].config, recipe=dataclasses.replace(runs[0].config.recipe, clip=1.0)
    )
    runs[0] = dataclasses.replace(runs[0], config=other)
    found = study(runs, [paper_runs], tmp_path)
    assert [s.finished for s in found.left_out] == [1]
    assert "Left out: 1 runs" in paper_markdown(found)


def theory_record(folder: Path) -> None:
    """A record with the real checks of the examples, one slope, and a Figure 1."""
    checks = [asdict(check) for check in example_checks(Context(QUICK, 0))]
    slope = {"name": "CWSM", "axis": "B", "slope": 1.02}
    shown = {"claim": "CWSM: time ~ B^1", "reference": "Table 2, O(BC)", "explanation": "e"}
    checks.append({**shown, "computed": slope, "found": "1.02", "printed": 1, "verdict": "holds"})
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
    assert study([], [paper_runs], tmp_path / "out").exhibits[0].command == THEORY_COMMAND
    theory_record(tmp_path / "theory")
    found = study([], [paper_runs], tmp_path / "out")
    theory = found.exhibits[0]
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
    theory = study([], [paper_runs], tmp_path, theory=file).exhibits[0]
    assert (theory.status, theory.command) == ("missing", THEORY_COMMAND)
    assert theory.remarks == ("2 checks: 1 paper wrong, 1 holds.", "paper wrong: c (Eq. 1): e")
    file.write_text("{}")
    with pytest.raises(InputError, match="not a record of equida theory"):
        study([], [paper_runs], tmp_path, theory=file)


def test_everything_missing_has_a_command(paper_runs: Path, tmp_path: Path) -> None:
    found = study([], [paper_runs], tmp_path, select="oracle")
    assert {exhibit.status for exhibit in found.exhibits} == {"missing"}
    for exhibit in found.exhibits:
        for line in exhibit.command.splitlines() or [""]:
            assert line.startswith("equida "), exhibit.title
    words = shlex.split(found.exhibits[1].command)[2:]
    arguments: Any = parse(paper.Arguments, "paper", words)
    assert (arguments.runs, arguments.out) == ((paper_runs,), tmp_path)
    assert arguments.select == "oracle"
    assert arguments.images == ("office31=DIR", "office_home=DIR", "visda2017=DIR")


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


def test_samples_of_every_domain(office31: Path, paper_runs: Path, tmp_path: Path) -> None:
    found = study([], [paper_runs], tmp_path, images={"office31": str(office31)})
    assert found.exhibits[1].status == "1 of 3"
    assert (tmp_path / "samples-office31.png").stat().st_size > 20_000


def test_points_of_one_class_lie_together_and_colours_differ() -> None:
    import torch

    probs = (50 * torch.eye(3).repeat(12, 1) + torch.rand(36, 3)).softmax(1).numpy()
    points = embed(probs)
    assert points.shape == (36, 2)
    assert (points == embed(probs)).all()
    assert len({tuple(colour) for colour in palette(65).round(3).tolist()}) == 65
