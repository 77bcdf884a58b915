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
# Examples in the loops of others: the packages that they need, and such a gain.
FRAMEWORKS = {
    "with_lightning": (("pytorch_lightning",), 2.0),
    "with_hugging_face": (("transformers", "accelerate"), 10.0),
    "with_skorch": (("skorch",), 2.0),
}


def test_every_example_is_tested() -> None:
    others = {"front_door", "ddp", "accumulation", *FRAMEWORKS}
    assert {path.stem for path in EXAMPLES.glob("*.py")} == {*GAINS, *others}


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


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_in_the_loop_of_another_package(name: str) -> None:
    packages, gain = FRAMEWORKS[name]
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        pytest.skip(f"needs {missing[0]}, which the extra dev installs")
    run = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py"],
        capture_output=True, text=True, check=True, timeout=300,
    )  # fmt: skip
    found = re.findall(r"^trade-off \S+: (\S+) .*%$", run.stdout, re.MULTILINE)
    without, with_nsm = map(float, found)
    assert with_nsm - without > gain
    assert "equida" not in run.stderr


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


def test_two_processes() -> None:
    """The gradient is right with `global_batch`, wrong and warned of without."""
    run = subprocess.run(
        [sys.executable, EXAMPLES / "ddp.py"],
        capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    errors = dict(re.findall(r"^(\S+) +(\S+) of the largest entry$", run.stdout, re.MULTILINE))
    assert float(errors["nsm"]) > 1e-3
    assert float(errors["global_batch(nsm)"]) < 1e-12
    assert run.stderr.count("from equida import global_batch") == 2


def test_accumulation() -> None:
    run = subprocess.run(
        [sys.executable, EXAMPLES / "accumulation.py"], capture_output=True, text=True, check=True
    )
    rows = {line.split()[0]: line.split()[1:] for line in run.stdout.splitlines()[1:]}
    assert rows.keys() == {"nsm", "bnm", "cwsm"}
    for length, cosine, error in rows.values():
        assert float(error) < 1e-12
        assert float(cosine) < 0.999
        assert abs(float(length) - 1.0) > 0.3
    assert 3.0 < float(rows["nsm"][0]) < 4.0
