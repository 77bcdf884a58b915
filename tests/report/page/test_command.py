import shlex
from pathlib import Path

import pytest

from equida.cli import parse
from equida.cli.adapt import arguments_for
from equida.cli.plan import make_plan
from equida.report.page.command import adapt_command, rerun_command
from equida.training.config import RunConfig, TaskSource
from equida.training.recipe import Recipe, recipe


@pytest.mark.parametrize(
    "config",
    [
        RunConfig(
            "nsm",
            recipe("digits", {"iterations": 150, "channels_last": True, "freeze": "conv1"}),
            TaskSource("M", "U", "digits"),
            overrides={"r": 1.0, "trade_off": 0.5},
            backbone="lenet",
            seed=3,
        ),
        RunConfig(
            "cdan+nsm",
            recipe("digits"),
            TaskSource("U", "M", "digits", skip_unreadable=True),
            overrides={"nsm.r": 0.25, "cdan.entropy": True},
            backbone="lenet",
        ),
    ],
)
def test_the_command_makes_the_same_run(
    config: RunConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    command = adapt_command(config)
    assert command is not None
    equida, verb, *words = shlex.split(command)
    assert (equida, verb) == ("equida", "adapt")
    assert make_plan(parse(arguments_for(words), "adapt", words)).config == config


def test_names_with_spaces_and_quotes_survive_the_shell() -> None:
    config = RunConfig("nsm", Recipe(), TaskSource("my photos", "it's; rm -rf", None))
    words = shlex.split(adapt_command(config) or "")
    assert words[words.index("-s") + 1] == "my photos"
    assert words[words.index("-t") + 1] == "it's; rm -rf"
    assert shlex.split(rerun_command(Path("a b/c")))[-1] == "a b/c"


def test_data_in_memory_have_no_command() -> None:
    assert adapt_command(RunConfig("nsm", Recipe())) is None


def test_a_run_from_a_run_names_it() -> None:
    config = RunConfig("nsm", Recipe(), TaskSource("", "new"), initial="runs/first")
    words = shlex.split(adapt_command(config) or "")
    assert words[2:6] == ["--from", "runs/first", "-t", "new"]
