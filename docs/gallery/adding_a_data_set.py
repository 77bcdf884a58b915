"""
A data set of your own
======================

A folder of domain folders of class folders is a benchmark: domains, classes and tasks are found,
and the table is the one of the others. Nothing is registered and no code is written.
"""

import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

import equida
from equida.data import load_domain

folder = tempfile.TemporaryDirectory()
root = Path(folder.name, "my_digits")
for domain, title in (("M", "scanned"), ("U", "drawn")):
    images = load_domain("digits", domain)
    for label in range(4):
        inner = root / title / f"digit {label}"
        inner.mkdir(parents=True)
        for number in np.flatnonzero(images.labels == label)[:20]:
            pixels = (np.asarray(images[int(number)])[0] * 255).astype(np.uint8)
            Image.fromarray(pixels).resize((64, 64)).save(inner / f"{number}.png")

# %%
# Features are computed once; then every method runs on every ordered pair of domains.
table = equida.bench(
    root,
    methods=["source_only", "nsm"],
    seeds=2,
    features=True,
    recipe_params={"iterations": 100, "evaluate_every": 50},
    out=Path(folder.name, "runs"),
)
table  # noqa: B018

# %%
# ``equida doctor my_digits/ --write-toml`` writes a ``dataset.toml`` in which titles, the order of
# domains, tasks and the metric can be set.
