"""The examples run as they stand, and adaptation pays in them."""

import re
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.processes import run

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
    done = run([sys.executable, "-W", "error::UserWarning", EXAMPLES / f"{name}.py"])
    means = [float(mean) for mean in re.findall(r"(\S+) ± \S+ %$", done.out, re.MULTILINE)]
    assert len(means) == len(done.out.splitlines()) >= 2
    assert means[-1] - means[0] > GAINS[name]
    assert done.err == ""


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_in_the_loop_of_another_package(name: str) -> None:
    packages, gain = FRAMEWORKS[name]
    missing = [package for package in packages if find_spec(package) is None]
    if missing:
        pytest.skip(f"needs {missing[0]}, which the extra dev installs")
    done = run([sys.executable, EXAMPLES / f"{name}.py"])
    found = re.findall(r"^trade-off \S+: (\S+) .*%$", done.out, re.MULTILINE)
    without, with_nsm = map(float, found)
    assert with_nsm - without > gain
    # The clone may be called equida, too, and others warn with the path of their own files.
    own = [line for line in done.err.splitlines() if "site-packages" not in line]
    assert not [line for line in own if "equida" in line]


def test_the_front_door() -> None:
    """All that the command line does, in a script; nothing but its results is printed."""
    if find_spec("timm") is None:
        pytest.skip("needs the extra vision")
    done = run([sys.executable, EXAMPLES / "front_door.py"])
    assert done.err == ""
    for text in ("read again: True", "60 images", "Accuracy (%) on Digits", r"\begin{tabular}"):
        assert text in done.out, text


def test_two_processes() -> None:
    """The gradient is right with `global_batch`, wrong and warned of without."""
    done = run([sys.executable, EXAMPLES / "ddp.py"])
    errors = dict(re.findall(r"^(\S+) +(\S+) of the largest entry$", done.out, re.MULTILINE))
    assert float(errors["nsm"]) > 1e-3
    assert float(errors["global_batch(nsm)"]) < 1e-12
    assert done.err.count("from equida import global_batch") == 2


def test_accumulation() -> None:
    done = run([sys.executable, EXAMPLES / "accumulation.py"])
    rows = {line.split()[0]: line.split()[1:] for line in done.out.splitlines()[1:]}
    assert rows.keys() == {"nsm", "bnm", "cwsm"}
    for length, cosine, error in rows.values():
        assert float(error) < 1e-12
        assert float(cosine) < 0.999
        assert abs(float(length) - 1.0) > 0.3
    assert 3.0 < float(rows["nsm"][0]) < 4.0
