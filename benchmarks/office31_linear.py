"""Features of Office-31, judged by a linear classifier, against an independent extraction.

Logistic regression (C = 10) on L2-normalised features of `tf_efficientnet_lite0`, trained on one
domain and tested on another. Several minutes on a CPU the first time, seconds afterwards.
"""

import json
import sys
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from safetensors import safe_open
from sklearn.linear_model import LogisticRegression

from equida.cli import main

# Percent; shorter side to 256 (bilinear), centre 224, mean 0.498, standard deviation 0.502.
INDEPENDENT = {
    ("A", "D"): 79.5,
    ("A", "W"): 76.7,
    ("D", "A"): 66.2,
    ("D", "W"): 96.7,
    ("W", "A"): 66.3,
    ("W", "D"): 99.4,
}
TOLERANCE = 1.5


def run(
    data: Path = Path("../shared/data/office31"), out: Path = Path("office31.safetensors")
) -> None:
    """Extract where needed and print a table; exits with 1 where a figure is too far off."""
    if not data.exists():
        print(f"skipped: it needs the images of Office-31, which are not at {data}")
        return
    if main(["features", "office31", "--data", str(data), "--out", str(out)]):
        sys.exit(2)
    found = accuracies(out)
    table = Table("task", "accuracy", "independent", "difference", title="Office-31, lite0")
    for (source, target), expected in INDEPENDENT.items():
        accuracy = found[source, target]
        difference = accuracy - expected
        row = f"{source} → {target}", f"{accuracy:.1f}", f"{expected:.1f}", f"{difference:+.1f}"
        table.add_row(*row, style="red" if abs(difference) > TOLERANCE else "")
    Console().print(table)
    if any(abs(found[task] - INDEPENDENT[task]) > TOLERANCE for task in INDEPENDENT):
        sys.exit(1)


def accuracies(path: Path) -> dict[tuple[str, str], float]:
    """Accuracy in percent from every domain of a feature file to every other."""
    with safe_open(path, framework="pt") as stored:
        names = json.loads(stored.metadata()["equida"])["domains"]
        features = torch.nn.functional.normalize(stored.get_tensor("features").float()).numpy()
        labels, owners = (stored.get_tensor(key).numpy() for key in ("labels", "domains"))
    found = {}
    for source, name in enumerate(names):
        rows = np.flatnonzero(owners == source)
        classifier = LogisticRegression(C=10, max_iter=2000).fit(features[rows], labels[rows])
        for target, other in enumerate(names):
            if target != source:
                rows = np.flatnonzero(owners == target)
                found[name, other] = 100 * classifier.score(features[rows], labels[rows])
    return found


if __name__ == "__main__":
    run(*map(Path, sys.argv[1:]))
