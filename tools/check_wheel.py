"""Build the wheel and the sdist, install each into an empty environment, and use it from there.

`make wheel` runs this. Nothing of the repository is on the path of what is tried.
"""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOSS = "import torch; from equida.losses import nsm; assert nsm(5 * torch.eye(3)) < 0"
ARRAYS = """
import numpy as np
from equida import EquidaClassifier
labels = np.arange(120) % 3
rows = 3.0 * np.eye(3)[labels] + np.random.default_rng(0).normal(size=(120, 3))
domain = np.where(np.arange(120) < 60, 1, -2)
model = EquidaClassifier("nsm", iterations=50).fit(rows, labels, sample_domain=domain)
assert (model.predict(rows) == labels).mean() > 0.6
"""


def call(*command: str | Path, folder: Path = ROOT) -> None:
    """Run a command without this repository on Python's path; its failure is ours."""
    clean = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    subprocess.run([str(word) for word in command], cwd=folder, env=clean, check=True)


def try_out(package: Path) -> None:
    """Install one file with only its hard dependencies, and do what a first user does."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        venv.create(folder / "venv", with_pip=True)
        binaries = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
        python, equida = binaries / "python", binaries / "equida"
        constraints = ["-c", str(ROOT / "constraints.txt")]
        call(python, "-m", "pip", "install", "--quiet", *constraints, package, folder=folder)
        call(equida, "--version", folder=folder)
        call(equida, "doctor", folder=folder)
        call(equida, "list", "methods", "nsm", folder=folder)
        call(python, "-c", LOSS, folder=folder)
        call(python, "-c", ARRAYS, folder=folder)
    print(f"{package.name}: installed and used", flush=True)


def main() -> None:
    dist = ROOT / "dist"
    for old in dist.glob("equida-*"):
        old.unlink()
    call(sys.executable, "-m", "build", "--outdir", dist)
    files = sorted(dist.glob("equida-*"))
    call(sys.executable, "-m", "twine", "check", "--strict", *files)
    for file in files:
        try_out(file)


if __name__ == "__main__":
    main()
