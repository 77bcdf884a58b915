"""The examples run as they stand, and adaptation pays in them."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"

# Percentage points by which the last line must beat the first: about half of what is printed.
GAINS = {"own_loop": 2.5, "tabular": 15.0}


def test_every_example_is_tested() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*GAINS, "front_door"}


@pytest.mark.parametrize("name", GAINS)
def test_adaptation_pays(name: str) -> None:
    run = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", EXAMPLES / f"{name}.py"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    means = [float(mean) for mean in re.findall(r"(\S+) ± \S+ %$", run.stdout, re.MULTILINE)]
    assert len(means) == len(run.stdout.splitlines()) >= 2
    assert means[-1] - means[0] > GAINS[name]
    assert run.stderr == ""


def test_the_front_door() -> None:
    """All that the command line does, in a script; nothing but its results is printed."""
    if find_spec("timm") is None:
        pytest.skip("needs the extra vision")
    run = subprocess.run(
        [sys.executable, EXAMPLES / "front_door.py"], capture_output=True, text=True, check=True
    )
    assert run.stderr == ""
    for text in ("read again: True", "60 images", "Accuracy (%) on Digits", r"\begin{tabular}"):
        assert text in run.stdout, text
