import json
import shutil
from pathlib import Path

import pytest

from equida.cli import main
from equida.runs.read import read_runs
from equida.training.config import RunConfig
from equida.training.recipe import Recipe


@pytest.fixture
def unfinished(tmp_path: Path) -> Path:
    folder = tmp_path / "runs" / "one"
    folder.mkdir(parents=True)
    config = RunConfig("nsm", Recipe()).to_json()
    (folder / "config.json").write_text(json.dumps(config))
    return tmp_path / "runs"


def test_it_says_what_was_written(unfinished: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = unfinished.parent / "page.html"
    assert main(["report", str(unfinished), "--out", str(out), "--quiet"]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"{out}: 0 finished runs, 1 unfinished or failed, ")
    assert out.stat().st_size > 1e6


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["{root}/gone"], "is not a folder"),
        (["{root}", "--maps", "-1"], "maps is -1; it must be at least 0"),
        (["{root}", "--images", "{root}/gone"], "is not a folder; expected one of images"),
        (["{root}", "--out", "{root}"], "is a folder; expected a file such as report.html"),
        (["{root}", "--otu", "x"], "did you mean --out?"),
    ],
)
def test_bad_input_is_one_line(
    unfinished: Path, arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["report", *(word.format(root=unfinished) for word in arguments)]) == 2
    said = capsys.readouterr().err
    assert complaint in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        ("config.json", "{", "/config.json is damaged"),
        ("config.json", "[]", ": config.json holds list; expected the record of a run"),
        ("config.json", '{"name": "of something else"}', ": config.json has a field 'name'"),
        ("result.json", "{}", ": result.json has no 'task'"),
    ],
)
def test_a_damaged_run_is_named_and_left_out(
    unfinished: Path, caplog: pytest.LogCaptureFixture, file: str, text: str, reason: str
) -> None:
    other = unfinished / "two"
    shutil.copytree(unfinished / "one", other)
    (other / file).write_text(text)
    assert [run.path.name for run in read_runs(unfinished)] == ["one"]
    assert f"left out: {other}" in caplog.text
    assert reason in caplog.text
