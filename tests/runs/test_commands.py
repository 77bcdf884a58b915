"""Commands that repeat a run are understood by the command line, and make the same run."""

import shlex
from pathlib import Path
from typing import Any

import pytest

from equida.cli._flags import overrides as given
from equida.cli._parse import parse
from equida.cli.adapt import arguments_for, request_of
from equida.data.spec import DataSpec
from equida.fields import FieldSpec, specs
from equida.methods import METHODS
from equida.runs.commands import adapt_command, rerun_command
from equida.training.config import RunConfig
from equida.training.plan import make_plan
from equida.training.recipe import Recipe, recipe


@pytest.mark.parametrize(
    "config",
    [
        RunConfig(
            "nsm",
            recipe("digits", {"iterations": 150, "channels_last": True, "freeze": "conv1"}),
            DataSpec("M", "U", "digits"),
            overrides={"r": 1.0, "trade_off": 0.5},
            backbone="lenet",
            seed=3,
        ),
        RunConfig(
            "cdan+nsm",
            recipe("digits"),
            DataSpec("U", "M", "digits", skip_unreadable=True),
            overrides={"nsm.r": 0.25, "cdan.entropy": True},
            backbone="lenet",
        ),
        RunConfig(
            "bnm+nsm",
            recipe("digits"),
            DataSpec("U", "M", "digits"),
            overrides={"bnm.prior": "source", "nsm.prior": "estimate"},
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
    planned = make_plan(request_of(parse(arguments_for(words), "adapt", words)))
    assert planned.config.describes_same_run(config)


def changed(spec: FieldSpec) -> Any:
    """A value that the field allows and that is not its default."""
    if spec.choices:
        return next(choice for choice in spec.choices if choice != spec.default)
    if spec.kind is bool:
        return not spec.default
    if spec.name == "prior":
        return '{"a b": 0.75, "it\'s": 0.25}'
    if spec.kind is str:
        return "a b"
    # A third has digits that a short text would lose.
    options = [1 / 3, 1 / 3 + spec.bounds.minimum] if spec.kind is float else [7, 11]
    return next(v for v in options if spec.bounds.allow(v) and v != spec.default)


def parsed(command: str | None) -> Any:
    assert command is not None
    equida, verb, *words = shlex.split(command)
    assert (equida, verb) == ("equida", "adapt")
    return parse(arguments_for(words), "adapt", words)


@pytest.mark.parametrize("method", [*METHODS, "dann+nsm", "safn+entropy"])
def test_every_hyper_parameter_is_printed_as_the_parser_reads_it(method: str) -> None:
    parts = method.split("+")
    prefix = {part: f"{part}." if len(parts) > 1 else "" for part in parts}
    overrides = {
        prefix[part] + name: changed(spec)
        for part in parts
        for name, spec in specs(METHODS[part].config).items()
    }
    config = RunConfig(method, Recipe(), DataSpec("a", "b"), overrides=overrides)
    assert given(parsed(adapt_command(config)).hyper, method) == overrides
    for key in overrides:
        spec = specs(METHODS[parts[0]].config).get(key)
        if spec is not None and spec.optional:
            config = RunConfig(method, Recipe(), DataSpec("a", "b"), overrides={key: None})
            assert given(parsed(adapt_command(config)).hyper, method) == {key: None}


def test_every_field_of_the_recipe_is_printed_as_the_parser_reads_it() -> None:
    overrides = {name: changed(spec) for name, spec in specs(Recipe).items()}
    config = RunConfig("dann", Recipe(**overrides), DataSpec("a", "b"))
    arguments = parsed(adapt_command(config))
    assert given(arguments.training) == overrides
    assert given(arguments.hyper, "dann") == {}


def test_a_methods_own_dropout_and_none_have_the_flags_of_the_parser() -> None:
    config = RunConfig("dann", Recipe(), DataSpec("a", "b"), overrides={"dropout": 0.25})
    assert "--dann-dropout 0.25" in (adapt_command(config) or "")
    config = RunConfig("nsm", Recipe(), DataSpec("a", "b"), overrides={"eps": None})
    assert "--eps none" in (adapt_command(config) or "")
    config = RunConfig("nsm", Recipe(bottleneck_norm=False), DataSpec("a", "b"))
    assert "--bottleneck-norm no" in (adapt_command(config) or "")


def test_names_with_spaces_and_quotes_survive_the_shell() -> None:
    config = RunConfig("nsm", Recipe(), DataSpec("my photos", "it's; rm -rf", None))
    words = shlex.split(adapt_command(config) or "")
    assert words[words.index("-s") + 1] == "my photos"
    assert words[words.index("-t") + 1] == "it's; rm -rf"
    assert shlex.split(rerun_command(Path("a b/c"), config))[-1] == "a b/c"


def test_a_value_with_a_leading_dash_is_not_taken_for_a_flag() -> None:
    config = RunConfig("nsm", Recipe(freeze="-x"), DataSpec("a", "b"))
    assert given(parsed(adapt_command(config)).training) == {"freeze": "-x"}


def test_data_in_memory_have_no_command() -> None:
    assert adapt_command(RunConfig("nsm", Recipe())) is None


def test_a_run_from_a_run_names_it() -> None:
    config = RunConfig("nsm", Recipe(), DataSpec("", "new"), from_run="runs/first")
    words = shlex.split(adapt_command(config) or "")
    assert words[2:6] == ["--from", "runs/first", "-t", "new"]


def test_a_run_from_a_run_has_its_network() -> None:
    """`adapt --from` refuses both flags."""
    config = RunConfig(
        "nsm", Recipe(), DataSpec("", "new"), backbone="lenet", weights="w.pth", from_run="runs/one"
    )
    words = shlex.split(adapt_command(config) or "")
    assert not {"--backbone", "--weights"} & set(words)


def test_a_prior_of_all_parts_is_printed_as_the_parser_reads_it() -> None:
    overrides = {"prior": "source", "prior_strength": 0.25, "nsm.prior": "estimate"}
    config = RunConfig("bnm+nsm", Recipe(), DataSpec("a", "b"), overrides=overrides)
    assert given(parsed(adapt_command(config)).hyper, "bnm+nsm") == overrides
