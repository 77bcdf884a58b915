"""What the README tells users to type works."""

import importlib
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from equida.cli import VERBS
from equida.cli._parse import parse

TEXT = (Path(__file__).parents[1] / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", TEXT, re.DOTALL)


def commands() -> list[str]:
    lines = [line for block in blocks("sh") for line in block.splitlines()]
    quoted = [text for text in re.findall(r"`(equida [^`]+)`", TEXT) if "--" in text]
    return [line for line in (*lines, *quoted) if line.startswith("equida ") and "..." not in line]


@pytest.mark.parametrize("command", commands())
def test_commands_are_understood(command: str) -> None:
    words = shlex.split(command, comments=True)
    words = words[: words.index(">")] if ">" in words else words
    verb, rest = words[1], words[2:]
    assert verb in VERBS
    module = importlib.import_module(f"equida.cli.{verb}")
    arguments_of = getattr(module, "arguments_for", lambda _: module.Arguments)
    parse(arguments_of(rest), verb, rest)


def test_there_are_commands_and_programs() -> None:
    assert len(commands()) > 8
    assert len(blocks("python")) > 1


@pytest.mark.parametrize("program", blocks("python"))
def test_programs_run(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(0)
    labels = np.arange(120) % 3
    rows = 3.0 * np.eye(3)[labels] + random.normal(size=(120, 3))
    source_logits, target_logits = torch.randn(2, 8, 3, requires_grad=True)
    names = {
        "F": F,
        "source_logits": source_logits,
        "target_logits": target_logits,
        "labels": torch.arange(8) % 3,
        "X": rows,
        "y": labels,
        "d": np.where(np.arange(120) < 60, 1, -2),
        "X_new": rows[:5],
        "X_target": rows + 0.5,
    }
    exec(program, names)
